"""Assembles a run into a folder and has Jupyter Book make it into pages.

The folder is laid anew each time and holds whole entries of the store only, so that a failed or half-written notebook
can't be published. The pages are built aside and moved into place.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from neuronkit.companion import generated, keys, places, recorded, runs
from neuronkit.companion.runner import Failed


def pages(run: runs.Run) -> Path:
    """Where the built pages of a run are: `_build/html` for quick, `_build/runs/NAME/html` for any other."""
    build = places.work() / "_build"
    return build / "html" if run.name == "quick" else build / "runs" / run.name / "html"


def build(run: runs.Run, say=print) -> Path:
    """Stage the run and build its pages; returns the first page. Nothing is built twice from the same folder.

    Raises Failed with Sphinx's first complaint: warnings are errors, as a number or a figure may be missing.
    """
    stage, html = _stage(run), pages(run)
    stamp = html / ".built_from"
    made_of = keys.contents(stage)
    if not stamp.exists() or stamp.read_text() != made_of:
        say("building the pages")
        _sphinx(stage, html)
        stamp.write_text(made_of)
    return html / "index.html"


def _stage(run: runs.Run) -> Path:
    root = places.root()
    stage = places.work() / "_build" / "stage" / run.name
    shutil.rmtree(stage, ignore_errors=True)
    places.make(stage)
    shutil.copytree(root / "book", stage / "book", ignore=shutil.ignore_patterns("_static"))
    shutil.copytree(root / "book" / "_static", stage / "_static")
    shutil.copy(root / "_config.yml", stage)
    executed = {name: entry for name in run.notebooks if (entry := run.entry(name))}
    for name, entry in executed.items():
        page = stage / "notebooks" / f"{name}.ipynb"
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(entry / "notebook.ipynb", page)
        for file in entry.glob("*.*"):
            if file.suffix in (".csv", ".svg", ".png"):
                (stage / "_static" / "exhibits").mkdir(exist_ok=True)
                shutil.copy(file, stage / "_static" / "exhibits")
    _add_recorded(stage, executed)
    generated.write(stage, run)
    _unlink_missing(stage)
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    (stage / "_toc.yml").write_text(yaml.safe_dump(_present(toc, stage), sort_keys=False))
    return stage


def _add_recorded(stage: Path, executed: dict) -> None:
    """Put the recorded run before the exercises of each notebook, and its CSV where pages find it."""
    import nbformat

    for name in executed:
        text = recorded.section(name)
        if not text:
            continue
        page = stage / "notebooks" / f"{name}.ipynb"
        node = nbformat.read(page, as_version=4)
        for cell in node.cells:
            if cell.cell_type == "markdown":
                cell.source = re.sub(r"^(?=## Exercises$)", lambda _, text=text: f"{text}\n", cell.source, flags=re.M)
        nbformat.write(node, page)
        shutil.copytree(
            recorded.notebook(name)["folder"],
            stage / "_static" / "recorded",
            ignore=shutil.ignore_patterns("*.json"),
            dirs_exist_ok=True,
        )


def _unlink_missing(stage: Path) -> None:
    """Turn links to notebooks that this run lacks into words, in the pages and in the other notebooks."""
    import nbformat

    for page in (stage / "book").glob("*.md"):
        page.write_text(_unlinked(page.read_text(encoding="utf-8"), page.parent, stage), encoding="utf-8")
    for page in (stage / "notebooks").rglob("*.ipynb"):
        node = nbformat.read(page, as_version=4)
        for cell in node.cells:
            if cell.cell_type == "markdown":
                cell.source = _unlinked(cell.source, page.parent, stage)
        nbformat.write(node, page)


def _unlinked(text: str, folder: Path, stage: Path) -> str:
    def link(match):
        target = (folder / match[2]).resolve()
        missing = (stage / "notebooks").resolve() in target.parents and not _exists(target)
        return f"{match[1]} (not in this run)" if missing else match[0]

    return re.sub(r"\[([^\]\[]+)\]\(([^)#:\s]+)[^)]*\)", link, text)


def _present(toc, stage: Path):
    """The table of contents without the notebooks that this run lacks."""
    if isinstance(toc, list):
        return [_present(item, stage) for item in toc if "file" not in item or _exists(stage / item["file"])]
    if isinstance(toc, dict):
        kept = {name: _present(value, stage) for name, value in toc.items()}
        return {name: value for name, value in kept.items() if value != []}
    return toc


def _exists(page: Path) -> bool:
    return any(page.with_name(page.name + suffix).is_file() for suffix in (".md", ".ipynb"))


def _sphinx(stage: Path, html: Path) -> None:
    out = stage.parent / f"{stage.name}.built"
    shutil.rmtree(out, ignore_errors=True)
    jupyter_book = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", jupyter_book, "build", str(stage), "--path-output", str(out)]
    done = subprocess.run([*command, "--all", "-W", "--keep-going"], capture_output=True, text=True)
    built = out / "_build" / "html"
    if done.returncode or not (built / "index.html").is_file():
        log = out.with_suffix(".log")
        log.write_text(done.stdout + done.stderr)
        complaints = [line for line in log.read_text().splitlines() if "WARNING" in line or "ERROR" in line]
        raise Failed(f"the book was not built: {(complaints or ['Sphinx stopped'])[0]} (all of it: {log})")
    places.make(html.parent)
    old = html.with_name("html.old")
    shutil.rmtree(old, ignore_errors=True)
    if html.exists():
        html.rename(old)
    built.rename(html)
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(out)
