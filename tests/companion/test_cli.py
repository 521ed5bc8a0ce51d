import json
import os
import signal
import subprocess
import sys
import time

import filelock
import pytest
from click.testing import CliRunner

from neuronkit.companion import runs
from neuronkit.companion.cli import main
from tests.conftest import ROOT, neuronkit

NAME = "1_modularity/01_networks"
SMOKE = ["run", NAME, "--profile", "smoke"]


@pytest.fixture
def say(home):
    """Run the command line in this process: (exit status, everything that it said)."""

    def run(*words):
        done = CliRunner().invoke(main, list(words))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "1_modularity/01_netwroks"], 'did you mean "1_modularity/01_networks"'),
        (["run", "--profile", "quik"], 'did you mean "quick"'),
        (["check", "--run", "nope"], 'unknown run "nope"'),
        (["list", "--run", "nope"], 'unknown run "nope"'),
        (["claims", "--run", "nope"], 'unknown run "nope"'),
        (["params", "nope"], 'unknown notebook "nope"'),
        (["record", "--run", "nope"], 'unknown run "nope"'),
        (["data", "fetch", "imagenet"], 'unknown data set "imagenet"'),
        ([*SMOKE, "-p", "sede=3"], 'did you mean "seed"'),
        ([*SMOKE, "-p", "seed=abc"], "seed=abc is not of type int"),
        ([*SMOKE, "-p", "runs=0"], "it must lie in 1 to 1000"),
        ([*SMOKE, "-p", "seed"], "write -p name=value"),
        ([*SMOKE, "--jobs", "0"], "jobs"),
        ([*SMOKE, "--name", "../x"], "can't name a run"),
        ([*SMOKE, "--name", ""], "can't name a run"),
        ([*SMOKE, "-p"], "requires an argument"),
        (["rnu"], "rnu"),
        (["run", "--nmae", "x"], "--nmae"),
        (["data", "fetch"], "NAMES"),
        ([*SMOKE, "-p", "source=/nowhere.csv"], "/nowhere.csv is not a file or folder"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(say, home, words, sentence):
    status, said = say(*words)
    assert status == 2, said
    last = said.strip().splitlines()[-1]
    assert last.startswith("neuronkit: ") and sentence in last
    assert "Traceback" not in said
    store = home / "store"
    assert not store.exists() or not [p for p in store.iterdir() if p.is_dir()]


def test_a_place_that_can_not_be_written_is_named(say, home, monkeypatch):
    (home / "file").touch()
    monkeypatch.setenv("NEURONKIT_HOME", str(home / "file" / "below"))
    status, said = say(*SMOKE)
    assert status == 2 and "set NEURONKIT_HOME to a folder that can be" in said


def test_the_same_run_twice_at_once_is_refused(say, home):
    runs.folder().mkdir()
    with filelock.FileLock(runs.folder() / "smoke.lock"):
        status, said = say(*SMOKE)
    assert status == 2 and "being made by another process" in said


def test_a_damaged_manifest_is_named(say, home):
    runs.folder().mkdir()
    (runs.folder() / "broken.json").write_text("{")
    for words in (["check", "--run", "broken"], ["clean"]):
        status, said = say(*words)
        assert status == 2 and "broken.json is not a run as it was written" in said


def test_params_and_data_and_list_tell_what_there_is(say):
    status, said = say("params", NAME)
    assert status == 0 and "epochs: int = 500  (1 to 10000)" in said and "smoke: 1, quick:" in said
    status, said = say("data")
    assert status == 0 and "99003ca70308" in said and "licence" in said
    status, said = say("list")
    assert status == 0 and f"{NAME}  [missing in run quick]" in said and "p1.table1" in said


def test_help_is_there(say):
    for words in ([], ["run"], ["data"]):
        status, said = say(*words, "--help")
        assert status == 0 and "Usage" in said


def test_a_real_process_says_one_sentence(home):
    done = neuronkit(*SMOKE, "-p", "sede=3", home=home)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith('neuronkit: unknown parameter "sede": did you mean "seed"')
    assert len(done.stderr.splitlines()) == 1


def test_a_finished_run_is_listed_checked_and_scored(smoke):
    assert f"{NAME}  [fresh in run smoke]" in neuronkit("list", "--run", "smoke", home=smoke).stdout
    assert "nothing amiss" in neuronkit("check", "--run", "smoke", home=smoke).stdout
    rows = json.loads(neuronkit("claims", "--run", "smoke", "--json", home=smoke).stdout)
    assert len(rows) == 85
    row = next(r for r in rows if r["id"] == "p1.discarded")
    assert set(row) >= {"id", "verdict", "value", "low", "high", "n", "why"}
    assert row["verdict"] in ("holds", "does not hold", "undecided")


def test_nothing_is_done_twice(smoke):
    before = {p: p.stat().st_mtime_ns for p in (smoke / "store").glob("*/result.json")}
    page = smoke / "_build" / "runs" / "smoke" / "html" / "index.html"
    built = page.stat().st_mtime_ns
    start = time.monotonic()
    done = neuronkit("build", "--profile", "smoke", home=smoke)
    assert done.returncode == 0 and "fresh" in done.stdout and "building" not in done.stdout
    assert time.monotonic() - start < 30
    assert page.stat().st_mtime_ns == built
    assert {p: p.stat().st_mtime_ns for p in (smoke / "store").glob("*/result.json")} == before


def test_clean_keeps_what_a_run_uses(smoke):
    kept = sorted(p.name for p in (smoke / "store").iterdir() if p.suffix != ".lock")
    old = smoke / "store" / "0123456789ab.new-x"
    old.mkdir()
    for path in [old, *(p for p in (smoke / "store").iterdir() if p.is_dir())]:
        os.utime(path, (0, 0))
    assert neuronkit("clean", home=smoke).returncode == 0
    assert sorted(p.name for p in (smoke / "store").iterdir() if p.suffix != ".lock") == kept
    assert "nothing amiss" in neuronkit("check", "--run", "smoke", home=smoke).stdout


def start_training(home):
    command = [sys.executable, "-m", "neuronkit", *SMOKE, "-p", "epochs=400", "-p", "limit=20000", "--name", "k"]
    environment = os.environ | {"NEURONKIT_HOME": str(home)}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        # A shell gives what it starts in the background an ignored SIGINT; a person's terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    end = time.monotonic() + 120
    while not list((home / "store").glob("*.part/state.safetensors")):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.2)
    return process


def kernels():
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()
    return [line for line in found if "ipykernel_launcher" in line and "NEURONKIT_CELL" in line]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_half_and_no_kernel(home, how):
    process = start_training(home)
    process.send_signal(how)
    try:
        assert process.wait(30) == (130 if how == signal.SIGINT else -signal.SIGKILL)
    finally:
        process.kill()
    end = time.monotonic() + 60
    while kernels():
        assert time.monotonic() < end, "a kernel outlived its runner"
        time.sleep(0.5)
    assert not list((home / "store").glob("*/result.json")) and list((home / "store").glob("*.part"))
    manifest = json.loads((home / "runs" / "k.json").read_text())
    assert "key" not in manifest["notebooks"].get(NAME, {})
