import html
import json

import nbformat
import pytest

from neuronkit import InputError
from neuronkit.companion import book, keys, ledger, recorded, runs, scores
from neuronkit.companion.generated import scoreboard

NAME = "1_modularity/03_regularisation"


@pytest.fixture
def run(smoke, tmp_path, monkeypatch):
    """The smoke run, recorded in an empty folder as if it were the one to record."""
    monkeypatch.setenv("NEURONKIT_HOME", str(smoke))
    monkeypatch.setattr(recorded, "folder", lambda: tmp_path)
    monkeypatch.setattr(recorded, "PROFILE", "smoke")
    recorded.notebook.cache_clear()
    yield runs.load("smoke")
    recorded.notebook.cache_clear()


def test_a_record_has_ledger_provenance_and_csv_and_no_more(run, tmp_path):
    assert recorded.notebook(NAME) is None and recorded.section(NAME) == ""
    assert recorded.verdict("p1.h2_l2", NAME) is None
    papers = sorted({name.split("/")[0] for name in run.notebooks})
    assert "1_modularity" in papers
    assert recorded.record(run) == [tmp_path / "smoke" / paper for paper in papers]
    files = {file.name for file in (tmp_path / "smoke" / "1_modularity").iterdir()}
    exhibits = {f"{i}.csv" for i, e in ledger.book("exhibits").items() if e["paper"] == 1}
    tables = {file for file in files if "-table-" in file}
    assert files == {"run.json"} | exhibits | tables and "03_regularisation-table-1.csv" in tables
    made = recorded.notebook(NAME)
    assert made["parameters"]["epochs"] == 3 and made["minutes"] > 0 and not made["changed"]
    assert "Computed at commit" in made["computed"] and "torch" in made["computed"]
    whole = run.ledgers()[NAME]
    assert made["ledger"] == {kind: whole[kind] for kind in ("records", "exhibits", "claims")}
    assert list(made["tables"]) == list(whole["tables"])
    assert all(f"<summary>{html.escape(title)}</summary>" in recorded.section(NAME) for title in made["tables"])
    assert recorded.verdict("p1.h2_l2", NAME) == ("undecided", False)
    assert sorted(file.name for file in (tmp_path / "smoke").iterdir()) == papers, "nothing is left aside"


def test_the_minutes_are_those_of_the_longest_run_with_the_same_parameters(run):
    recorded.record(run)
    minutes = recorded.notebook(NAME)["minutes"]
    run.notebooks[NAME]["seconds"] = 1.0
    recorded.record(run)
    assert recorded.notebook(NAME)["minutes"] == minutes
    file = recorded.notebook(NAME)["folder"] / "run.json"
    file.write_text(file.read_text().replace('"epochs": 3', '"epochs": 4'))
    recorded.record(run)
    assert recorded.notebook(NAME)["minutes"] == 0.02


def test_only_the_readers_of_a_notebooks_own_data_count_as_its_code(monkeypatch):
    code = recorded.code(NAME)
    of_files = keys.code

    def changed(part):
        return lambda *given: {f: f"{d}{'!' if part in f else ''}" for f, d in of_files(*given).items()}

    for part, counts in (("data/text", False), ("data/sources", False), ("data/mnist", True), ("metrics/modul", True)):
        monkeypatch.setattr(keys, "code", changed(part))
        assert (recorded.code(NAME) != code) is counts, part


def test_it_stands_in_pages_and_scoreboard_with_a_mark_once_the_code_has_changed(run, monkeypatch):
    recorded.record(run)
    rows = scores.rows(run)
    assert "the code has changed since" not in scoreboard(run, rows)
    stage = book._stage(run)
    node = nbformat.read(stage / "notebooks" / f"{NAME}.ipynb", as_version=4)
    texts = [cell.source for cell in node.cells if "## A recorded run" in cell.source]
    assert len(texts) == 1
    assert texts[0].index("## A recorded run") < texts[0].index("p1.h2_l2") < texts[0].index("## Exercises")
    assert "has changed" not in texts[0]
    assert (stage / "_static" / "recorded" / "p1.fig3_bottom.csv").exists()
    recorded.notebook.cache_clear()
    monkeypatch.setattr(recorded, "code", lambda name: "another")
    assert "has changed since" in recorded.section(NAME)
    assert "the code has changed since" in scoreboard(run, rows)


def test_the_code_behind_the_numbers_is_not_words_figures_or_the_runner(monkeypatch):
    before = recorded.code(NAME)
    files = recorded.keys.code({"neuronkit.models.units"})

    def with_change(file):
        monkeypatch.setattr(recorded.keys, "code", lambda names: files | {file: "another"})
        return recorded.code(NAME)

    assert with_change("neuronkit/companion/runner.py") == with_change("neuronkit/figures/bars.py")
    assert with_change("neuronkit/models/mlp.py") not in (before, with_change("neuronkit/figures/bars.py"))


def test_only_a_whole_run_of_the_profile_is_recorded(run):
    run.notebooks[NAME]["key"] = "gone"
    with pytest.raises(InputError, match=f"{NAME} is missing in run smoke"):
        recorded.record(run)
    run.profile = "quick"
    with pytest.raises(InputError, match="has the profile quick: only"):
        recorded.record(run)


def test_a_committed_record_reads_back_as_json():
    for file in recorded.folder().glob("*/*/run.json"):
        made = json.loads(file.read_text(encoding="utf-8"))
        for found in made["notebooks"].values():
            assert set(found["ledger"]["claims"]) <= set(ledger.book("claims"))
            assert set(found["ledger"]["exhibits"]) <= set(ledger.book("exhibits"))
