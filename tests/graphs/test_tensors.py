"""Tensors of torch."""

import warnings

import pytest
from graph_sources import A, tensor
from numpy.testing import assert_array_equal
from scipy import sparse

from symrelu.graphs import as_similarity, from_torch


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_types_of_tensors(layout, dtype):
    matrix, labels = from_torch(tensor(layout, dtype))
    assert matrix.dtype == dtype
    assert sparse.issparse(matrix) == (layout != "strided")
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, A.astype(dtype))
    assert labels is None


@pytest.mark.parametrize("layout", ["strided", "sparse_coo", "sparse_csr"])
def test_gradients_are_left_behind(layout):
    torch = pytest.importorskip("torch")
    leaf = torch.tensor(A, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = leaf if layout == "strided" else getattr(leaf, f"to_{layout}")()
    assert made.requires_grad
    matrix = from_torch(made).matrix
    assert_array_equal(matrix.toarray() if sparse.issparse(matrix) else matrix, A)
    assert_array_equal(as_similarity(torch.nn.Parameter(leaf)).matrix, A)


def test_entries_of_a_tensor_that_are_given_twice_add_up():
    torch = pytest.importorskip("torch")
    places, values = torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([1.0, 2.0, 3.0])
    twice = torch.sparse_coo_tensor(places, values, (3, 3), check_invariants=True)
    assert not twice.is_coalesced()
    assert_array_equal(from_torch(twice).matrix.toarray(), [[0, 3, 0], [3, 0, 0], [0, 0, 0]])


def test_no_sparse_tensor_becomes_dense():
    torch = pytest.importorskip("torch")
    n = 10**6  # dense, 4 TB
    large = torch.sparse_coo_tensor([[0, n - 1], [n - 1, 0]], [1.0, 1.0], (n, n), check_invariants=True)
    assert from_torch(large).matrix.nnz == 2


def test_a_dense_tensor_shares_its_memory():
    dense = tensor()
    from_torch(dense).matrix[0, 0] = 7
    assert dense[0, 0] == 7


def test_bad_tensors():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="tensor must be a torch tensor, got ndarray"):
        from_torch(A)
    with pytest.raises(
        TypeError, match=r"a dtype that NumPy supports, got torch.bfloat16. Pass tensor.float\(\)"
    ):
        from_torch(torch.eye(2, dtype=torch.bfloat16))
    with pytest.raises(TypeError, match=r"dense or sparse, got the layout _mkldnn. Pass tensor.to_dense\(\)"):
        from_torch(torch.eye(2).to_mkldnn())
    hybrid = torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 2), (2, 2), check_invariants=True)
    with pytest.raises(ValueError, match=r"got shape \(2, 2\) with 1 sparse and 1 dense dimensions"):
        from_torch(hybrid)
    with pytest.raises(ValueError, match=r"got shape \(2, 2, 2\) with 3 sparse and 0 dense dimensions"):
        from_torch(torch.ones(2, 2, 2).to_sparse())
