"""The claims of the four papers with the verdicts of a run."""

from collections import Counter

from neuronkit.companion import notebooks, runs
from neuronkit.companion.ledger import book, verdict_of


def rows(run: runs.Run) -> list[dict]:
    """One row per claim: id, paper, notebook, says, reported, verdict, value, low, high, n, why.

    The numbers of a claim in parts are those of the part that decides: the first that fails, else that is undecided.
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
    numbers = {"value": None, "low": None, "high": None, "n": None}
    if made is None:
        if said["notebook"] in notebooks.names():
            return row | {"verdict": "not tested"} | numbers | {"why": "its notebook is not in this run"}
        why = f"needs {said['needs']}: {said['why']}" if "needs" in said else "its notebook is not written yet"
        return row | {"verdict": "to come"} | numbers | {"why": why}
    if "why" in made:
        return row | {"verdict": "not tested"} | numbers | {"why": made["why"]}
    verdict = verdict_of(made)
    part = next(p for p in made["parts"].values() if p["verdict"] == verdict)
    return row | {"verdict": verdict} | {name: part.get(name) for name in numbers} | {"why": ""}
