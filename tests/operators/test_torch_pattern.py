"""Where the entries of M are that are not zeros, as a GPU needs them; the CPU serves as the device."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

torch = pytest.importorskip("torch")

from symrelu.operators.torch_pattern import Pattern  # noqa: E402

N = 90


def example():
    """A banded matrix in a random order, and pairs that are unobserved, some of them with entries."""
    rng = np.random.default_rng(0)
    order = rng.permutation(N)
    band = sparse.diags_array(np.ones((5, N)), offsets=[-3, -1, 0, 1, 3], shape=(N, N)).tocsr()
    hidden = sparse.random_array((N, N), density=0.02, rng=rng).tocsr()
    unknown = sparse.csr_array(hidden + hidden.T + band.multiply(hidden) > 0)
    return sparse.csr_array(band[order][:, order]), unknown


def dense(entries):
    indptr, indices = (entries.indptr.numpy(), entries.indices.numpy())
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(N, N)).toarray() > 0


def test_unobserved_entries_are_not_in_the_support():
    pytest.importorskip("triton")
    M, unknown = example()
    support, hidden = Pattern(M, unknown, torch.device("cpu")).entries
    assert_array_equal(dense(support), (M.toarray() > 0) & ~unknown.toarray())
    assert_array_equal(dense(hidden), unknown.toarray())


def test_known_pairs_are_those_of_the_support_and_of_the_mask():
    M, unknown = example()
    pattern = Pattern(M, unknown, torch.device("cpu"))
    i, j = np.divmod(pattern.known.numpy(), N)
    expected = (M.toarray() > 0) | unknown.toarray()
    assert len(i) == expected.sum()
    assert expected[i, j].all()
    X = torch.from_numpy(np.random.default_rng(1).standard_normal((len(pattern.sample), N)))
    rows = pattern.sample.numpy()
    assert int(pattern.known_in_sample(X)) == ((X.numpy() > 0) & expected[rows]).sum()


def test_the_order_brings_entries_close_to_the_diagonal():
    M, _ = example()
    order = Pattern(M, None, torch.device("cpu")).order.numpy()
    assert_array_equal(np.sort(order), np.arange(N))
    i, j = M[order][:, order].nonzero()
    assert np.abs(i - j).max() <= 10


def test_entries_are_left_out_in_that_order():
    pytest.importorskip("triton")
    from symrelu.kernels.device_products import Tiling

    M, unknown = example()
    pattern = Pattern(M, unknown, torch.device("cpu"))
    left_out = pattern.left_out(Tiling(32, 16, 4, 1))
    order = pattern.order.numpy()
    expected = ((M.toarray() > 0) | unknown.toarray())[order][:, order]
    assert {*zip(left_out.rows.tolist(), left_out.columns.tolist(), strict=True)} == {
        (i, j) for i, j in np.argwhere(expected)
    }
    assert pattern.left_out(Tiling(32, 16, 4, 1)) is left_out  # made once
