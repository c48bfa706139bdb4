"""Data frames: matrices with labels, and embeddings as tables."""

import sys

import numpy as np
import pytest
from graph_sources import NAMES, A, frame_with, networkx, pd
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu import SymReLU
from symrelu.graphs import embedding_frame, from_networkx, from_pandas


def test_frames_without_labels():
    assert from_pandas(pd.DataFrame(A)).labels is None
    for frame in (pd.DataFrame(A, columns=NAMES), pd.DataFrame(A, index=NAMES)):
        matrix, labels = from_pandas(frame)
        assert_array_equal(matrix, A)
        assert labels.tolist() == NAMES
    # Counting from 1 is a label, and numbers in another order are the same labels.
    for labels in ([1, 2], pd.RangeIndex(1, 3)):
        assert from_pandas(pd.DataFrame(np.eye(2), index=labels, columns=labels)).labels.tolist() == [1, 2]
    matrix, labels = from_pandas(pd.DataFrame([[1, 2], [3, 4]], columns=[1, 0]))
    assert_array_equal(matrix, [[2, 1], [4, 3]])
    assert labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("float32", np.float32),
        ("float64", np.float64),
        ("int64", np.int64),
        ("bool", bool),
        ("Float32", np.float32),
        ("Float64", np.float64),
        ("Int64", np.float64),
        (pd.SparseDtype("float32", 0), np.float32),
        (pd.SparseDtype("int64", 0), np.int64),
    ],
)
def test_types_of_frames(stored, expected):
    values = [[1, 0], [0, 1]]
    matrix, labels = from_pandas(pd.DataFrame(values, index=["a", "b"], columns=["a", "b"]).astype(stored))
    assert matrix.dtype == expected
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, values)
    assert labels.tolist() == ["a", "b"]


def test_numbers_beside_booleans():
    frame = pd.DataFrame({0: [True, False], 1: [0.0, 2.5]})
    assert_array_equal(from_pandas(frame).matrix, [[1, 0], [0, 2.5]])
    assert from_pandas(frame).matrix.dtype == np.float64


def test_labels_of_several_levels():
    index = pd.MultiIndex.from_product([["x", "y"], [1, 2]])
    labels = from_pandas(pd.DataFrame(np.eye(4), index=index, columns=index)).labels
    assert labels.tolist() == [("x", 1), ("x", 2), ("y", 1), ("y", 2)]


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (A, TypeError, "frame must be a pandas DataFrame, got ndarray"),
        (
            pd.DataFrame(np.ones((2, 3))),
            ValueError,
            r"square, .* got shape \(2, 3\). For .*from_edges\(frame\)",
        ),
        (
            frame_with(["a", "b"], ["a", "x"]),
            ValueError,
            "'b' is in the index and not in the columns. Pass frame.set",
        ),
        (frame_with([1, 2], ["1", "2"]), ValueError, "1 is in the index and not in the columns"),
        (
            frame_with(["a", "a"], ["a", "b"]),
            ValueError,
            "same labels, each once, but 'a' is in the index twice",
        ),
        (frame_with(["a", "b"], ["b", "b"]), ValueError, "but 'b' is in the columns twice"),
        (
            pd.DataFrame({0: [1.0, 2.0], 1: ["x", "y"]}),
            TypeError,
            "must hold numbers, got the column 1 of type",
        ),
        (
            frame_with(["a", "b"], ["a", "b"]).astype(pd.SparseDtype("float64", np.nan)),
            ValueError,
            "Sparse columns must have the fill value 0, but 'a' has nan",
        ),
    ],
)
def test_bad_frames(frame, error, message):
    with pytest.raises(error, match=message):
        from_pandas(frame)


def test_repeated_labels_pass_where_they_are_in_one_order():
    assert from_pandas(frame_with(["a", "a"], ["a", "a"])).labels.tolist() == ["a", "a"]


def test_missing_numbers_of_a_frame_become_nan():
    frame = frame_with(["a", "b"], ["a", "b"]).astype("Float64")
    frame.iloc[0, 1] = pd.NA
    assert np.isnan(from_pandas(frame).matrix[0, 1])


# The way back


def test_embedding_frame():
    frame = embedding_frame(A[:, :2].astype(np.float32), NAMES)
    assert list(frame.columns) == ["symrelu0", "symrelu1"]
    assert list(frame.index) == NAMES
    assert (frame.dtypes == np.float32).all()
    assert_array_equal(frame.loc["c"], A[NAMES.index("c"), :2])
    assert list(embedding_frame(A, None, prefix="u").columns[:2]) == ["u0", "u1"]
    assert list(embedding_frame(A, None).index) == list(range(len(A)))


def test_embedding_frame_names_its_columns_as_the_estimator_does():
    model = SymReLU(2, tol=0.1, random_state=0).fit(A)
    frame = embedding_frame(model.embedding_, NAMES)
    assert list(frame.columns) == list(model.get_feature_names_out())


def test_labels_that_are_tuples_or_numbers():
    labels = from_networkx(networkx.grid_2d_graph(1, 3)).labels
    index = embedding_frame(np.eye(3), labels).index
    assert index[2] == (0, 2)
    assert index.nlevels == 1
    numbers = from_networkx(networkx.path_graph(3)).labels
    assert embedding_frame(np.eye(3), numbers).index.dtype == np.int64


def test_bad_embedding_frames(monkeypatch):
    with pytest.raises(ValueError, match="labels must name each of the 7 rows of the embedding, got 2"):
        embedding_frame(A, ["a", "b"])
    with pytest.raises(ValueError, match=r"embedding must have shape \(n, n_components\), got \(7,\)"):
        embedding_frame(A[0], NAMES)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="embedding_frame needs pandas: pip install pandas"):
        embedding_frame(A, NAMES)
