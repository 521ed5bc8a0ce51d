import dataclasses
import types

import pytest

from neuronkit import InputError
from neuronkit.companion import keys, ledger, notebooks, runner, runs

NAME = "1_modularity/01_networks"


@pytest.fixture
def notebook():
    return notebooks.read(NAME)


@pytest.fixture
def parameters(notebook):
    return {p.name: p.default for p in notebook.parameters().values()}


def key(notebook, parameters):
    return runs.notebook_key(notebook, parameters)[0]


def test_a_changed_caption_is_executed_again_and_its_results_are_not(notebook, parameters):
    changed = dataclasses.replace(notebook, text=notebook.text.replace("Open diamonds", "Hollow diamonds"))
    assert key(changed, parameters) != key(notebook, parameters)
    code = keys.code({"neuronkit.models.mlp"})
    assert not [name for name in code if "notebooks" in name or "figures" in name]


def test_parameters_and_files_that_they_name_count(notebook, parameters, tmp_path):
    before = key(notebook, parameters)
    assert key(notebook, parameters | {"epochs": 3}) != before
    file = tmp_path / "own.csv"
    file.write_text("a")
    first = key(notebook, parameters | {"source": str(file)})
    file.write_text("b")
    assert key(notebook, parameters | {"source": str(file)}) != first


def test_what_the_page_shows_of_the_lists_counts(notebook, parameters, monkeypatch):
    before = key(notebook, parameters)
    lists = {name: {**ledger.book(name)} for name in ("claims", "exhibits")}
    lists["claims"]["p4.runtime"] = {}  # of another notebook
    monkeypatch.setattr(runs, "book", lists.__getitem__)
    assert key(notebook, parameters) == before
    lists["claims"]["p1.discarded"] = {**lists["claims"]["p1.discarded"], "reported": "22 of 270"}
    assert key(notebook, parameters) != before


def test_the_style_sheet_counts_and_the_runner_does_not(notebook, parameters):
    _, parts = runs.notebook_key(notebook, parameters)
    assert "neuronkit/figures/neuronkit.mplstyle" in parts["code"]
    assert "neuronkit/companion/ledger.py" in parts["code"]
    assert "neuronkit/companion/runner.py" not in parts["code"]


def test_states(home, notebook, parameters):
    assert runs.state(None, NAME) == "missing"
    run = runs.Run("x", "quick", {NAME: {"failed": "why", "parameters": parameters}})
    assert runs.state(run, NAME) == "failed"
    run.notebooks[NAME] = {"key": key(notebook, parameters), "parameters": parameters}
    assert runs.state(run, NAME) == "missing"
    (home / "store" / run.notebooks[NAME]["key"]).mkdir(parents=True)
    assert runs.state(run, NAME) == "fresh"
    run.notebooks[NAME]["parameters"] = parameters | {"epochs": 3}
    assert runs.state(run, NAME) == "stale"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a b", "é"])
def test_a_run_name_is_one_word(name):
    with pytest.raises(InputError, match="can't name a run"):
        runs.check_name(name)


def test_a_run_is_read_back(home):
    runs.folder().mkdir()
    run = runs.Run("mine", "smoke", {NAME: {"key": "k", "parameters": {}, "seconds": 1.0}})
    run.save()
    assert runs.load("mine") == run and runs.names() == ["mine"]
    with pytest.raises(InputError, match='did you mean "mine"'):
        runs.load("mime")


def test_an_executed_notebook_names_a_file_without_its_folder(tmp_path):
    import nbformat

    from neuronkit.companion.runner import _tidy

    cell = nbformat.v4.new_code_cell(f'source = "{tmp_path}/own.csv"', metadata={"tags": ["injected-parameters"]})
    node = _tidy(nbformat.v4.new_notebook(cells=[cell]), [f"{tmp_path}/own.csv"])
    assert node.cells[0].source == 'source = "own.csv"' and node.cells[0].id == "cell-000"


@pytest.mark.parametrize(("exclusive", "minutes", "alone"), [(True, 2, True), (True, 0.9, False), (False, 9, False)])
def test_only_a_long_notebook_with_a_sweep_runs_alone(exclusive, minutes, alone):
    node = types.SimpleNamespace(about={"exclusive": exclusive, "minutes": {"quick": minutes}})
    assert runner._alone(node, "quick") is alone
