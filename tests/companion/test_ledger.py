import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from neuronkit import InputError
from neuronkit.companion import ledger


@pytest.fixture
def cell(tmp_path, monkeypatch):
    """A notebook's folder under the runner, and an empty ledger."""
    monkeypatch.setenv("NEURONKIT_CELL", str(tmp_path))
    monkeypatch.setattr(ledger, "_ledger", {"records": {}, "exhibits": {}, "claims": {}})
    return tmp_path


def written(cell):
    return json.loads((cell / "ledger.json").read_text())


@pytest.mark.parametrize(
    ("asked", "interval", "verdict"),
    [
        ({"above": 0}, (0.1, 0.3), "holds"),
        ({"above": 0}, (-0.3, 0.0), "does not hold"),
        ({"above": 0}, (-0.1, 0.3), "undecided"),
        ({"above": 0}, (0.0, 0.3), "undecided"),
        ({"below": 1}, (0.1, 0.3), "holds"),
        ({"below": 0.2}, (0.2, 0.3), "does not hold"),
        ({"below": 0.2}, (0.1, 0.3), "undecided"),
        ({"within": (0, 1)}, (0.0, 1.0), "holds"),
        ({"within": (0, 1)}, (1.1, 1.2), "does not hold"),
        ({"within": (0, 1)}, (-2.0, -0.1), "does not hold"),
        ({"within": (0, 1)}, (0.9, 1.2), "undecided"),
        ({"within": (0, 1)}, (-1.0, 2.0), "undecided"),
    ],
)
def test_the_verdict_is_where_the_interval_lies(cell, asked, interval, verdict):
    ledger.judge("p1.discarded", np.mean(interval), *interval, n=9, **asked)
    assert written(cell)["claims"]["p1.discarded"]["parts"][""]["verdict"] == verdict


def test_an_exact_fact_needs_no_interval_and_few_replicates_decide_nothing(cell):
    ledger.judge("p1.discarded", 0, 5, -5, n=None, part="a", within=(0, 0))
    ledger.judge("p1.discarded", 1, np.nan, np.nan, n=1, part="b", above=0)
    ledger.judge("p1.discarded", 1, 0.9, 1.1, n=2, part="c", above=0)
    parts = written(cell)["claims"]["p1.discarded"]["parts"]
    assert [parts[name]["verdict"] for name in "abc"] == ["holds", "undecided", "undecided"]
    assert parts["a"]["low"] == parts["a"]["high"] == 0 and "low" not in parts["b"]


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "undecided"], "undecided"),
        (["undecided", "does not hold"], "does not hold"),
    ],
)
def test_parts_are_taken_together(verdicts, together):
    assert ledger.verdict_of({"parts": {str(i): {"verdict": v} for i, v in enumerate(verdicts)}}) == together
    assert ledger.verdict_of({"why": "needs the hub: …"}) == "not tested"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"claim_id": "p1.discardde"}, 'did you mean "p1.discarded"'),
        ({"low": 2.0, "high": 1.0}, "low ≤ high"),
        ({"value": np.nan}, "finite value"),
        ({"low": np.nan}, "low ≤ high"),
        ({"below": 1}, "it was given 2"),
        ({"above": None}, "it was given 0"),
    ],
)
def test_bad_judgements_are_one_sentence(cell, arguments, message):
    given = {"claim_id": "p1.discarded", "value": 1.0, "low": 0.5, "high": 1.5, "n": 9, "above": 0} | arguments
    with pytest.raises(InputError, match=message):
        ledger.judge(**given)


def test_a_part_is_judged_once(cell):
    ledger.judge("p1.discarded", 1, 0.5, 1.5, n=9, above=0)
    with pytest.raises(InputError, match="judged twice"):
        ledger.judge("p1.discarded", 1, 0.5, 1.5, n=9, above=0)


def test_not_tested_needs_one_of_the_reasons(cell):
    ledger.not_tested("p1.discarded", "not at this scale: with fewer epochs nothing is discarded.")
    assert written(cell)["claims"]["p1.discarded"]["why"].startswith("not at this scale")
    with pytest.raises(InputError, match="Begin with one of"):
        ledger.not_tested("p1.discarded", "no time")


def test_a_figure_is_kept_as_images_and_csv_and_closed(cell, capsys):
    figure, ax = plt.subplots()
    ax.plot([1, 2])
    ledger.exhibit("p1.s1", figure, data=pd.DataFrame({"x": [1, 2]}))
    assert (cell / "p1.s1.csv").read_text() == "x\n1\n2\n"
    assert (cell / "p1.s1.png").read_bytes()[:4] == b"\x89PNG" and "<svg" in (cell / "p1.s1.svg").read_text()
    assert not plt.fignum_exists(figure.number)
    assert written(cell)["exhibits"]["p1.s1"] == ["p1.s1.csv", "p1.s1.png", "p1.s1.svg"]
    with pytest.raises(InputError, match="made twice"):
        ledger.exhibit("p1.s1", figure)


def test_the_same_figure_gives_the_same_files(cell):
    images = []
    for _ in range(2):
        figure, ax = plt.subplots()
        ax.plot([1, 2])
        images.append((ledger._image(figure, "png"), ledger._image(figure, "svg")))
        plt.close(figure)
    with plt.style.context({"svg.hashsalt": "fixed"}):
        again = [ledger._image(plt.figure(), "svg") for _ in range(2)]
    assert images[0][0] == images[1][0] and again[0] == again[1]


def test_a_table_is_kept_as_csv_and_shown_so_that_it_can_scroll(cell, capsys):
    ledger.exhibit("p1.table1", pd.DataFrame({"a": [0.123456789]}))
    assert (cell / "p1.table1.csv").read_text() == "a\n0.123457\n"
    with pytest.raises(InputError, match="unknown exhibit"):
        ledger.exhibit("p1.table9", pd.DataFrame())


def test_a_number_is_kept(cell):
    ledger.record("x", np.float64(1.5))
    assert written(cell)["records"] == {"x": 1.5}


def test_the_interactive_ledger_may_be_written_again(monkeypatch):
    monkeypatch.delenv("NEURONKIT_CELL", raising=False)
    monkeypatch.setattr(ledger, "_ledger", {"records": {}, "exhibits": {}, "claims": {}})
    for _ in range(2):  # a cell that is executed twice
        ledger.exhibit("p1.table1", pd.DataFrame({"a": [1]}))
        ledger.judge("p1.discarded", 1, 0.5, 1.5, n=9, above=0)
    ledger.paper_says_we_get()
