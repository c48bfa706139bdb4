"""Where files of published data are looked for, and what they must be."""

import hashlib
import re
from itertools import chain
from pathlib import Path

import pytest

from symrelu.datasets import sources
from symrelu.datasets.sources import GRAPHS, SAMPLES, VARIABLE, Source, checked_sha256, locate

ALL = dict(chain(SAMPLES.items(), GRAPHS.items()))
ORIGINAL = Source("set", "set.npz", "0" * 64, (2, 2), 1, mat=("set.mat", "other.mat"))
REBUILT = Source("set (rebuilt)", "rebuilt.npz", "1" * 64, (2, 2), 1)


@pytest.fixture(autouse=True)
def _no_directory(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize("name", ALL)
def test_every_source_is_complete(name):
    for source in ALL[name]:
        assert source.name.startswith(name)
        assert source.files
        assert re.fullmatch("[0-9a-f]{64}|", source.sha256)
        assert source.npz.endswith(".npz")
        assert all(file.endswith(".mat") for file in source.mat)
        assert source.page.startswith("http")
        assert min(source.shape) > source.classes >= 0
        assert source.classes > 0 or source.npz.startswith("graph_")  # only graphs may lack labels


def test_no_file_belongs_to_two_sets():
    names = [file for several in ALL.values() for source in several for file in (source.npz, *source.mat)]
    assert len(names) == len(set(names))
    known = [source.sha256 for several in ALL.values() for source in several if source.sha256]
    assert len(known) == len(set(known))


def test_graphs_are_square():
    assert all(source.shape[0] == source.shape[1] for several in GRAPHS.values() for source in several)


def test_an_npz_file_is_taken_only_by_its_digest():
    assert ORIGINAL.files == ("set.mat", "other.mat", "set.npz")
    assert Source("set", "set.npz", "", (2, 2), 1, mat=("set.mat",)).files == ("set.mat",)


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (["rebuilt.npz"], REBUILT),
        (["rebuilt.npz", "set.npz"], ORIGINAL),
        (["set.npz", "other.mat"], ORIGINAL),
        (["set.npz", "other.mat", "set.mat"], ORIGINAL),
    ],
)
def test_the_first_file_in_the_order_of_preference_is_taken(tmp_path, there, found):
    for name in there:
        (tmp_path / name).touch()
    source, path = locate((ORIGINAL, REBUILT), tmp_path)
    assert source is found
    order = (*ORIGINAL.files, *REBUILT.files)
    assert path == tmp_path / min(there, key=order.index)


def test_the_argument_goes_before_the_environment(tmp_path, monkeypatch):
    for folder in ("given", "set"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "set.npz").touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "set"))
    assert locate((ORIGINAL,), None)[1].parent.name == "set"
    assert locate((ORIGINAL,), str(tmp_path / "given"))[1].parent.name == "given"


def test_the_home_folder_may_be_abbreviated(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "set.mat").touch()
    assert locate((ORIGINAL,), "~/data")[1] == tmp_path / "data" / "set.mat"


def test_what_is_missing_is_named(tmp_path):
    names = "set.mat or other.mat or set.npz or rebuilt.npz"
    for folder in (None, "", tmp_path):
        with pytest.raises(FileNotFoundError, match=names) as error:
            locate((ORIGINAL, REBUILT), folder)
        assert ORIGINAL.page in str(error.value)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        locate((ORIGINAL,), tmp_path / "nowhere")


@pytest.mark.parametrize("size", [0, 1, 2**20 + 3])
def test_digests_are_those_of_hashlib(tmp_path, size):
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    digest = hashlib.sha256(content).hexdigest()
    right = Source("set", "set.npz", digest, (2, 2), 1)
    for name in ("set.npz", "set.mat"):
        path = Path(tmp_path, name)
        path.write_bytes(content)
        assert checked_sha256(path, right) == digest
    assert checked_sha256(tmp_path / "set.mat", ORIGINAL) == digest, "the original file may have any digest"
    with pytest.raises(ValueError, match=digest) as error:
        checked_sha256(tmp_path / "set.npz", ORIGINAL)
    assert ORIGINAL.sha256 in str(error.value)


def test_the_variable_is_the_documented_one():
    assert sources.VARIABLE == "SYMRELU_DATA"
