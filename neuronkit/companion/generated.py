"""Pages that are made from a run and from the lists of claims and exhibits: scoreboard, gallery, functions."""

import ast
import html
import re
from collections import Counter
from pathlib import Path

from neuronkit.companion import keys, recorded, runs, scores
from neuronkit.companion.ledger import book, with_interval

PAPERS = {
    1: "Clustering units",
    2: "Activation sparsity",
    3: "Skill neurons",
    4: "Individual neurons",
}
VERDICTS = ("holds", "does not hold", "undecided", "not tested", "to come")


def write(stage: Path, run: runs.Run) -> None:
    """Write the generated pages of a run into a staged book."""
    rows = scores.rows(run)
    (stage / "generated").mkdir()
    (stage / "generated" / "scoreboard.md").write_text(scoreboard(run, rows), encoding="utf-8")
    (stage / "generated" / "gallery.md").write_text(gallery(run, rows), encoding="utf-8")
    (stage / "source").mkdir()
    for name, text in sources().items():
        (stage / "source" / f"{name}.md").write_text(text, encoding="utf-8")


def scoreboard(run: runs.Run, rows: list[dict]) -> str:
    """The claims of all papers with their verdicts in a run, to be filtered by paper and verdict without a script."""
    tested = [row for row in rows if row["verdict"] in VERDICTS[:3]]
    judged = sum(row["n"] is not None and row["low"] is not None for row in tested)
    chance = f"Of {judged} verdicts from 95 % intervals, about {0.05 * judged:.1f} are expected to be wrong by chance."
    if not judged:
        chance = "No verdict rests on a 95 % interval, which takes three replicates."
    counts = Counter((row["paper"], row["verdict"]) for row in rows)
    lines = [[f"{n} · {title}", *(counts[n, v] or "" for v in VERDICTS)] for n, title in PAPERS.items()]
    heads = ("verdict", "the paper says", "it reports", "we get", "smallest effect to be seen", "recorded run")
    by_verdict = sorted(rows, key=lambda row: VERDICTS.index(row["verdict"]))  # what was tested comes first
    table = _rows("th", [heads]), "".join(map(_claim, by_verdict))
    filters = _filter("paper", PAPERS) + _filter("verdict", {_slug(v): v for v in VERDICTS})
    region = '<div class="scrolls tall" tabindex="0" role="region" aria-label="claims and verdicts">'
    board = f'{filters}{region}<table class="exhibit"><thead>{table[0]}</thead><tbody>{table[1]}</tbody></table></div>'
    return f"""Run *{run.name}*, profile *{run.profile}*: {len(tested)} of {len(rows)} claims were tested.
{chance}
*We get* shows the part of a claim that decides; *how judged* says what was measured. Half the width of an interval is
the smallest effect that this run could have seen: a difference below it can't be told from none. *Recorded run* is the
verdict of a run of the profile *{recorded.PROFILE}* that is kept with the book;
a star marks code that has changed since.

{_raw(_table(["paper", *VERDICTS], lines))}

{_raw(f'<div class="scoreboard">{board}</div>')}
"""


def gallery(run: runs.Run, rows: list[dict]) -> str:
    """Every exhibit of the papers: a small picture, its number and title, verdicts, CSV, page and function."""
    made = {i: (name, files) for name, ledger in run.ledgers().items() for i, files in ledger["exhibits"].items()}
    verdicts = {row["id"]: row["verdict"] for row in rows}
    resting = {i: [c for c, said in book("claims").items() if i in said["exhibits"]] for i in book("exhibits")}
    parts = []
    for paper, title in PAPERS.items():
        cards = [
            _card(run, i, e, made.get(i), [(c, verdicts[c]) for c in resting[i]])
            for i, e in book("exhibits").items()
            if e["paper"] == paper
        ]
        cards = "".join(cards)
        parts.append(f"## {title}\n\n" + _raw(f'<div class="gallery">{cards}</div>'))
    return "\n\n".join(parts) + "\n"


def sources() -> dict[str, str]:
    """{module: a page} with the source of every public module, a heading and a target for each function."""
    pages = {}
    for file in sorted(keys.PACKAGE.rglob("*.py")):
        parts = file.relative_to(keys.PACKAGE.parent).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        if parts[1] == "companion" or (file.stem.startswith("__") and module != "neuronkit.data"):
            continue
        pages[module] = _source(module, file.read_text(encoding="utf-8"))
    return pages


