"""Sparse matrices, numbers and names as entries of an archive."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.files.entries import (
    names_of_json,
    names_to_json,
    read_floats,
    read_integer,
    read_sparse,
    sparse_entries,
)

MATRIX = sparse.csr_array(np.array([[0, 2.0, 0], [1, 0, 3], [0, 0, 0]]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, bool])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices_are_read_back(dtype, kind):
    matrix = kind(MATRIX.astype(dtype))
    entries = sparse_entries(matrix)
    assert ("data" in entries) == (dtype is not bool)
    found = read_sparse(entries, (3, 3), "it")
    assert found.dtype == dtype
    assert_array_equal(found.toarray(), matrix.toarray())


def test_repeated_and_unordered_entries_are_stored_in_order():
    twice = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3, 3, 3])), shape=(3, 3)
    )
    assert_array_equal(read_sparse(sparse_entries(twice), (3, 3), "it").toarray(), twice.toarray())
    assert twice.nnz == 3  # the argument is not changed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": np.array([1, 0, 9])}, "indices"),
        ({"indices": np.array([1, 0, -1])}, "indices|index"),
        ({"indices": np.array([1, 2, 0])}, "it must list the columns of each row once and in order"),
        ({"indices": np.array([1.0, 0, 2])}, "indptr and indices of it must be lists of integers"),
        ({"indptr": np.array([0, 1, 3])}, "index pointer"),
        ({"indptr": np.array([0, 3, 1, 3])}, "index pointer|indptr"),
        ({"data": np.array([1.0, np.nan, 2])}, r"data of it must be finite floats of shape \(3,\)"),
        ({"data": np.ones(2)}, r"data of it must be finite floats of shape \(3,\)"),
        ({"data": np.array(["a", "b", "c"])}, r"data of it must be finite floats of shape \(3,\), got <U1"),
    ],
)
def test_sparse_matrices_that_are_none(changes, message):
    with pytest.raises(ValueError, match=message):
        read_sparse(sparse_entries(MATRIX) | changes, (3, 3), "it")


def test_numbers():
    entries = {"a": np.array([1.0, 2.0], ">f8"), "k": np.array(3), "x": np.array(2.5), "t": np.array("3")}
    assert read_floats(entries, "a", (2,)).dtype == np.float64
    assert read_integer(entries, "k", 0, 3) == 3
    with pytest.raises(ValueError, match=r"k must be an integer from 0 to 2, got 3$"):
        read_integer(entries, "k", 0, 2)
    for name in "axt":
        with pytest.raises(ValueError, match=f"{name} must be an integer"):
            read_integer(entries, name, 0, 9)


NAMES = ["ann", "Ørsted", "", "=1+1", 7, -3, ("a", 1), ("a", "b")]


def test_names_are_read_back():
    names = np.fromiter([*NAMES, np.int64(12), np.str_("x")], object)
    found = names_of_json(json.loads(json.dumps(names_to_json(names))), len(names))
    assert found.dtype == object
    assert found.tolist() == [*NAMES, 12, "x"]


@pytest.mark.parametrize("name", [1.5, None, True, frozenset(), ("a", 2.5)])
def test_names_that_are_not_stored(name):
    with pytest.raises(TypeError, match="Names in a file must be strings, integers or tuples of these"):
        names_to_json(["a", name])


@pytest.mark.parametrize("stored", ["ab", ["a"], {"a": 1, "b": 2}, ["a", None], ["a", 1.5], ["a", [["b"]]]])
def test_names_that_are_none(stored):
    with pytest.raises(ValueError, match=r"must have a name for each of its 2 nodes|names must be strings"):
        names_of_json(stored, 2)
