"""The companion's own machinery: computed results, notebooks, runs, the ledger, the book.

What a notebook calls is here by its name: `companion.cached`, `sweep`, `progress`, `record`, `exhibit`, `judge`,
`not_tested`. Notebooks import from the modules themselves, so that they depend on no more than they use.
"""


def __getattr__(name: str):
    # Found when asked for: the command line would otherwise pay for modules that it does not use.
    if name in ("cached", "sweep", "progress"):
        from neuronkit.companion.store import cached, progress, sweep

        return {"cached": cached, "sweep": sweep, "progress": progress}[name]
    if name in ("record", "exhibit", "judge", "not_tested"):
        from neuronkit.companion.ledger import exhibit, judge, not_tested, record

        return {"record": record, "exhibit": exhibit, "judge": judge, "not_tested": not_tested}[name]
    raise AttributeError(f"module 'neuronkit.companion' has no attribute '{name}'")