def target(name: str) -> str:
    """The anchor that Sphinx makes of a dotted name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _source(module: str, text: str) -> str:
    lines, blocks, start, heading = text.splitlines(), [], 0, ""
    for node in [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]:
        if not node.name.startswith("_"):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            blocks.append((heading, lines[start:first]))
            # A function and a class may have one name but for the case: what is linked to are functions.
            anchor = f"({module}.{node.name})=\n" if isinstance(node, ast.FunctionDef) else ""
            start, heading = first, f"{anchor}## {node.name}\n\n"
    blocks.append((heading, lines[start:]))
    texts = ((heading, "\n".join(block).strip()) for heading, block in blocks)
    shown = (f"{heading}```python\n{text}\n```" for heading, text in texts if text)
    return f"# {module}\n\n" + "\n\n".join(shown) + "\n"


def _claim(row: dict) -> str:
    page = f"../notebooks/{row['notebook']}.html#paper-says-we-get"
    says = html.escape(row["says"])
    linked = f'<a href="{page}">{says}</a>' if row["verdict"] not in ("to come", "not tested") else says
    we_get = html.escape(row["why"])
    if row["value"] is not None:
        named = f"{row['part']}: " if row["part"] else ""
        judged = html.escape(book("claims")[row["id"]]["judged"])
        we_get = f"{html.escape(named)}{with_interval(row)}; asked: {row['asked']}"
        we_get += f"<details><summary>how judged</summary>{judged}</details>"
    effect = f"{(row['high'] - row['low']) / 2:.2g}" if row["low"] is not None and row["n"] else ""
    cells = (
        _chip(row["verdict"]),
        f"{linked} <small>{row['id']}</small>",
        html.escape(row["reported"]),
        we_get,
        effect,
        _recorded(row),
    )
    data = f'data-paper="{row["paper"]}" data-verdict="{_slug(row["verdict"])}"'
    return f"<tr {data}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _recorded(row: dict) -> str:
    found = recorded.verdict(row["id"], row["notebook"])
    if found is None:
        return ""
    verdict, changed = found
    return _chip(verdict) + (' <span title="the code has changed since">*</span>' if changed else "")


def _card(run: runs.Run, exhibit_id: str, exhibit: dict, made: tuple | None, verdicts: list) -> str:
    title = html.escape(exhibit["title"])
    links = []
    if made is None:
        picture = f'<div class="picture to-come">{html.escape(exhibit.get("why", "to come"))}</div>'
    else:
        notebook, files = made
        page = f"../notebooks/{notebook}.html#{target(exhibit_id)}"
        if f"{exhibit_id}.png" in files:
            inner = f'<img src="../_static/exhibits/{exhibit_id}.png" alt="{title}, a small picture" loading="lazy">'
        else:
            inner = _small_table((run.entry(notebook) / f"{exhibit_id}.csv").read_text())
        picture = f'<a class="picture" href="{page}" aria-label="{title}">{inner}</a>'
        module, _, function = exhibit["function"].rpartition(".")
        links = [
            f'<a href="{page}">page</a>',
            f'<a href="../_static/exhibits/{exhibit_id}.csv" download>CSV</a>',
            f'<a href="../source/{module}.html#{target(exhibit["function"])}"><code>{function}</code></a>',
        ]
    by_verdict = {v: [claim for claim, verdict in verdicts if verdict == v] for v in VERDICTS}
    chips = "".join(_chips(verdict, claims) for verdict, claims in by_verdict.items() if claims)
    number = html.escape(exhibit["number"])
    return (
        f'<figure class="card">{picture}<figcaption><b>{number}</b><br>{title}{chips}{" · ".join(links)}'
        "</figcaption></figure>"
    )


def _chips(verdict: str, claims: list[str]) -> str:
    """The verdict and how many claims have it; opens to their names."""
    times = f" × {len(claims)}" if len(claims) > 1 else ""
    return f"<details><summary>{_chip(verdict)}{times}</summary>{', '.join(claims)}</details>"


def _small_table(csv: str) -> str:
    """The first cells of a table."""
    import csv as reader

    rows = [row[:4] for row in list(reader.reader(csv.splitlines()))[:5]]
    return _table(rows[0], rows[1:], kind="small")


def _table(head: list, rows: list, kind: str = "exhibit") -> str:
    table = f"<thead>{_rows('th', [head])}</thead><tbody>{_rows('td', rows)}</tbody>"
    return f'<div class="scrolls"><table class="{kind}">{table}</table></div>'


def _rows(tag: str, rows: list) -> str:
    cells = ("".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row) for row in rows)
    return "".join(f"<tr>{row}</tr>" for row in cells)


def _filter(name: str, values: dict) -> str:
    def choice(value, label, checked=""):
        return f'<label><input type="radio" name="{name}" value="{value}"{checked}> {label}</label> '

    choices = [choice(v, f"{v} · {label}" if name == "paper" else label) for v, label in values.items()]
    return f"<fieldset><legend>{name}</legend>{choice('all', 'all', ' checked')}{''.join(choices)}</fieldset>"


def _chip(verdict: str) -> str:
    mark = dict(zip(VERDICTS, ("✓", "✗", "?", "–", "…"), strict=True))[verdict]
    return f'<span class="verdict {_slug(verdict)}">{mark} {verdict}</span>'


def _slug(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _raw(text: str) -> str:
    return f"```{{raw}} html\n{text}\n```"
