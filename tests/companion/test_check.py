"""Each fault that the check must find, put into a copy of the smoke book."""

import shutil

import pytest

from neuronkit.companion import check, runs

NAME = "1_modularity/01_networks"
PAGE = f"notebooks/{NAME}.html"


@pytest.fixture
def copy(smoke, tmp_path, monkeypatch):
    """A copy of the smoke run; returns a function that changes a page of it and gives the complaints."""
    home = tmp_path / "copy"
    shutil.copytree(smoke, home)
    monkeypatch.setenv("NEURONKIT_HOME", str(home))

    def with_page(change):
        page = home / "_build" / "runs" / "smoke" / "html" / PAGE
        page.write_text(change(page.read_text()))
        return check.complaints(runs.load("smoke"))

    return with_page


def test_the_smoke_book_is_without_fault(copy):
    assert copy(lambda html: html) == []


@pytest.mark.parametrize(
    ("addition", "complaint"),
    [
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<img src="//example.org/x.png" alt="a long description">', "loads //example.org"),
        ('<link rel="stylesheet" href="http://example.org/x.css">', "loads http"),
        ('<img src="../../_static/favicon.svg" alt="short">', "no alternative text"),
        ('<a href="nowhere.html">x</a>', "links to nowhere.html"),
        ('<a href="#nowhere">x</a>', "where there is no such place"),
        ('<img src="nowhere.png" alt="a long description">', "lacks nowhere.png"),
    ],
)
def test_a_fault_in_a_page_is_found(copy, addition, complaint):
    found = copy(lambda html: html.replace("</article>", addition + "</article>", 1))
    assert len(found) == 1 and found[0].startswith(PAGE) and complaint in found[0]


def test_a_path_of_this_machine_is_found(copy, tmp_path):
    from neuronkit.companion import places

    [found] = copy(lambda html: html.replace("</article>", f"<p>{places.root()}/x</p></article>", 1))
    assert "of this machine" in found


def test_a_notebook_that_failed_or_is_stale_is_found(copy):
    run, name = runs.load("smoke"), NAME
    run.notebooks[name]["parameters"]["epochs"] = 2
    run.save()
    assert f"{name} is stale" in copy(lambda html: html)
    run.notebooks[name] = {"failed": "x", "parameters": {}}
    run.save()
    assert f"{name} is failed" in copy(lambda html: html)


def test_what_was_declared_and_not_made_is_found(copy):
    run, name = runs.load("smoke"), NAME
    ledger = run.entry(name) / "ledger.json"
    ledger.write_text(ledger.read_text().replace("p1.s1", "p1.s9"))
    assert f"{name}: exhibit p1.s1 is declared and was not made" in copy(lambda html: html)
