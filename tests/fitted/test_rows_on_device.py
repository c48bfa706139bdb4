"""Rows of new items on a torch device, compared with those of the host."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu.fitted import new_rows

torch = pytest.importorskip("torch")

from small_blocks import DEVICES, small_blocks  # noqa: E402

from symrelu.fitted.rows_on_device import transform_rows  # noqa: E402

pytestmark = pytest.mark.parametrize("device", DEVICES)


def assert_same(U, signature, M_new, mask, device, **settings):
    expected = new_rows.transform_rows(M_new, U, signature, mask=mask, **settings)
    found = transform_rows(M_new, U, signature, mask=mask, device=torch.device(device), **settings)
    assert found.dtype == expected.dtype
    # Both are minima up to a relative cost of 1e-18, so up to 1e-9 times the condition of the problem.
    sizes = np.abs(expected).max(axis=0, initial=0.0)
    tolerance = 1e-6 if U.dtype == np.float64 else 1e-5
    assert_allclose(found / np.where(sizes, sizes, 1), expected / np.where(sizes, sizes, 1), atol=tolerance)


@settings(max_examples=30)
@given(
    n=st.integers(2, 40),
    rank=st.integers(1, 5),
    share=st.floats(0, 1),
    dtype=st.sampled_from(["float32", "float64"]),
    alpha=st.sampled_from([0.0, 0.3]),
    zero_weight=st.sampled_from([1.0, 0.2]),
    at_least=st.booleans(),
    hidden=st.sampled_from([None, 0.2]),
    form=st.sampled_from([np.asarray, sparse.csr_array]),
    numbers=st.sampled_from([1, 300, 2**19]),
    seed=st.integers(0, 2**16),
)
def test_rows_are_those_of_the_host(
    device, n, rank, share, dtype, alpha, zero_weight, at_least, hidden, form, numbers, seed
):
    rng = np.random.default_rng(seed)
    U = (rng.standard_normal((n, rank)) * 10.0 ** rng.integers(-2, 3, rank)).astype(dtype)
    signature = rng.choice([-1.0, 1.0], rank).astype(dtype)
    M_new = np.maximum(0, rng.standard_normal((9, n))) * (rng.random((9, n)) < share)
    mask = None if hidden is None else rng.random((9, n)) < hidden
    if mask is not None:
        M_new[mask] = 0
        mask = form(mask)
    model = {"alpha": alpha, "zero_weight": zero_weight, "at_least": at_least}
    with small_blocks(numbers):
        assert_same(U, signature, form(M_new), mask, device, **model)


@pytest.mark.parametrize("at_least", [False, True])
def test_the_minimum_of_least_norm_is_returned(device, at_least):
    """Two similarities leave two of four directions free."""
    rng = np.random.default_rng(0)
    U, M_new = rng.standard_normal((12, 4)), np.zeros((3, 12))
    M_new[:, 3], M_new[:, 7] = 1.0, 2.0
    mask = M_new == 0
    assert_same(U, np.array([1.0, 1.0, 1.0, -1.0]), M_new, mask, device, at_least=at_least)


def test_items_with_the_same_row_and_rows_of_zeros(device):
    rng = np.random.default_rng(1)
    U = np.repeat(rng.standard_normal((5, 3)), 3, axis=0)
    U[4] = 0
    M_new = np.maximum(0, rng.standard_normal((6, 15)))
    M_new[2] = 0
    assert_same(U, np.array([1.0, 1.0, -1.0]), M_new, None, device)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**1000])
def test_similarities_of_any_size(device, scale):
    rng = np.random.default_rng(2)
    U = rng.standard_normal((10, 2))
    M_new = np.maximum(0, rng.standard_normal((3, 10)))
    here = torch.device(device)
    rows = transform_rows(scale * M_new, U, np.ones(2), device=here)
    assert_array_equal(rows, scale * transform_rows(M_new, U, np.ones(2), device=here))


def test_nothing_to_do(device):
    U = np.ones((4, 2))
    for M_new in (np.zeros((0, 4)), np.zeros((3, 4))):
        assert_array_equal(
            transform_rows(M_new, U, np.ones(2), device=torch.device(device)), np.zeros((len(M_new), 2))
        )
    assert_array_equal(
        transform_rows(np.ones((3, 4)), 0 * U, np.ones(2), device=torch.device(device)), np.zeros((3, 2))
    )


def test_rows_beyond_the_range_of_the_factor_are_refused(device):
    with pytest.raises(ValueError, match=r"must be within the range of float32, but row 1 is not"):
        transform_rows(
            np.array([[0.0], [1e30]]),
            np.full((1, 1), 1e-20, np.float32),
            np.ones(1),
            device=torch.device(device),
        )
