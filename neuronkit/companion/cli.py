"""The command line. Exit status 0: done; 2: the user's mistake, in one sentence; 1: a notebook or a check failed."""

import json
import os
import sys
import time
import warnings

import click

from neuronkit import InputError


class Sentences(click.Group):
    """A group whose every refusal is one sentence."""

    def main(self, *args, **kwargs):
        warnings.showwarning = lambda message, *_, **__: click.echo(f"neuronkit: {message}", err=True)
        try:
            super().main(*args, **(kwargs | {"standalone_mode": False}))
        except (InputError, click.ClickException) as mistake:
            text = mistake.format_message() if isinstance(mistake, click.ClickException) else str(mistake)
            self._end(text, 2)
        except (KeyboardInterrupt, click.Abort):
            click.echo("neuronkit: stopped; what was finished is kept, and the same command goes on.", err=True)
            os._exit(130)  # not by way of the threads that still wait for a kernel's answer
        except BrokenPipeError:
            os._exit(0)  # the reader (head, less) has seen enough
        except Exception as error:
            from neuronkit.companion.runner import Failed

            if not isinstance(error, Failed):
                raise
            self._end(str(error), 1)
        sys.exit(0)

    @staticmethod
    def _end(text: str, status: int):
        click.echo(f"neuronkit: {text}", err=True)
        sys.exit(status)


@click.group(cls=Sentences, context_settings={"help_option_names": ["-h", "--help"]})
def main():
    """Run the notebooks of the book, build it, check it, and look at what it found."""


def _run_options(command):
    for option in reversed(
        [
            click.argument("selected", metavar="[NOTEBOOK]...", nargs=-1),
            click.option("--profile", default="quick", show_default=True, help="How much is computed."),
            click.option("-p", "given", multiple=True, metavar="[NOTEBOOK.]NAME=VALUE", help="Set a parameter."),
            click.option("--name", metavar="RUN", help="Name of the run; by default the profile's."),
            click.option("--jobs", type=click.IntRange(1), default=os.cpu_count(), help="Kernels at a time."),
            click.option("--force", is_flag=True, help="Execute fresh notebooks too; computed results are reused."),
        ]
    ):
        command = option(command)
    return command


@main.command()
@_run_options
def run(selected, **options):
    """Execute the notebooks that are stale (all, or those named)."""
    from neuronkit.companion import runner

    runner.run(list(selected), say=click.echo, **options)


@main.command()
@_run_options
def build(selected, **options):
    """Execute what is stale, build the book, check it."""
    from neuronkit.companion import book, runner

    start = time.monotonic()
    made = runner.run(list(selected), say=click.echo, **options)
    page = book.build(made, say=click.echo)
    _check(made)
    click.echo(
        f"The book of run {made.name} is ready after {(time.monotonic() - start) / 60:.1f} minutes. Open:\n{page}"
    )


@main.command()
@click.option("--run", "name", default="quick", show_default=True, metavar="RUN")
def check(name):
    """Check that nothing of a run has failed, is missing, stale or unlinked, and that its pages stand alone."""
    from neuronkit.companion import runs

    _check(runs.load(name))
    click.echo(f"Run {name}: nothing amiss.")


def _check(made) -> None:
    from neuronkit.companion import check, runner

    if found := check.complaints(made):
        raise runner.Failed(f"run {made.name} does not pass the check:\n  " + "\n  ".join(found))


@main.command()
@click.option("--run", "name", default="laptop", show_default=True, metavar="RUN")
def record(name):
    """Keep the ledger and CSV of a run in the checkout, to be shown beside later runs."""
    from neuronkit.companion import recorded, runs

    for folder in recorded.record(runs.load(name)):
        click.echo(f"Recorded in {folder}. Commit it with the code that made it.")


@main.command("list")
@click.option("--run", "name", default="quick", show_default=True, metavar="RUN")
def list_(name):
    """Every notebook: how it stands in a run, minutes per profile, what it makes."""
    from neuronkit.companion import notebooks, runs

    runs.check_name(name)
    known = runs.load(name) if name != "quick" or name in runs.names() else None
    for notebook in map(notebooks.read, notebooks.names()):
        about = notebook.about
        minutes = ", ".join(f"{profile} {m:g}" for profile, m in about.get("minutes", {}).items())
        click.echo(f"{notebook.name}  [{runs.state(known, notebook.name)} in run {name}]")
        click.echo(f"    minutes: {minutes}")
        click.echo(f"    exhibits: {', '.join(about.get('exhibits', [])) or 'none'}")
        click.echo(f"    claims: {', '.join(about.get('claims', [])) or 'none'}")


@main.command()
@click.argument("notebook")
def params(notebook):
    """The parameters of a notebook: type, default, range, help, and the value in each profile."""
    from neuronkit.companion import notebooks

    source = notebooks.read(notebook)
    values = {name: notebooks.profile(name).get(source.name, {}) for name in notebooks.profiles()}
    for p in source.parameters().values():
        click.echo(f"{p.name}: {p.type} = {p.default!r}" + (f"  ({p.range()})" if p.range() else ""))
        click.echo(f"    {p.help}")
        click.echo("    " + ", ".join(f"{name}: {v.get(p.name, p.default)!r}" for name, v in values.items()))


@main.command()
@click.option("--run", "name", default="quick", show_default=True, metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Rows of id, verdict, value, low, high, n, why.")
def claims(name, as_json):
    """The papers' claims and the verdicts of a run."""
    from neuronkit.companion import runs, scores

    rows = scores.rows(runs.load(name))
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        click.echo(f"{row['id']:28} {row['verdict']:14} {row['why'] or row['says']}")
    click.echo(scores.summary(rows))


@main.group("data", invoke_without_command=True)
@click.pass_context
def data_(context):
    """What data there are, from where, under which licence; fetch them."""
    if context.invoked_subcommand is None:
        context.invoke(data_list)


@data_.command("list")
def data_list():
    """Name, content, source, licence, size, sha256 and whether it is in the data folder."""
    from neuronkit import data
    from neuronkit.data import sources

    for row in data.available().to_dict("records"):
        where = "in the data folder" if row["cached"] else "not fetched yet"
        click.echo(f"{row['name']}: {row['content']}\n    {row['source']}, {row['MB']} MB, {where}")
        click.echo(f"    licence: {row['licence']}\n    sha256: {row['sha256']}")
    click.echo(f"data folder: {sources.folder()}")


@data_.command()
@click.argument("names", nargs=-1, required=True)
def fetch(names):
    """Fetch data sets into the data folder."""
    from neuronkit import data, unknown

    known = list(data.available()["name"])
    for name in names:
        if name not in known:
            raise unknown("data set", name, known)
    for name in names:
        data.fetch(name)
        click.echo(f"{name} is in the data folder.")


@main.command()
@click.option("--all", "everything", is_flag=True, help="All runs, results and built books (data sets stay).")
def clean(everything):
    """Remove results that no run uses and that are older than a day."""
    from neuronkit.companion import runs

    removed, size = runs.clean(everything)
    click.echo(f"Removed {removed} results, {size / 1e6:.1f} MB.")
