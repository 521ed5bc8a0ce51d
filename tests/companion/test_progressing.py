import json
import time

from neuronkit.companion.progressing import progress
from neuronkit.companion.runner import Told


def states(folder):
    return [json.loads(file.read_text()) for file in folder.glob("progress-*.json")]


def test_how_far_a_loop_is_shows_before_its_first_step_and_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURONKIT_CELL", str(tmp_path))
    seen = []

    def slow():
        seen.extend(states(tmp_path))  # asked for the first step: the file must be there already
        yield 1
        time.sleep(0.4)
        yield 2

    loop = progress(slow(), "jobs", total=2)
    assert [next(loop), next(loop)] == [1, 2]
    assert [s["done"] for s in seen] == [0] and [s["done"] for s in states(tmp_path)] == [1]
    assert list(loop) == [] and states(tmp_path) == []


def test_the_runner_adds_what_its_workers_have_done(tmp_path):
    started = time.time() - 100
    loop = {"what": "jobs of train", "done": 0, "total": 4, "started": started, "worker": False}
    part = {"what": "training", "done": 50, "total": 100, "started": started, "worker": True}
    (tmp_path / "progress-1.json").write_text(json.dumps(loop))
    (tmp_path / "progress-2.json").write_text(json.dumps(part))
    (tmp_path / "progress-3.json").write_text(json.dumps(part))
    assert Told._one("notebook", tmp_path) == "notebook: jobs of train 25%, about 5 min left"
