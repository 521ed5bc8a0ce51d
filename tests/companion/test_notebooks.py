import pytest
import yaml

from neuronkit import InputError
from neuronkit.companion import notebooks, places
from neuronkit.companion.ledger import book

NAME = "1_modularity/01_networks"
CELL = """
n: int = 3  # 1 to 10: a number
rate: float = 0.1  # 0 to 1: a rate
flag: bool = False  # a flag
kind: str = "a"  # a | b: a kind
source: str = "package"  # package | hub | PATH: where from
steps: list[int] = [1, 2]  # some steps
"""


@pytest.fixture
def parameters():
    return {p.name: p for p in notebooks._parameters(CELL, "x")}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n", "4", 4),
        ("n", "1e1", 10),
        ("rate", "1e-4", 1e-4),
        ("rate", 1, 1.0),
        ("flag", "false", False),
        ("flag", True, True),
        ("kind", "b", "b"),
        ("source", "/some/file.csv", "/some/file.csv"),
        ("steps", "3, 4", [3, 4]),
        ("steps", [5], [5]),
    ],
)
def test_values_have_the_declared_type(parameters, name, text, value):
    got = parameters[name].value(text)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n", "abc", "n=abc is not of type int"),
        ("n", "1.5", "not of type int"),
        ("n", True, "not of type int"),
        ("n", "0", "n=0 is out of range: it must lie in 1 to 10"),
        ("n", "nan", "not of type int"),
        ("n", "inf", "not of type int"),
        ("rate", "nan", "out of range"),
        ("flag", "no way", "not of type bool"),
        ("kind", "c", "choose one of a | b"),
        ("steps", "1, x", "not of type int"),
    ],
)
def test_other_values_are_one_sentence(parameters, name, text, message):
    with pytest.raises(InputError, match=message.replace("|", r"\|")):
        parameters[name].value(text)


@pytest.mark.parametrize(
    ("cell", "message"),
    [("n = 3  # a number", "may hold lines"), ("n: int = 3", "needs a type"), ("n: set = 3  # x", "needs a type")],
)
def test_a_parameters_cell_has_a_form(cell, message):
    with pytest.raises(InputError, match=message):
        notebooks._parameters(cell, "x")


def test_every_notebook_and_profile_of_the_book_is_well_formed():
    assert notebooks.profiles()[:4] == ["smoke", "quick", "laptop", "paper"]
    for profile in notebooks.profiles():
        for name, values in notebooks.profile(profile).items():
            assert values.items() <= {**notebooks.settings([name], profile, [])[name]}.items()
    for name in notebooks.names():
        about = notebooks.read(name).about
        assert set(about["minutes"]) == set(notebooks.profiles())
        assert notebooks.read(name).parameters()


def test_the_books_lists_and_the_notebooks_headers_agree():
    written = set(notebooks.names())
    for kind, owned in (("claims", book("claims")), ("exhibits", book("exhibits"))):
        listed = {i: e["notebook"] for i, e in owned.items() if e["notebook"] in written}
        declared = {i: name for name in written for i in notebooks.read(name).about.get(kind, [])}
        assert {i: n for i, n in declared.items() if not i.startswith("own.")} == listed


def test_the_lists_are_whole():
    for name, size in (("claims", 85), ("exhibits", 52)):
        text = (places.root() / "book" / f"{name}.yml").read_text()
        assert len(yaml.safe_load(text)) == size == sum(line.startswith("p") for line in text.splitlines())


def test_settings_take_defaults_then_profile_then_what_is_given():
    default = {n: p.default for n, p in notebooks.read(NAME).parameters().items()}
    assert notebooks.settings([NAME], "paper", [])[NAME] == default
    got = notebooks.settings([NAME], "smoke", ["epochs=7", f"{NAME}.runs=2"])[NAME]
    assert (got["epochs"], got["runs"], got["limit"]) == (7, 2, 6000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("seed", '"seed" sets nothing'),
        ("=3", "sets nothing"),
        ("sede=3", 'unknown parameter "sede": did you mean "seed"'),
        ("seed=abc", "not of type int"),
        ("runs=0", "out of range"),
        ("1_modularity/01_netwroks.runs=1", 'did you mean "1_modularity/01_networks"'),
        ("1_modularity/02_similarity_and_modularity.runs=1", "not among the notebooks of this command"),
    ],
)
def test_what_can_not_be_set_is_said_before_anything_starts(given, message):
    with pytest.raises(InputError, match=message):
        notebooks.settings([NAME], "quick", [given])


def test_unknown_names():
    with pytest.raises(InputError, match="unknown notebook"):
        notebooks.read("1_modularity/01")
    with pytest.raises(InputError, match='did you mean "quick"'):
        notebooks.profile("quik")


def test_every_code_cell_is_short():
    for name in notebooks.names():
        for cell in notebooks.read(name).node.cells:
            tags = set(cell.metadata.get("tags", []))
            if cell.cell_type == "code" and not tags & {"hide-input", "parameters"}:
                assert len(cell.source.splitlines()) <= 14, f"{name}: {cell.source.splitlines()[0]}"


def test_the_header_survives_a_save_in_jupyterlab():
    import jupytext

    for name in notebooks.names():
        node = notebooks.read(name).node
        again = jupytext.reads(jupytext.writes(node, fmt="md:myst"), fmt="md:myst")
        assert again.metadata["neuronkit"] == node.metadata["neuronkit"]
        assert [cell.metadata for cell in again.cells] == [cell.metadata for cell in node.cells]
