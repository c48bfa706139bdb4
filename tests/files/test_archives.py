"""Archives of arrays."""

import io
import json
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_files import npy, npz, traced
from numpy.testing import assert_array_equal

from symrelu.files.archives import check_names, open_npz, read_array, read_header, read_npz, without_objects
from symrelu.files.checks import DamagedFile, WrongKind


def test_a_directory_that_lies_takes_no_memory(tmp_path, monkeypatch):
    """The directory of an archive and the header of its array agree on 3.2 GB; 8 bytes are there."""
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: None)
    header = npy("(100000000, 4)")
    content = bytearray(npz(a=header + bytes(8)))
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (len(header) + 32 * 10**8).to_bytes(4, "little")
    path = tmp_path / "lie.npz"
    path.write_bytes(content)
    error, peak = traced(path)
    error.match(r"lie.npz is not a readable npz file .*an array ends after 8 of 3200000000 bytes")
    assert peak < 12 * 2**20


@st.composite
def arrays(draw):
    """Arrays of any shape, order and type that a file of ours may hold."""
    dtype = draw(st.sampled_from(["<f8", ">f8", "<f4", "<i8", "|u1", "|b1", "<U5"]))
    shape = draw(st.lists(st.integers(0, 4), max_size=3).map(tuple))
    order = draw(st.sampled_from("CF"))
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 100, shape)
    return np.asarray(values).astype(dtype, order=order)


def buffer_of(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    size = buffer.tell()
    buffer.seek(0)
    return buffer, size


@given(arrays())
def test_arrays_are_read_as_numpy_reads_them(array):
    buffer, size = buffer_of(array)
    found = read_array(buffer, size)
    assert_array_equal(found, np.load(io.BytesIO(buffer.getvalue())), strict=True)
    assert found.flags.writeable
    assert found.flags.f_contiguous == array.flags.f_contiguous


@given(arrays(), st.integers(-3, 3).filter(bool))
def test_a_size_that_does_not_agree_is_refused(array, difference):
    buffer, size = buffer_of(array)
    with pytest.raises(ValueError, match="bytes, got"):
        read_array(buffer, size + difference)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", [None, "Solution"])
def test_archives_are_read_as_numpy_reads_them(tmp_path, compressed, kind):
    path = tmp_path / "a.npz"
    content = {"a": np.arange(6.0).reshape(2, 3), "b": np.array("text"), "empty": np.empty((0, 2))}
    (np.savez_compressed if compressed else np.savez)(path, **content)
    if compressed and kind:
        with pytest.raises(WrongKind, match=r"a\.npz .*compressed"):
            read_npz(path, kind)
        return
    found = read_npz(path, kind)
    with np.load(path) as expected, open_npz(path) as opened:
        assert set(found) == set(expected) == set(opened)
        for name in expected:
            assert_array_equal(found[name], expected[name], strict=True)
            assert_array_equal(opened[name], expected[name], strict=True)


@pytest.mark.parametrize("read", [read_npz, lambda path: open_npz(path).__enter__()], ids=["read", "open"])
def test_a_single_array_is_no_archive(tmp_path, read):
    np.save(tmp_path / "a.npy", np.eye(2))
    with pytest.raises(WrongKind, match="is a single npy array, not an npz archive"):
        read(tmp_path / "a.npy")


def with_members(path, *names):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name in names:
            archive.writestr(name, npy("(1,)", bytes(8)))


@pytest.mark.parametrize("names", [("a.npy", "a.npy"), ("a.npy", "a.txt"), ("a",)])
def test_members_are_arrays_of_different_names(tmp_path, names):
    with_members(tmp_path / "a.npz", *names)
    with pytest.raises(DamagedFile, match="different names"):
        read_npz(tmp_path / "a.npz")


HEADERS = {
    "numbers": (np.array([1.0]), "is not a (text|string)"),
    "several texts": (np.array(["{}", "{}"]), "is not a (text|string)"),
    "no JSON": (np.array("{"), "is not JSON"),
    "too deep": (np.array("[" * 100_000), "is not JSON"),
    "a list": (np.array("[1]"), ".*list"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_hold_names_and_values(name):
    array, message = HEADERS[name]
    with pytest.raises(ValueError, match=f"its entry 'header' {message}"):
        read_header({"header": array}, "header")


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.integers())
)
def test_headers_are_read(values):
    assert read_header({"header": np.array(json.dumps(values))}, "header") == values


NAMES = st.sets(st.sampled_from("abcdef"))


@given(names=NAMES, required=NAMES, optional=NAMES)
def test_names_are_the_required_and_none_that_is_unknown(names, required, optional):
    if required - names:
        with pytest.raises(ValueError, match=f"it has no {', '.join(map(repr, sorted(required - names)))}$"):
            check_names("it", names, required, optional)
    elif names - required - optional:
        with pytest.raises(ValueError, match="it has an unknown"):
            check_names("it", names, required, optional)
    else:
        check_names("it", names, required, optional)


def test_objects_are_not_written():
    arrays = {"a": np.eye(2), "text": np.array("text")}
    assert without_objects(**arrays) == arrays
    with pytest.raises(ValueError, match=r"must hold numbers or text, got Python objects in \['b'\]"):
        without_objects(**arrays, b=np.array([{}], dtype=object))
