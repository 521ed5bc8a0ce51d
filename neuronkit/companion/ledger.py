"""What a notebook states: numbers, exhibits, and verdicts on the paper's claims.

Under the runner every statement goes to the notebook's entry in the store as well; in JupyterLab it is shown only.
"""

import json
import math
import os
from functools import cache
from pathlib import Path

import yaml

from neuronkit import InputError, unknown
from neuronkit.companion import places

REASONS = ("needs the hub", "needs a licence", "not at this scale", "not in this profile")

_ledger = {"records": {}, "exhibits": {}, "claims": {}, "tables": {}}


@cache
def book(name: str) -> dict:
    """book/claims.yml or book/exhibits.yml."""
    return yaml.safe_load((places.root() / "book" / f"{name}.yml").read_text(encoding="utf-8"))


def reported(exhibit_id: str):
    """What the paper reports in an exhibit, as book/exhibits.yml has it (None where no value is known)."""
    return _entry("exhibits", exhibit_id).get("reported")


def record(key: str, value: float) -> None:
    """Keep a number under `key`, to be quoted in the notebook's text as {glue:text}`key`."""
    from myst_nb import glue

    value = float(value)
    glue(key, value, display=False)
    _ledger["records"][key] = value
    _write()


def exhibit(exhibit_id: str, shown, data=None) -> None:
    """Show a figure or a table as the paper's exhibit `exhibit_id`, and keep it.

    shown: a matplotlib Figure (closed afterwards) or a DataFrame. data: the DataFrame behind a figure, kept as CSV.
    Raises InputError for an id that book/exhibits.yml lacks, and for an exhibit made twice in one run.
    """
    _entry("exhibits", exhibit_id)
    cell = os.environ.get("NEURONKIT_CELL")
    if cell and exhibit_id in _ledger["exhibits"]:
        raise InputError(f"exhibit {exhibit_id} is made twice in this notebook: make it once.")
    table = shown if data is None else data
    files = {f"{exhibit_id}.csv": _csv(table).encode()} if hasattr(table, "to_csv") else {}
    if hasattr(shown, "savefig"):
        files |= {f"{exhibit_id}.{form}": _image(shown, form) for form in ("png", "svg")}
        _show_image(shown, files[f"{exhibit_id}.png"])
    else:
        show_table(shown, anchor=exhibit_id.replace(".", "-"))
    _ledger["exhibits"][exhibit_id] = sorted(files)
    if cell:
        for name, contents in files.items():
            (Path(cell) / name).write_bytes(contents)
    _write()


def judge(
    claim_id: str, value, low, high, *, n: int | None, part: str = "", above=None, below=None, within=None
) -> None:
    """Give the verdict on a claim of the paper, or on one part of it: "holds", "does not hold" or "undecided".

    value, [low, high]: our estimate and its 95 % interval; n: replicates behind it, None for an exact fact (then
    low = high = value). One of above=x, below=x, within=(x, y) is what the claim asks of the value: it holds where
    the interval lies inside, does not hold where it lies wholly outside; else, or with n of 1 or 2, it is undecided.

    Raises InputError for an unknown id, low > high, a value that is not finite, or a part judged twice.
    """
    _entry("claims", claim_id)
    asked = [
        (name, bound) for name, bound in (("above", above), ("below", below), ("within", within)) if bound is not None
    ]
    if len(asked) != 1:
        raise InputError(f"claim {claim_id} needs one of above=, below=, within=; it was given {len(asked)}.")
    # What is left of a zero after rounding is a zero: it must not straddle the bound.
    value, low, high = (0.0 if abs(v) < 1e-12 else float(v) for v in (value, low, high))
    if n is None:
        low = high = value
    few = n in (1, 2)
    if not math.isfinite(value) or not (few or low <= high):
        raise InputError(
            f"claim {claim_id} was given {value:g} [{low:g}, {high:g}]: a finite value and an interval with low ≤ high "
            "are needed, or not_tested with the reason."
        )
    verdict = "undecided" if few else _verdict(low, high, *asked[0])
    parts = _ledger["claims"].setdefault(claim_id, {"parts": {}})["parts"]
    if os.environ.get("NEURONKIT_CELL") and part in parts:
        raise InputError(f"claim {claim_id} has its part “{part}” judged twice: judge each part once.")
    bound = list(asked[0][1]) if asked[0][0] == "within" else float(asked[0][1])
    interval = {} if few else {"low": low, "high": high}
    parts[part] = {"verdict": verdict, "value": value, "n": n, "asked": [asked[0][0], bound], **interval}
    _write()


