"""The choice between tiles and a list of pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from symrelu.operators import chosen_backend
from symrelu.operators.pass_costs import least_share_of_scans, list_cost, list_pays, tile_cost

DTYPES = [np.dtype(np.float32), np.dtype(np.float64)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scans_are_what_grows_in_the_cost_of_a_list(dtype):
    """Late in a fit no zero is positive, and the constant cost of a row vanishes next to a million columns."""
    n, rank = 10**9, 32
    assert list_cost(n, rank, 0.0) / tile_cost(n, rank, dtype) == pytest.approx(
        least_share_of_scans(dtype), rel=1e-3
    )


@pytest.mark.parametrize("dtype", DTYPES)
@given(n=st.integers(1, 10**7), rank=st.integers(1, 512), positive=st.floats(0, 1))
def test_lists_pay_for_large_matrices_and_few_positive_zeros(dtype, n, rank, positive):
    positive *= n
    assert list_pays(n, rank, dtype, positive) == (list_cost(n, rank, positive) < tile_cost(n, rank, dtype))
    if list_pays(n, rank, dtype, positive):
        assert list_pays(n, rank, dtype, positive / 2)
        assert list_pays(n + 1, rank, dtype, positive)
    else:
        assert not list_pays(n, rank, dtype, min(n, 2 * positive))


@pytest.mark.parametrize(("dtype", "n"), [(DTYPES[0], 200_000), (DTYPES[1], 50_000), (DTYPES[1], 10**7)])
def test_the_model_of_the_paper_stays_with_tiles(dtype, n):
    """60 % of its pairs are positive."""
    assert not list_pays(n, 32, dtype, 0.6 * n)
    assert list_pays(n, 32, dtype, 50.0)


def identity(n, dtype=np.float64):
    return sparse.eye_array(n, format="csr", dtype=dtype)


@pytest.mark.parametrize(
    ("backend", "M", "rank", "signed", "expected"),
    [
        ("auto", identity(50_000), 32, True, "active"),
        ("auto", identity(50_000), 32, False, "sparse"),
        ("auto", identity(1000), 32, True, "sparse"),
        ("auto", identity(2500), 32, True, "active"),
        ("auto", identity(2500, np.float32), 32, True, "sparse"),
        ("auto", identity(5500), 8, True, "sparse"),
        ("auto", np.eye(10), 3, True, "dense"),
        ("sparse", identity(50_000), 32, True, "sparse"),
        ("active", identity(10), 3, False, "active"),
    ],
)
def test_automatic_backend(backend, M, rank, signed, expected):
    signature = np.append(np.ones(rank - 1), -1.0 if signed else 1.0)
    assert chosen_backend(backend, M, signature) == expected
