"""The smoke book, parsed as a browser would load it."""

import importlib
import json
import shutil
from pathlib import Path

import bs4
import pytest

from neuronkit.companion import book, check, ledger, notebooks, runs


@pytest.fixture(scope="session")
def html(smoke):
    return smoke / "_build" / "runs" / "smoke" / "html"


def page(html, name):
    return bs4.BeautifulSoup((html / name).read_text(), "html.parser")


def test_every_notebook_and_page_of_the_contents_is_there(html):
    for name in notebooks.names():
        assert (html / "notebooks" / f"{name}.html").is_file()
    for name in ("intro", "rerun", "glossary", "references", "1_modularity"):
        assert (html / "book" / f"{name}.html").is_file()


def test_the_first_page_leads_to_the_chapter(html):
    assert "intro.html" in (html / "index.html").read_text()
    links = {a["href"] for a in page(html, "book/intro.html").find_all("a", href=True)}
    assert "1_modularity.html" in links


def test_mathematics_is_drawn_from_the_disk(html):
    scripts = [s.get("src", "") for s in page(html, "notebooks/1_modularity/01_networks.html").find_all("script")]
    mathjax = [s for s in scripts if "mathjax" in s]
    assert mathjax and not any(s.startswith("http") for s in mathjax)


def test_figures_have_caption_number_and_alternative_text(html):
    figures = page(html, "notebooks/1_modularity/01_networks.html").find_all("figure")
    assert figures
    for figure in figures:
        assert len(figure.img["alt"]) >= 8 and figure.figcaption.find(class_="caption-number")


def test_the_page_has_its_run_card_verdicts_and_exercises(html):
    text = page(html, "notebooks/1_modularity/01_networks.html").get_text(" ")
    for expected in ("computed at", "the paper says", "21 of 270", "Exercise 1", "Solution to"):
        assert expected in text
    assert "networks fall short" in text and "{glue" not in text and "Injected" not in text


def test_executed_notebooks_are_the_same_but_for_the_results(smoke):
    for file in (smoke / "store").glob("*/notebook.ipynb"):
        node = json.loads(file.read_text())
        assert "papermill" not in node["metadata"]
        assert [c["id"] for c in node["cells"]] == [f"cell-{i:03}" for i in range(len(node["cells"]))]
        assert not check._machine(file.read_text())


def test_the_scoreboard_has_every_claim_and_filters_without_a_script(html):
    board = page(html, "book/intro.html").find(class_="scoreboard")
    rows = board.tbody.find_all("tr")
    assert len(rows) == 85
    papers = {i["value"] for i in board.find_all("input", attrs={"name": "paper"})}
    verdicts = {i["value"] for i in board.find_all("input", attrs={"name": "verdict"})}
    assert papers == {"all", "1", "2", "3", "4"} and {row["data-paper"] for row in rows} == papers - {"all"}
    assert {row["data-verdict"] for row in rows} <= verdicts
    style = (html / "_static" / "book.css").read_text()
    for value in papers | verdicts - {"all"}:
        assert value == "all" or f'[value="{value}"]:checked) tr' in style
    assert not board.find_all("script")


def test_the_gallery_has_every_exhibit(html):
    cards = page(html, "book/gallery.html").find_all(class_="card")
    assert len(cards) == 52
    made = [card for card in cards if card.find("a")]
    declared = [i for name in notebooks.names() for i in notebooks.read(name).about["exhibits"]]
    assert len(made) == len(declared)
    for card in made:
        page_, csv, function = card.find_all("a")[-3:]
        assert csv["href"].endswith(".csv") and "/source/neuronkit." in function["href"] and "#p" in page_["href"]
    assert all("to come" in card.find(class_="to-come").text for card in cards if not card.find("a"))


def test_every_exhibit_of_a_written_notebook_names_its_function():
    for name in notebooks.names():
        for exhibit in notebooks.read(name).about["exhibits"]:
            module, _, function = ledger.book("exhibits")[exhibit]["function"].rpartition(".")
            assert callable(getattr(importlib.import_module(module), function))


def test_a_book_of_some_notebooks_links_to_no_other(smoke, tmp_path, monkeypatch):
    shutil.copytree(smoke / "store", tmp_path / "store")
    monkeypatch.setenv("NEURONKIT_HOME", str(tmp_path))
    whole = runs.Run(**json.loads((smoke / "runs" / "smoke.json").read_text()))
    for left in notebooks.names():
        part = runs.Run("part", "smoke", {left: whole.notebooks[left]})
        stage = book._stage(part)
        texts = [p.read_text() for p in [*stage.glob("book/*.md"), *stage.rglob("*.ipynb")]]
        for other in set(notebooks.names()) - {left}:
            assert not any(f"{Path(other).name})" in text for text in texts)
        landing = (stage / "book" / f"{left.split('/')[0]}.md").read_text()
        assert "(not in this run)" in landing and f"notebooks/{left})" in landing
