"""Reads a run and its built pages as a strict reader would, and lists what is wrong."""

import getpass
import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from neuronkit.companion import book, notebooks, places, runs

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


def complaints(run: runs.Run) -> list[str]:
    """What is wrong with a run: notebooks that failed, are missing or stale; exhibits and claims that were declared
    and not made; outputs with errors, warnings or paths; pages with dead links, outside files or images without
    alternative text. Empty when all is well."""
    found = [c for name in run.notebooks for c in _notebook(run, name)]
    html = book.pages(run)
    if not (html / "index.html").is_file():
        return [*found, f"run {run.name} has no pages: build it"]
    files = [f for f in sorted(html.rglob("*.html")) if "_static" not in f.relative_to(html).parts]
    made = {str(file.relative_to(html)): _page(file) for file in files}
    anchors = {name: {tag.get("id") or tag.get("name") for tag in soup.find_all(True)} for name, soup in made.items()}
    for name, soup in made.items():
        found += [f"{name}: {c}" for c in _of_page(html, name, soup, anchors)]
    return found


def _notebook(run: runs.Run, name: str) -> list[str]:
    state = runs.state(run, name)
    if state != "fresh":
        return [f"{name} is {state}"]
    entry = run.entry(name)
    ledger = json.loads((entry / "ledger.json").read_text())
    about = notebooks.read(name).about
    found = [
        f"{name}: {kind.removesuffix('s')} {i} is declared and was not made"
        for kind in ("exhibits", "claims")
        for i in set(about.get(kind, [])) - set(ledger.get(kind, {}))
    ]
    node = json.loads((entry / "notebook.ipynb").read_text())
    for number, cell in enumerate(node["cells"]):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error" or output.get("name") == "stderr":
                text = "".join(output.get("text", [])) or output.get("evalue", "")
                found.append(f"{name}, cell {number}: an error or a warning is shown: {text.strip()[:100]}")
    return found + [f"{name}: the executed notebook {c}" for c in _machine((entry / "notebook.ipynb").read_text())]


def _machine(text: str) -> list[str]:
    """What in a text belongs to this machine: its folders, the user's name in a path."""
    own = {str(Path.home()), str(places.root()), str(places.work())} - {"/"}
    paths = [p for p in own if re.search(re.escape(p) + r"\b", text)]
    if re.search(rf"/(home|Users)/{re.escape(getpass.getuser())}\b", text):
        paths.append("the user's name")
    return [f"shows {path}, which is of this machine" for path in sorted(paths)]


def _page(file: Path):
    import bs4

    return bs4.BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


def _of_page(html: Path, name: str, soup, anchors: dict) -> list[str]:
    found = _machine(str(soup))
    for tag, attribute in LOADED.items():
        for element in soup.find_all(tag):
            address = element.get(attribute, "")
            loaded = tag != "link" or not {"canonical", "author", "license"} & set(element.get("rel", []))
            if (loaded and urlsplit(address).scheme not in ("", "data")) or address.startswith("//"):
                found.append(f"loads {address}")
            elif address and urlsplit(address).scheme == "" and not _target(html, name, address).exists():
                found.append(f"lacks {address}")
    for image in soup.find_all("img"):
        decorative = image.find_parent(class_=re.compile("logo|brand")) is not None
        if not decorative and len(image.get("alt", "")) < 8:
            found.append(f"the image {image.get('src', '')[-40:]} has no alternative text of 8 characters or more")
    for link in soup.find_all("a", href=True):
        found += _dead(html, name, link["href"], anchors)
    return found


def _dead(html: Path, name: str, address: str, anchors: dict) -> list[str]:
    parts = urlsplit(address)
    if parts.scheme or address.startswith("//"):
        return []
    target = _target(html, name, address)
    if not target.exists():
        return [f"links to {address}, which is not there"]
    page = str(target.relative_to(html.resolve())) if target.suffix == ".html" else ""
    fragment = unquote(parts.fragment)
    if fragment and page in anchors and fragment not in anchors[page]:
        return [f"links to {address}, where there is no such place"]
    return []


def _target(html: Path, name: str, address: str) -> Path:
    path = unquote(urlsplit(address).path)
    return ((html / name).parent / path).resolve() if path else (html / name).resolve()