def not_tested(claim_id: str, why: str) -> None:
    """Say that a claim is not tested in this run; `why` begins with one of REASONS, a colon and a sentence.

    Raises InputError for an unknown id or another beginning.
    """
    _entry("claims", claim_id)
    if not any(why.startswith(f"{reason}: ") for reason in REASONS):
        raise InputError(f"claim {claim_id}: why not? Begin with one of: {', '.join(REASONS)}, and a colon.")
    _ledger["claims"][claim_id] = {"why": why}
    _write()


def verdict_of(claim: dict) -> str:
    """The verdict of a claim of the ledger from its parts: all hold, or one fails, or undecided; or not tested."""
    if "why" in claim:
        return "not tested"
    verdicts = {part["verdict"] for part in claim["parts"].values()}
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if verdicts == {"holds"} else "undecided"


def paper_says_we_get() -> None:
    """Show the claims that this notebook judged beside what the paper says."""
    import pandas as pd

    rows = []
    for claim_id, claim in _ledger["claims"].items():
        said = _entry("claims", claim_id)
        first = {"the paper says": said["says"], "it reports": said["reported"]}
        if "why" in claim:
            rows.append(first | {"we get": "", "the claim asks": "", "verdict": f"not tested ({claim['why']})"})
        for name, part in claim.get("parts", {}).items():
            we_get = f"{name}: {with_interval(part)}" if name else with_interval(part)
            rows.append(
                first | {"we get": we_get, "the claim asks": asked_of(part["asked"]), "verdict": part["verdict"]}
            )
            first = {"the paper says": "", "it reports": ""}
        if len(claim.get("parts", ())) > 1:
            rows.append(first | {"we get": "together", "the claim asks": "all parts", "verdict": verdict_of(claim)})
    show_table(pd.DataFrame(rows))


def show_table(table, *, anchor: str = "", keep: str = "") -> None:
    """Display a DataFrame so that a wide one scrolls inside its page; anchor: a name to link to.

    keep: a title under which the table is kept as CSV, so that a recorded run can show it.
    """
    from IPython.display import HTML, display

    display(HTML(as_html(table, anchor=anchor)))
    cell = os.environ.get("NEURONKIT_CELL")
    if keep and cell:
        name = f"table-{len(_ledger['tables']) + 1}.csv"
        _ledger["tables"][keep] = name
        (Path(cell) / name).write_text(_csv(table), encoding="utf-8")
        _write()


def as_html(table, *, anchor: str = "") -> str:
    """A DataFrame as HTML that scrolls inside its page."""
    html = table.to_html(index=False, border=0, float_format=lambda v: f"{v:.4g}", na_rep="—", classes="exhibit")
    named = f' id="{anchor}"' if anchor else ""
    return f'<div class="scrolls"{named} tabindex="0" role="region" aria-label="table">{html}</div>'


def _entry(name: str, entry_id: str) -> dict:
    entries = book(name)
    if entry_id not in entries:
        raise unknown(name.removesuffix("s"), entry_id, entries)
    return entries[entry_id]


def _verdict(low: float, high: float, name: str, bound) -> str:
    inside, outside = {
        "above": lambda: (low > bound, high <= bound),
        "below": lambda: (high < bound, low >= bound),
        "within": lambda: (bound[0] <= low and high <= bound[1], high < bound[0] or bound[1] < low),
    }[name]()
    return "holds" if inside else "does not hold" if outside else "undecided"


def with_interval(part: dict) -> str:
    """A value of a part or a row with its interval and n, in a few characters."""
    if part["n"] is None:
        return _short(part["value"])
    interval = f" [{_short(part['low'])}, {_short(part['high'])}]" if part.get("low") is not None else ""
    return f"{_short(part['value'])}{interval}, n = {part['n']}"


def _short(value: float) -> str:
    """Four digits; what is left of a zero after rounding is 0."""
    return f"{0 if abs(value) < 1e-12 else value:.4g}"


def asked_of(asked: list) -> str:
    """What a claim asks of a value, in words."""
    name, bound = asked
    return f"within {bound[0]:.4g} to {bound[1]:.4g}" if name == "within" else f"{name} {bound:.4g}"


def _image(figure, form: str) -> bytes:
    import io

    file = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    figure.savefig(file, format=form, metadata=metadata)
    return file.getvalue()


def _show_image(figure, png: bytes) -> None:
    import matplotlib.pyplot as plt
    from IPython.display import Image, display

    plt.close(figure)
    display(Image(png))


def _write() -> None:
    cell = os.environ.get("NEURONKIT_CELL")
    if cell:
        (Path(cell) / "ledger.json").write_text(json.dumps(_ledger, indent=1))


def _csv(table) -> str:
    """Six digits: more than any number here is known to, and files that a repository can hold."""
    return table.to_csv(index=False, float_format="%.6g")
