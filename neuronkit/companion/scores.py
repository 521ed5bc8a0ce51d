"""The claims of the four papers with the verdicts of a run."""

from collections import Counter

from neuronkit.companion import notebooks, runs
from neuronkit.companion.ledger import asked_of, book, verdict_of


def rows(run: runs.Run) -> list[dict]:
    """One row per claim: id, paper, notebook, says, reported, verdict, part, value, low, high, n, asked, why.

    The numbers of a claim in parts are those of the part that decides: the first that fails, else that is undecided.
    asked: what the claim asks of the value, in words.
    A claim whose notebook was not executed in this run has the verdict "not tested", one whose notebook is not
    written yet "to come".
    """
    made = {i: c for ledger in run.ledgers().values() for i, c in ledger.get("claims", {}).items()}
    return [_row(claim_id, said, made.get(claim_id)) for claim_id, said in book("claims").items()]


def summary(rows: list[dict]) -> str:
    """How many claims have which verdict, in a sentence."""
    counts = Counter(row["verdict"] for row in rows)
    return f"{len(rows)} claims: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()) + "."


def _row(claim_id: str, said: dict, made: dict | None) -> dict:
    row = {"id": claim_id} | {name: said[name] for name in ("paper", "notebook", "says", "reported")}
    numbers = {"part": "", "value": None, "low": None, "high": None, "n": None, "asked": ""}
    if made is None:
        if said["notebook"] in notebooks.names():
            return row | {"verdict": "not tested"} | numbers | {"why": "its notebook is not in this run"}
        why = f"needs {said['needs']}: {said['why']}" if "needs" in said else "its notebook is not written yet"
        return row | {"verdict": "to come"} | numbers | {"why": why}
    if "why" in made:
        return row | {"verdict": "not tested"} | numbers | {"why": made["why"]}
    verdict = verdict_of(made)
    name, part = next((n, p) for n, p in made["parts"].items() if p["verdict"] == verdict)
    numbers |= {key: part.get(key) for key in ("value", "low", "high", "n")}
    return row | {"verdict": verdict} | numbers | {"part": name, "asked": asked_of(part["asked"]), "why": ""}
