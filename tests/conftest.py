"""Fixtures that several test files share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def neuronkit(*words: str, home: Path, **more) -> subprocess.CompletedProcess:
    """The command line as a real process, with its results in `home`."""
    environment = os.environ | {"NEURONKIT_HOME": str(home)} | more
    command = [sys.executable, "-m", "neuronkit", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """An empty folder for store, runs and books."""
    monkeypatch.setenv("NEURONKIT_HOME", str(tmp_path))
    monkeypatch.delenv("NEURONKIT_CELL", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> Path:
    """The home of a smoke run of the whole book, made once."""
    home = tmp_path_factory.mktemp("smoke")
    done = neuronkit("build", "--profile", "smoke", home=home)
    assert done.returncode == 0, done.stdout + done.stderr
    return home
