import json

import pytest

from neuronkit.companion import ledger, runs, scores
from neuronkit.companion.generated import gallery, scoreboard, sources, target
from tests.conftest import neuronkit

# What `neuronkit claims --json` promises to other programs.
SCHEMA = {
    "id": str,
    "paper": int,
    "notebook": str,
    "says": str,
    "reported": str,
    "verdict": str,
    "part": str,
    "value": (float, int, type(None)),
    "low": (float, int, type(None)),
    "high": (float, int, type(None)),
    "n": (int, type(None)),
    "asked": str,
    "why": str,
}
NAME = "1_modularity/01_networks"


@pytest.fixture
def run(monkeypatch):
    """A run whose ledger is given by hand."""

    def with_claims(claims):
        made = runs.Run("x", "quick", {NAME: {}})
        monkeypatch.setattr(runs.Run, "ledgers", lambda self: {NAME: {"claims": claims, "exhibits": {}}})
        return made

    return with_claims


def part(verdict, value=1.0, **more):
    return {"verdict": verdict, "value": value, "n": 9, "low": 0.5, "high": 1.5, "asked": ["above", 0.0]} | more


def test_the_json_has_its_schema(smoke):
    rows = json.loads(neuronkit("claims", "--run", "smoke", "--json", home=smoke).stdout)
    assert [row["id"] for row in rows] == list(ledger.book("claims"))
    for row in rows:
        assert set(row) == set(SCHEMA)
        assert all(isinstance(row[name], kind) for name, kind in SCHEMA.items()), row
        assert row["verdict"] in ("holds", "does not hold", "undecided", "not tested", "to come")
        assert row["why"] if row["verdict"] in ("not tested", "to come") else not row["why"]


def test_the_row_of_a_claim_in_parts_is_the_part_that_decides(run):
    parts = {"a": part("holds", 1), "b": part("undecided", 2), "c": part("does not hold", 3)}
    row = next(r for r in scores.rows(run({"p1.discarded": {"parts": parts}})) if r["id"] == "p1.discarded")
    assert (row["verdict"], row["value"]) == ("does not hold", 3)
    del parts["c"]
    row = next(r for r in scores.rows(run({"p1.discarded": {"parts": parts}})) if r["id"] == "p1.discarded")
    assert (row["verdict"], row["value"]) == ("undecided", 2)


def test_what_was_not_tested_says_why(run):
    rows = {r["id"]: r for r in scores.rows(run({"p1.discarded": {"why": "not in this profile: too few epochs."}}))}
    assert rows["p1.discarded"]["verdict"] == "not tested" and "too few epochs" in rows["p1.discarded"]["why"]
    assert rows["p1.soft_optimum"]["why"] == "its notebook is not in this run"
    assert rows["p4.memorisation"]["verdict"] == "to come" and "needs a licence" in rows["p4.memorisation"]["why"]


def test_the_scoreboard_counts_tests_and_expected_misses(run):
    made = run({"p1.discarded": {"parts": {"": part("holds")}}})
    text = scoreboard(made, scores.rows(made))
    assert "1 of 85 claims were tested" in text
    assert "Of 1 verdicts from 95 % intervals, about 0.1 are" in text
    assert "1 [0.5, 1.5], n = 9; asked: above 0" in text and "how judged" in text
    one = {"p1.discarded": {"parts": {"at weaker penalties": part("undecided", n=1, low=None, high=None)}}}
    made = run(one)
    text = scoreboard(made, scores.rows(made))
    assert "No verdict rests on a 95 % interval" in text and "at weaker penalties: 1, n = 1" in text


def test_texts_from_the_lists_are_escaped(run, monkeypatch):
    claims = ledger.book("claims")
    monkeypatch.setitem(claims["p1.discarded"], "says", "a <b> & c")
    made = run({})
    text = scoreboard(made, scores.rows(made)) + gallery(made, scores.rows(made))
    assert "a &lt;b&gt; &amp; c" in text and "a <b>" not in text


def test_every_public_function_has_a_place_on_a_source_page():
    pages = sources()
    assert "(neuronkit.metrics.modularity.maximize)=" in pages["neuronkit.metrics.modularity"]
    assert not [name for name in pages if ".companion" in name]
    assert target("neuronkit.models.mlp.train_ensemble") == "neuronkit-models-mlp-train-ensemble"
