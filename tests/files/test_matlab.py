"""MATLAB files."""

import struct
import zlib

import numpy as np
import pytest
from matrix_files import M
from numpy.testing import assert_array_equal
from scipy import io, sparse

from symrelu.files import matlab
from symrelu.files.matlab import read_matlab


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize("options", [{"format": "4"}, {}, {"do_compression": True}], ids=["4", "5", "7"])
def test_versions(tmp_path, kind, options):
    io.savemat(tmp_path / "a.mat", {"A": kind(M), "n": 3, "name": "x", "rows": M[:2]}, **options)
    for matrix in (read_matlab(tmp_path / "a.mat"), read_matlab(tmp_path / "a.mat", "A")):
        assert isinstance(matrix, np.ndarray if kind is np.asarray else sparse.csr_array)
        assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, M)
    assert_array_equal(read_matlab(tmp_path / "a.mat", "rows"), M[:2])


def test_types_of_numbers(tmp_path):
    numbers = {"single": M.astype(np.float32), "int8": M.astype(np.int8), "logical": M > 0}
    io.savemat(tmp_path / "a.mat", numbers)
    for name, matrix in numbers.items():
        assert_array_equal(read_matlab(tmp_path / "a.mat", name), matrix)


@pytest.mark.parametrize(
    ("variables", "key", "message"),
    [
        ({"A": M, "B": M}, None, r"must have one square matrix, got the variables 'A' \(3 x 3 double\), 'B'"),
        ({"A": M[:2]}, None, "must have one square matrix, got .*. Pass key= to choose a variable"),
        ({}, None, "must have one square matrix, got no variables"),
        ({"A": M}, "B", r"must have a variable 'B', got the variables 'A' \(3 x 3 double\). Pass another key"),
        ({"A": "text"}, "A", "'A' must be a matrix of numbers, got the variables 'A' .* char"),
        ({"A": np.ones((2, 2, 2))}, "A", r"'A' must be a matrix of numbers, got .* \(2 x 2 x 2 double\)"),
        ({"A": {"b": M}}, "A", "'A' must be a matrix of numbers, got .* struct"),
    ],
)
def test_variables_that_are_refused(tmp_path, variables, key, message):
    io.savemat(tmp_path / "a.mat", variables)
    with pytest.raises(ValueError, match=message):
        read_matlab(tmp_path / "a.mat", key)


HEADER = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"


def test_version_7_3(tmp_path):
    (tmp_path / "a.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400))
    with pytest.raises(
        ValueError, match=r"version 4 to 7, got version 7\.3. Save it again in MATLAB: .* '-v7'"
    ):
        read_matlab(tmp_path / "a.mat")


def element(content):
    return struct.pack("<II", 15, len(content)) + content


@pytest.mark.parametrize("memory", [10**5, None])
def test_compressed_variables_larger_than_memory(tmp_path, monkeypatch, memory):
    monkeypatch.setattr(matlab, "available_memory", lambda: memory)
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 10**5)
    (tmp_path / "a.mat").write_bytes(HEADER + element(zlib.compress(bytes(10**6))))
    with pytest.raises(MemoryError, match=r"a\.mat must fit into memory, but its variables need"):
        read_matlab(tmp_path / "a.mat")


def test_matrices_larger_than_memory(tmp_path, monkeypatch):
    io.savemat(tmp_path / "a.mat", {"A": sparse.csc_array((10**6, 10**6))})
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 10**8)
    with pytest.raises(MemoryError, match=r"fits of a 1000000 x 1000000 matrix need 200\.0 MB"):
        read_matlab(tmp_path / "a.mat")
    # A matrix of version 4 that says it has a million rows and columns, and ends after the header.
    (tmp_path / "b.mat").write_bytes(struct.pack("<5i", 0, 10**6, 10**6, 0, 2) + b"A\0")
    with pytest.raises(MemoryError, match=r"its arrays need 8000\.0 GB"):
        read_matlab(tmp_path / "b.mat")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x" * 200,
        HEADER + element(zlib.compress(bytes(100)))[:-5],
        HEADER + element(b"x" * 100),
        HEADER + element(zlib.compress(b"x" * 1000)),
        HEADER + struct.pack("<II", 14, 2**31) + b"x",
    ],
)
def test_damaged_files(tmp_path, content):
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.mat (is not a readable mat file|must have one square matrix)"):
        read_matlab(tmp_path / "a.mat")
