"""Recorded runs: what a long run found, kept in the repository and shown beside the present run.

`recorded/laptop/PAPER/` holds `run.json` (per notebook its parameters, minutes, code and ledger, and what it was
computed with) and the CSV of each exhibit and kept table; no pictures and no executed notebooks. The minutes are those
of the longest run recorded with the same parameters.
"""

import ast
import html
import json
import os
import platform
import shutil
import tempfile
from functools import cache
from pathlib import Path

from neuronkit import InputError, data
from neuronkit.companion import keys, notebooks, places, runs
from neuronkit.companion.card import versions
from neuronkit.companion.ledger import as_html, book, verdict_of, with_interval

PROFILE = "laptop"  # the one that is recorded


def folder() -> Path:
    """Where records are, in the checkout."""
    return places.root() / "recorded"


def record(run: runs.Run) -> list[Path]:
    """Write a run's record, one folder per paper, in place of the one before; returns the folders.

    Raises InputError unless the run has the profile that is recorded and every notebook of its papers is fresh in it.
    """
    if run.profile != PROFILE:
        raise InputError(f"run {run.name} has the profile {run.profile}: only a run of {PROFILE} is recorded.")
    papers = sorted({name.split("/")[0] for name in run.notebooks})
    chosen = {paper: [n for n in notebooks.names() if n.startswith(f"{paper}/")] for paper in papers}
    for name in [n for names in chosen.values() for n in names]:
        if (state := runs.state(run, name)) != "fresh":
            raise InputError(f"{name} is {state} in run {run.name}: make the whole run before you record it.")
    return [_write(run, paper, names) for paper, names in chosen.items()]


@cache
def notebook(name: str) -> dict | None:
    """What is recorded of a notebook: parameters, minutes, ledger, provenance, and whether its code has changed."""
    paper, stem = name.split("/")
    file = folder() / PROFILE / paper / "run.json"
    if not file.exists():
        return None
    run = json.loads(file.read_text(encoding="utf-8"))
    if stem not in run["notebooks"]:
        return None
    found = run["notebooks"][stem]
    return found | {"computed": run["computed"], "changed": found["code"] != code(name), "folder": file.parent}


def verdict(claim_id: str, notebook_name: str) -> tuple[str, bool] | None:
    """(verdict, whether the code has changed since) of a claim in the recorded run, or None."""
    made = notebook(notebook_name)
    if made is None or claim_id not in made["ledger"]["claims"]:
        return None
    return verdict_of(made["ledger"]["claims"][claim_id]), made["changed"]


def code(name: str) -> str:
    """A digest of the code behind a notebook's numbers: its cells, and the models, metrics and readers that they use.

    Of the data only the readers of the notebook's own data sets count, and what it imports by name: another data set
    changes nothing here.
    """
    source = notebooks.read(name)
    tree = ast.parse(source.code)
    readers = {data.module_of(name) for name in source.about.get("data", [])}
    readers |= {imported for imported in keys.imports(tree) if imported.startswith("neuronkit.data.")}
    of_package = {
        file: digest
        for file, digest in keys.code(keys.imports(tree) | readers).items()
        if file.startswith(("neuronkit/models/", "neuronkit/metrics/")) or file[:-3].replace("/", ".") in readers
    }
    return keys.digest({"cells": ast.dump(tree), "package": of_package})


def section(name: str) -> str:
    """The recorded run of a notebook as a piece of its page; empty where nothing is recorded."""
    made = notebook(name)
    if made is None:
        return ""
    rows = []
    for claim, found in made["ledger"]["claims"].items():
        says = f"{html.escape(book('claims')[claim]['says'])} <small>{claim}</small>"
        parts = [html.escape(_part(*item)) for item in found.get("parts", {}).items()] or [html.escape(found["why"])]
        rows.append(f"<td>{says}</td><td>{'<br>'.join(parts)}</td><td>{verdict_of(found)}</td>")
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    head = "<tr><th>the paper says</th><th>that run got: value, 95 % interval, replicates</th><th>verdict</th></tr>"
    table = f'<table class="exhibit"><thead>{head}</thead><tbody>{body}</tbody></table>'
    csv = " · ".join(
        f'<a href="../../_static/recorded/{i}.csv" download>{i}.csv</a>' for i in sorted(made["ledger"]["exhibits"])
    )
    parameters = ", ".join(f"{n} = {v!r}" for n, v in made["parameters"].items())
    mark = '<p class="changed">The code behind these numbers has changed since they were computed.</p>'
    tables = "".join(
        f"<details><summary>{html.escape(title)}</summary>{as_html(_read_csv(made['folder'] / file))}</details>"
        for title, file in made["tables"].items()
    )
    text = f"""<p>Profile <i>{PROFILE}</i>, kept with the book so that it stands beside whatever run made this page.
{html.escape(made["computed"])}; {made["minutes"]:.1f} minutes. Parameters: {html.escape(parameters)}.</p>"""
    table = f'<div class="scrolls" tabindex="0" role="region" aria-label="recorded verdicts">{table}</div>'
    body = f"{text}{mark * made['changed']}{table}{tables}<p>{csv}</p>"
    return f"## A recorded run\n\n```{{raw}} html\n{body}\n```\n"


def _read_csv(file: Path):
    import pandas as pd

    return pd.read_csv(file)


def _part(name: str, part: dict) -> str:
    return f"{name}: {with_interval(part)} ({part['verdict']})" if name else with_interval(part)


def _recorded(place: Path) -> dict:
    file = place / "run.json"
    return json.loads(file.read_text(encoding="utf-8"))["notebooks"] if file.exists() else {}


def _write(run: runs.Run, paper: str, names: list[str]) -> Path:
    place = folder() / PROFILE / paper
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{paper}-"))
    before = _recorded(place)
    found = {}
    for name in names:
        stem, entry, made = name.split("/")[1], run.entry(name), run.notebooks[name]
        paths = runs.named_files(made["parameters"])
        parameters = {n: paths[n].name if n in paths else v for n, v in made["parameters"].items()}
        ledger = json.loads((entry / "ledger.json").read_text())
        tables = {title: f"{stem}-{file}" for title, file in ledger.pop("tables", {}).items()}
        minutes = round(made["seconds"] / 60, 2)
        if before.get(stem, {}).get("parameters") == parameters:  # who runs again finds results in the store
            minutes = max(minutes, before[stem]["minutes"])
        about = {"parameters": parameters, "minutes": minutes, "code": code(name), "ledger": ledger, "tables": tables}
        found[stem] = about
        for file in entry.glob("*.csv"):
            shutil.copy(file, aside / (f"{stem}-{file.name}" if file.name.startswith("table-") else file.name))
    commits = {json.loads((run.entry(name) / "meta.json").read_text())["commit"] for name in names}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    computed = f"Computed at commit {', '.join(sorted(commits))} on {machine}; {versions()}"
    about = {"computed": computed, "notebooks": found}
    (aside / "run.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    aside.chmod(0o755)
    shutil.rmtree(place, ignore_errors=True)
    aside.rename(place)
    notebook.cache_clear()
    return place
