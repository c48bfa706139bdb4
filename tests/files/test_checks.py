"""Sizes that files declare are checked before memory is taken."""

import gzip
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrix_files import npy, npz, traced
from scipy import sparse

from symrelu.files import checks
from symrelu.files.checks import (
    DamagedFile,
    WrongKind,
    check_indices,
    check_readable,
    check_room,
    check_rows,
    in_units,
    naming_damaged_file,
    naming_missing_library,
)

MTX = b"%%MatrixMarket matrix coordinate real general\n"
DENSE_MTX = b"%%MatrixMarket matrix array real general\n"


def swollen(text, size):
    """A text that goes on for ``size`` bytes more of what it ends in, compressed piece by piece."""
    piece = gzip.compress(text[-1:] * 2**22, mtime=0)
    return gzip.compress(text, mtime=0) + piece * (size // 2**22)


INTEGERS = np.arange(2)
HUGE = np.array([10**9, 10**9])

LIES = {
    # what a file says of itself, and how it is refused; issue 11.13
    "a header of many numbers.npy": (npy("(1000000, 1000000)", bytes(8)), "takes 8000000000000 bytes, got 8"),
    "negative sizes.npy": (npy("(-1, -1)", bytes(8)), r"shape \(-1, -1\) and type float64 cannot be loaded"),
    "no bytes.npy": (npy("(1000000, 1000000)", descr="<U0"), "cannot be loaded"),
    "one number.npy": (npy("()", bytes(8)), r"must hold a matrix, got an array of shape \(\)"),
    "a list.npy": (npy("(1,)", bytes(8)), r"must hold a matrix, got an array of shape \(1,\)"),
    "one number.npz": (npz(a=np.array(3.0)), r"must hold a matrix, got an array of shape \(\)"),
    "stored.npz": (npz(zipfile.ZIP_STORED, a=npy("(1000000, 1000000)", bytes(8))), "bytes, got 8"),
    "compressed.npz": (npz(a=npy("(1000000, 1000000)", bytes(8))), "takes 8000000000000 bytes, got 8"),
    "a text.npz": (npz(a=np.ones((2, 2)), b=b"a longer text"), "magic string is not correct"),
    "flat blocks.npz": (
        npz(format="bsr", shape=INTEGERS, data=np.ones((1, 2, 0)), indices=INTEGERS[:1], indptr=INTEGERS),
        r"blocks of a bsr matrix must have rows and columns, got data of shape \(1, 2, 0\)",
    ),
    "indices that point outside.npz": (
        npz(format="csr", shape=INTEGERS + 1, data=np.ones(1), indices=INTEGERS[1:] * 2**40, indptr=INTEGERS),
        "indices must be < 2",
    ),
    "coordinates outside.npz": (
        npz(format="coo", shape=INTEGERS + 1, data=np.ones(1), row=INTEGERS[1:] * 2**40, col=INTEGERS[:1]),
        "exceeds matrix dimension",
    ),
    "negative coordinates.npz": (
        npz(format="coo", shape=INTEGERS + 1, data=np.ones(1), row=INTEGERS[1:] - 2, col=INTEGERS[:1]),
        "negative",
    ),
    "diagonals far away.npz": (
        npz(format="dia", shape=INTEGERS + 1, data=np.ones((1, 2)), offsets=INTEGERS[1:] * 2**40),
        "the offsets of the diagonals are too large",
    ),
    "fractions.npz": (
        npz(format="csr", shape=INTEGERS + 1, data=np.ones(1), indices=np.ones(1), indptr=INTEGERS),
        "integer indices",
    ),
    "a cube.npz": (
        npz(format="coo", shape=np.arange(3), data=np.ones(1), row=INTEGERS, col=INTEGERS),
        "shape of",
    ),
    "unknown.npz": (npz(format="xyz", shape=INTEGERS, data=np.ones(1)), "must be one of csr, .*, got 'xyz'"),
    "too many entries.mtx": (MTX + b"3 3 10\n1 1 1\n", "a 3 x 3 matrix cannot have 10 entries"),
    "too few lines.mtx": (MTX + b"3 3 2\n1 1 1\n", "the header declares 2 entries, but there are 1"),
    "too many lines.mtx": (MTX + b"3 3 1\n1 1 1\n1 2 1\n", "declares 1 entries, but there are more"),
    "negative.mtx": (MTX + b"-3 3 1\n1 1 1\n", r"line 2 must hold the sizes of the matrix, got '-3 3 1\\n'"),
    "no sizes.mtx": (MTX + b"% nothing\n", "line 3 must hold the sizes of the matrix"),
    "not numbers.mtx": (MTX + b"% why\n3 3 2\n1 1 1\n1 2 one\n", "line 5 must hold numbers only"),
    "billions of digits.mtx": (MTX + b"3 3 " + b"9" * 5000, "must hold the sizes of the matrix"),
    "blanks.mtx": (MTX + b"3 3 1\n1 1 1\n" + b" " * 2**21, "2.1 MB of text are too much for the 1 entries"),
    "blanks.mtx.gz": (
        swollen(MTX + b"3 3 1\n1 1 1 ", 3 * 10**9),
        "4.2 MB of text are too much for the 1 entries",
    ),
    "lines.mtx.gz": (swollen(MTX + b"3 3 1\n1 1 1\n", 3 * 10**9), "of text are too much for the 1 entries"),
    "digits.mtx.gz": (swollen(MTX + b"3 3 1\n1 1 1", 3 * 10**9), "of text are too much for the 1 entries"),
    "comments.mtx.gz": (swollen(MTX + b"%", 3 * 10**9), "must come within the first 1.0 MB"),
    "banner.mtx.gz": (swollen(b"%", 3 * 10**9), "the first line is not a MatrixMarket header"),
    "its end says 3 GB.mtx.gz": (
        gzip.compress(MTX + b"3 3 1\n1 1 1\n")[:-4] + (3 * 10**9).to_bytes(4, "little"),
        "3.0 GB of text are too much for the 1 entries",
    ),
}

TOO_LARGE = {
    # what is more than 16 GB, by its own word
    "rows.mtx": (MTX + b"1000000000 1000000000 1\n1 1 1\n", "1000000000 x 1000000000 matrix need 200.0 GB"),
    "entries.mtx": (
        MTX + b"1000000 1000000 999999000000\n1 1 1\n",
        "999999000000 entries of its header need 24000.0 GB",
    ),
    "entries.mtx.gz": (gzip.compress(MTX + b"1000000 1000000 999999000000\n1 1 1\n"), "header need 24000.0 GB"),
    "dense.mtx": (DENSE_MTX + b"1000000 1000000\n1\n", "1000000000000 entries of its header need 8000.0 GB"),
    "rows.npz": (
        npz(format="coo", shape=HUGE, data=np.ones(2), row=INTEGERS, col=INTEGERS),
        "1000000000 x 1000000000 matrix need 200.0 GB, and only 16.0 GB are available",
    ),
    "diagonal rows.npz": (
        npz(format="dia", shape=HUGE, data=np.ones((1, 2)), offsets=INTEGERS[:1]),
        "200.0 GB",
    ),
}


@pytest.mark.parametrize("available", [16 * 10**9, None], ids=["16 GB", "unknown memory"])
@pytest.mark.parametrize("name", LIES)
def test_a_header_is_not_believed(tmp_path, monkeypatch, name, available):
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: available)
    content, message = LIES[name]
    path = tmp_path / name
    path.write_bytes(content)
    error, peak = traced(path)
    error.match(f"{name} .*{message}")
    assert error.type is not MemoryError
    assert peak < 12 * 2**20  # a few chunks


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_matrix_that_does_not_fit_is_refused_with_its_size(tmp_path, monkeypatch, name):
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 16 * 10**9)
    content, message = TOO_LARGE[name]
    path = tmp_path / name
    path.write_bytes(content)
    error, peak = traced(path)
    error.match(f"{name} must fit into memory, but .*{message}")
    assert error.type is MemoryError
    assert peak < 12 * 2**20


