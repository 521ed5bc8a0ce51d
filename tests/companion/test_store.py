import concurrent.futures
import os
import signal
import subprocess
import sys
import time
import types

import filelock
import numpy as np
import pandas as pd
import pytest

from neuronkit import InputError
from neuronkit.companion import keys, places, store
from neuronkit.metrics import intervals
from neuronkit.models import mlp


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A module of neuronkit made for the test: returns a function that writes its source and imports it."""
    import importlib

    package = tmp_path / "src" / "neuronkit"
    package.mkdir(parents=True)
    monkeypatch.setattr(keys, "PACKAGE", package)
    monkeypatch.setattr(keys.code, "__defaults__", (package,))
    for name in ("__init__", "toy/__init__"):
        path = package / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.touch()

    parent = types.ModuleType("neuronkit.toy")
    monkeypatch.setitem(sys.modules, "neuronkit.toy", parent)

    def write(source: str, name: str = "made"):
        path = package / "toy" / f"{name}.py"
        path.write_text(source)
        os.utime(path, ns=(time.time_ns(), time.time_ns()))
        spec = importlib.util.spec_from_file_location(f"neuronkit.toy.{name}", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, f"neuronkit.toy.{name}", module)
        setattr(parent, name, module)
        spec.loader.exec_module(module)
        return module

    return write


COUNTED = '''
"""A module."""
from pathlib import Path

def counted(folder: str, n: int = 2) -> dict:
    """Words."""
    with (Path(folder) / "calls").open("a") as file:
        file.write("x")
    return {"n": n * FACTOR}

FACTOR = 2
'''


def calls(folder):
    return len((folder / "calls").read_text()) if (folder / "calls").exists() else 0


def test_the_second_call_reads_the_first(home, toy, tmp_path):
    f = toy(COUNTED).counted
    first, second = store.cached(f, folder=str(tmp_path)), store.cached(f, folder=str(tmp_path), n=2)
    assert first == second == {"n": 4} and first.key == second.key and calls(tmp_path) == 1
    assert store.cached(f, folder=str(tmp_path), n=3) == {"n": 6} and calls(tmp_path) == 2


@pytest.mark.parametrize(
    ("old", "new", "computed_again"),
    [
        ("FACTOR = 2", "FACTOR = 3", True),
        ('"""Words."""', '"""Other words."""', False),
        ('"""A module."""', "# a comment\n", False),
        ("n: int = 2", "n: int = 2 ", False),
        ("n: int = 2", "n: int = 5", True),
    ],
)
def test_code_counts_and_words_do_not(home, toy, tmp_path, old, new, computed_again):
    before = store.cached(toy(COUNTED).counted, folder=str(tmp_path)).key
    after = store.cached(toy(COUNTED.replace(old, new)).counted, folder=str(tmp_path)).key
    assert (before != after) == computed_again
    assert calls(tmp_path) == 1 + computed_again


def test_a_module_that_is_imported_inside_a_function_counts(home, toy):
    toy("X = 1", "helper")
    f = toy("def f() -> dict:\n    from neuronkit.toy import helper\n    return {'x': helper.X}").f
    key = store.cached(f).key
    toy("X = 2", "helper")
    assert store.cached(f).key != key
    toy("X = 2  # a word", "helper")
    assert store.cached(f)["x"] == 2


def test_versions_and_data_files_of_the_package_count(toy, tmp_path):
    toy("import numpy\n\ndef f() -> dict:\n    return {}")
    found = keys.code({"neuronkit.toy.made"})
    assert found["numpy"] == np.__version__ and found["python"] == f"3.{sys.version_info.minor}"
    (tmp_path / "src" / "neuronkit" / "toy" / "table.yml").write_text("a: 1")
    assert "neuronkit/toy/table.yml" in keys.code({"neuronkit.toy.made"})


def test_what_is_returned_comes_back_the_same(home, toy):
    source = """
import filelock
import numpy as np
import pandas as pd

def f() -> dict:
    a = np.arange(6.0).reshape(2, 3)
    return {"a": [a, {"b": a[0] > 1}], "t": pd.DataFrame({"x": [1, 2]}), "n": np.float64(1.5), "s": "é", "none": None}
"""
    result = store.cached(toy(source).f)
    assert np.array_equal(result["a"][0], np.arange(6.0).reshape(2, 3))
    assert result["a"][1]["b"].tolist() == [False, False, True]
    pd.testing.assert_frame_equal(result["t"], pd.DataFrame({"x": [1, 2]}))
    assert result["n"] == 1.5 and result["s"] == "é" and result["none"] is None
    with pytest.raises(ValueError, match="read-only"):
        result["a"][0][0, 0] = 7


def test_what_can_not_be_kept_leaves_nothing(home, toy):
    with pytest.raises(TypeError, match="can't keep"):
        store.cached(toy("def f() -> dict:\n    return {'x': object()}").f)
    assert not [p for p in (home / "store").iterdir() if p.suffix not in (".lock",) and ".new-" not in p.name]


def test_arguments_are_told_apart_by_their_contents(tmp_path):
    file = tmp_path / "f"
    file.write_text("a")
    values = [1, 1.0, True, "1", None, [1], {"a": 1}, np.array([1]), np.array([1.0]), np.array([[1]]), file]
    described = [keys.digest(keys.describe(v)) for v in values]
    assert len(set(described)) == len(values)
    assert keys.describe(np.int64(1)) == 1 and keys.describe((1, 2)) == keys.describe([1, 2])
    before = keys.describe(file)
    file.write_text("b")
    assert keys.describe(file) != before


def test_an_earlier_result_counts_by_its_key():
    result = store.Result(a=1)
    result.key = "abc"
    assert keys.describe(result) == {"result": "abc"}


def test_bad_input_is_one_sentence(home):
    def inside() -> dict:
        return {}

    for function in (lambda: {}, inside, np.mean, store.Result):
        with pytest.raises(InputError, match="can't be cached"):
            keys.of_call(function, {})
    with pytest.raises(InputError, match="can't be part of a key"):
        store.cached(intervals.mean_interval, values=object())
    with pytest.raises(InputError, match="can't be called so"):
        store.cached(intervals.mean_interval, valeus=[1])


def test_it_computes_with_one_thread(home, toy):
    source = """
