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
    kinds = ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
    numbers = {f"x{kind}": (4 * M).astype(kind) for kind in kinds} | {"logical": M > 0, "whole": np.round(M)}
    io.savemat(tmp_path / "a.mat", numbers)
    for name, matrix in numbers.items():
        found = read_matlab(tmp_path / "a.mat", name)
        # SciPy writes booleans as bytes with a flag.
        assert found.dtype == matrix.dtype
        assert_array_equal(found, matrix)
    sparse_logical = {"S": sparse.csc_array(M > 0)}
    io.savemat(tmp_path / "b.mat", sparse_logical)
    assert_array_equal(read_matlab(tmp_path / "b.mat").toarray(), M > 0)


@pytest.mark.parametrize(
    ("variables", "key", "message"),
    [
        ({"A": M, "B": M}, None, r"must have one square matrix, got the variables 'A' \(3 x 3 double\), 'B'"),
        ({"A": M[:2]}, None, "must have one square matrix, got .*. Pass key= to choose a variable"),
        ({}, None, "must have one square matrix, got no variables"),
        ({"A": M}, "B", r"must have a variable 'B', got the variables 'A' \(3 x 3 double\). Pass another key"),
        ({"A": "text"}, "A", "the variable must be a matrix of numbers, got 'A' .* char"),
        ({"A": np.ones((2, 2, 2))}, "A", r"must be a matrix of numbers, got 'A' \(2 x 2 x 2 double\)"),
        ({"A": M * 1j}, None, "the variable 'A' must hold real numbers, got complex ones"),
        ({"A": {"b": M}}, "A", "must be a matrix of numbers, got 'A' .* struct"),
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


def test_compressed_variables_larger_than_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(matlab, "available_memory", lambda: 10**5)
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: 10**5)
    # A sparse matrix of two rows, with room for many entries.
    io.savemat(tmp_path / "a.mat", {"A": sparse.csc_array(np.eye(2))})
    content = (tmp_path / "a.mat").read_bytes()[128:] + bytes(10**6)
    (tmp_path / "a.mat").write_bytes(HEADER + element(zlib.compress(content)))
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


def test_indices_outside_of_the_matrix(tmp_path):
    """They brought the whole interpreter down when the matrix was converted."""
    damaged = sparse.csc_matrix(M)
    damaged.indices[1] = 10**8
    io.savemat(tmp_path / "a.mat", {"A": damaged})
    with pytest.raises(ValueError, match=r"a\.mat is not a readable mat file .* indices"):
        read_matlab(tmp_path / "a.mat")


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize("compressed", [False, True])
def test_parts_of_an_unknown_type(tmp_path, kind, compressed):
    """SciPy's reader brings the whole interpreter down."""
    io.savemat(tmp_path / "a.mat", {"A": kind(M)})
    content = (tmp_path / "a.mat").read_bytes()
    values = struct.pack("<II", 9, 8 * (9 if kind is np.asarray else np.count_nonzero(M)))
    assert content.count(values) == 1
    content = content.replace(values, b"\xa1" + values[1:])
    if compressed:
        content = content[:128] + element(zlib.compress(content[128:]))
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"a\.mat is not a readable mat file .* a part of the unknown type 161"
    ):
        read_matlab(tmp_path / "a.mat")


def test_files_of_a_machine_with_the_other_byte_order(tmp_path):
    def part(kind, content):
        return struct.pack(">II", kind, len(content)) + content + bytes(-len(content) % 8)

    numbers = part(9, M.T.astype(">f8").tobytes())
    flags, shape = part(6, struct.pack(">II", 6, 0)), part(5, struct.pack(">ii", 3, 3))
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "a.mat").write_bytes(header + part(14, flags + shape + part(1, b"name") + numbers))
    assert_array_equal(read_matlab(tmp_path / "a.mat"), M)
    content = (tmp_path / "a.mat").read_bytes().replace(numbers[:8], struct.pack(">II", 161, 72))
    (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(ValueError, match="a part of the unknown type 161"):
        read_matlab(tmp_path / "a.mat")