@pytest.mark.parametrize("name", ["swollen.npz", "pointers.npz", "large.npy"])
def test_a_real_size_is_refused_before_it_is_read(tmp_path, monkeypatch, name):
    """issue 11.13: 80 MB where 50 MB are available."""
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 50 * 10**6)
    path = tmp_path / name
    pointers = np.zeros(10**7 + 1, np.int64)
    if name == "large.npy":
        with open(path, "wb") as file:
            file.write(npy("(10000, 1000)"))
            file.truncate(file.tell() + 8 * 10**7)  # a hole
    elif name == "swollen.npz":
        path.write_bytes(npz(a=pointers[:-1].reshape(1000, 10000)))
    else:
        nothing = np.zeros(0)
        shape = np.array([10**7, 10**7])
        path.write_bytes(
            npz(format="csr", shape=shape, data=nothing, indices=nothing.astype(int), indptr=pointers)
        )
    del pointers
    error, peak = traced(path)
    error.match(f"{name} must fit into memory, but its arrays need 80.0 MB, and only 50.0 MB are available")
    assert peak < 12 * 2**20


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (1_550_000, "1.6 MB"), (8 * 10**12, "8000.0 GB")],
)
def test_bytes_for_people(count, text):
    assert in_units(count) == text


@given(count=st.integers(0, 10**15))
def test_units_are_right_to_a_digit(count):
    number, unit = in_units(count).split()
    size = float(number) * {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
    assert abs(size - count) <= 0.05 * {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit] * (1 + 1e-9)


@pytest.mark.parametrize("available", [None, 10**6])
def test_room_is_what_is_available(monkeypatch, available):
    monkeypatch.setattr(checks, "available_memory", lambda: available)
    check_room(Path("a.npz"), 10**6)
    if available is None:
        check_room(Path("a.npz"), 10**20)
    else:
        with pytest.raises(MemoryError, match=r"a.npz must fit .* its arrays need 1.0 MB"):
            check_room(Path("a.npz"), 10**6 + 1)


@pytest.mark.parametrize(
    ("rows", "columns", "fits"), [(5000, 3, True), (3, 5000, True), (5001, 3, False), (3, 5001, False)]
)
def test_rows_without_entries_need_room_too(monkeypatch, rows, columns, fits):
    monkeypatch.setattr(checks, "available_memory", lambda: 10**6)
    if fits:
        check_rows(Path("a.mtx"), rows, columns)
    else:
        with pytest.raises(MemoryError, match=f"fits of a {rows} x {columns} matrix"):
            check_rows(Path("a.mtx"), rows, columns)


@pytest.mark.parametrize(
    "error", [zlib.error("bad\ndata"), KeyError("a"), EOFError(), struct.error("short")], ids=repr
)
def test_what_a_parser_says_becomes_one_error_with_the_name(error):
    with (
        pytest.raises(DamagedFile, match=r"^a.npz is not a readable npz file .*: \S") as caught,
        naming_damaged_file("a.npz", "npz"),
    ):
        raise error
    assert caught.value.__cause__ is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [WrongKind("a"), DamagedFile("b"), MemoryError("c a.npz"), KeyboardInterrupt()], ids=repr
)
def test_errors_that_are_clear_pass_unchanged(error):
    with pytest.raises(type(error)) as caught, naming_damaged_file("a.npz", "npz"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("no room")])
def test_a_parser_that_runs_out_of_memory(error):
    message = r"a\.npz must fit into memory, but it does not: (out of memory|no room)"
    with pytest.raises(MemoryError, match=message), naming_damaged_file("a.npz", "npz"):
        raise error


def test_missing_libraries_are_named():
    message = r"Reading a \.gml file needs networkx, .* pip install 'symrelu\[graph\]'"
    with pytest.raises(ImportError, match=message), naming_missing_library("networkx", "graph", ".gml"):
        raise ImportError("no networkx")


def test_indices_outside_of_a_matrix():
    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        check_indices(kind(np.eye(3)))
    damaged = sparse.csc_array(np.eye(3))
    damaged.indices[1] = 7
    with pytest.raises(ValueError, match="indices"):
        check_indices(damaged)


def test_files_without_permission(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may read everything
    with pytest.raises(PermissionError, match="cannot be read: permission denied"):
        check_readable(tmp_path / "file")


def test_what_can_be_read(tmp_path):
    (tmp_path / "file").touch()
    check_readable(tmp_path / "file")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_readable(tmp_path)
    with pytest.raises(FileNotFoundError, match="missing"):
        check_readable(tmp_path / "missing")