import threadpoolctl
import torch

def f() -> dict:
    return {"torch": torch.get_num_threads(), "blas": max(p["num_threads"] for p in threadpoolctl.threadpool_info())}
"""
    assert store.cached(toy(source).f) == {"torch": 1, "blas": 1}


TRAIN = """
import sys, numpy as np
from neuronkit.companion import store
from neuronkit.models import mlp

mlp.CHECKPOINT_SECONDS = 0.0
SETTINGS = mlp.table1()[:8]
rng = np.random.default_rng(0)
images, labels = rng.integers(0, 256, (4000, 20, 20), dtype=np.uint8), rng.integers(0, 10, 4000)
print("ready", flush=True)
result = store.cached(mlp.train_ensemble, images=images, labels=labels, settings=SETTINGS, seed=1, epochs=EPOCHS)
print(result.key, flush=True)
"""


def train(home, epochs=40):
    script = TRAIN.replace("EPOCHS", str(epochs))
    environment = os.environ | {"NEURONKIT_HOME": str(home)}
    return subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_training_goes_on_and_ends_with_the_same_bits(home, tmp_path):
    killed = train(home)
    wait_for(lambda: list((home / "store").glob("*.part/state.safetensors")))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not [p for p in (home / "store").iterdir() if "." not in p.name]
    [part] = (home / "store").glob("*.part")
    from safetensors.numpy import load_file

    done = len(load_file(part / "state.safetensors")["losses"])
    assert 0 < done < 40
    resumed = train(home)
    key = resumed.communicate()[0].split()[-1]
    whole = train(tmp_path / "other")
    assert whole.communicate()[0].split()[-1] == key
    a, b = (store.read(folder / "store" / key) for folder in (home, tmp_path / "other"))
    for x, y in zip(a["weights"], b["weights"], strict=True):
        assert np.array_equal(x["W"], y["W"])
    assert not part.exists()


def test_of_two_at_once_the_second_waits_and_reads(home):
    both = [train(home, epochs=5), train(home, epochs=5)]
    said = [p.communicate()[0].split()[-1] for p in both]
    assert said[0] == said[1]
    assert [p.name for p in (home / "store").iterdir() if p.is_dir()] == [said[0]]


KILLED = """
import os, numpy as np
from pathlib import Path
from neuronkit.companion import places, store

np.save = lambda *a, **k: os.kill(os.getpid(), 9)  # half of the entry is written, this array is not
store.write(places.make(store.folder()) / "key", {"a": np.ones(3)}, {})
"""


def test_a_kill_in_mid_write_leaves_no_entry(home):
    environment = os.environ | {"NEURONKIT_HOME": str(home)}
    assert subprocess.run([sys.executable, "-c", KILLED], env=environment).returncode == -signal.SIGKILL
    assert not (home / "store" / "key").exists()
    assert [p.name.split("-")[0] for p in (home / "store").iterdir()] == ["key.new"]


def test_a_sweep_computes_what_is_missing_in_processes(home):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (300, 6, 6), dtype=np.uint8), rng.integers(0, 10, 300)
    jobs = [
        {"images": images, "labels": labels, "settings": mlp.table1()[:2], "seed": s, "epochs": 1} for s in (1, 2, 3)
    ]
    first = store.cached(mlp.train_ensemble, **jobs[1])
    swept = store.sweep(mlp.train_ensemble, jobs, workers=2)
    assert swept[1].key == first.key and len({r.key for r in swept}) == 3
    assert [r.key for r in store.sweep(mlp.train_ensemble, jobs, workers=1)] == [r.key for r in swept]


def test_a_sweep_leaves_to_the_end_what_another_process_computes(home, toy):
    f = toy("def f(a: int) -> dict:\n    return {'a': a}").f
    keys = [store._call(f, {"a": a})[0] for a in (1, 2)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        with filelock.FileLock(places.make(store.folder()) / f"{keys[0]}.lock"):
            swept = pool.submit(store.sweep, f, [{"a": 1}, {"a": 2}], workers=1)
            deadline = time.monotonic() + 20
            while not (store.folder() / keys[1]).exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            assert (store.folder() / keys[1]).exists() and not (store.folder() / keys[0]).exists()
        assert [r["a"] for r in swept.result(timeout=20)] == [1, 2]


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_entry_is_computed_again(home, toy, damage):
    source = "import numpy as np\n\ndef f() -> dict:\n    return {'a': np.arange(9)}"
    f = toy(source).f
    array = home / "store" / store.cached(f).key / "0.npy"
    if damage == "cut":
        array.write_bytes(array.read_bytes()[:100])
        with pytest.warns(UserWarning, match="is damaged .* computed again"):
            assert store.cached(f)["a"].tolist() == list(range(9))
    else:
        array.unlink()
        assert store.cached(f)["a"].tolist() == list(range(9))
