"""Factors in float16 with their scales, against torch: on a GPU, or in Triton's interpreter on the CPU."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from symrelu.kernels import device_scaling as scaling  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def case(n, rank, columns):
    rng = np.random.default_rng(0)
    U, V = (torch.from_numpy(rng.standard_normal((n, k), np.float32)).to(DEVICE) for k in (rank, columns))
    signs = torch.from_numpy(rng.choice([-1.0, 1.0], rank).astype(np.float32)).to(DEVICE)
    return U, signs, V, torch.from_numpy(rng.permutation(n)).to(DEVICE)


def value(A):
    return A.high.double() + (0 if A.low is None else A.low.double())


@pytest.mark.parametrize(("split", "tolerance"), [(False, 2**-11), (True, 2**-21)])
@pytest.mark.parametrize(("n", "rank", "columns"), [(130, 3, 5), (1, 17, 1), (200, 40, 70)])
def test_equals_the_formula(n, rank, columns, split, tolerance):
    U, signs, V, order = case(n, rank, columns)
    scaled = scaling.scaled_factors(U, signs, V, order, split=split)
    rows, lengths = scaling.directions(U[order].double())
    for found, expected in ((scaled.B, rows), (scaled.A, rows * signs)):
        torch.testing.assert_close(value(found)[:n, :rank], expected, rtol=0, atol=tolerance)
        assert not found.high[n:].any()
        assert not found.high[:, rank:].any()
    torch.testing.assert_close(scaled.lengths[:n].double(), lengths, rtol=1e-6, atol=0)
    right = value(scaled.right) * scaled.largest
    torch.testing.assert_close(right[:n, :columns], V[order] * lengths[:, None], rtol=0, atol=20 * tolerance)
    assert value(scaled.right).abs().max() <= 1
    assert not right[n:].any()


def test_a_column_of_zeros_stays_zero():
    U, signs, V, order = case(20, 3, 4)
    V[:, 1] = 0
    assert not scaling.scaled_factors(U, signs, V, order, split=True).right.high[:, 1].any()


@pytest.mark.parametrize("subtracts", [True, False])
@pytest.mark.parametrize("sums", [True, False])
def test_the_scales_are_put_back(subtracts, sums):
    U, signs, V, order = case(150, 5, 5)
    scaled = scaling.scaled_factors(U, signs, V, order, split=False)
    product = torch.randn((256, 16), generator=torch.Generator().manual_seed(0)).to(DEVICE)
    whole = torch.zeros_like(V)
    whole[order] = (product * scaled.lengths[:, None] * scaled.largest)[:150, :5]
    out = V.clone()
    factor = (U, signs) if sums else None
    found = scaling.subtract_scaled(out if subtracts else None, product, scaled, 0.3, factor)
    torch.testing.assert_close(out, V - 0.3 * whole if subtracts else V)
    if sums:
        torch.testing.assert_close(found.sum(), (U.double() * signs * whole).sum(), rtol=1e-5, atol=1e-3)
    else:
        assert found is None


def test_rows_of_zeros_have_no_direction():
    U = torch.tensor([[0.0, 0.0], [3e-30, 4e-30], [3e20, 4e20]])
    rows, lengths = scaling.directions(U)
    np.testing.assert_allclose(rows, [[0, 0], [0.6, 0.8], [0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(lengths, [0, 5e-30, 5e20], rtol=1e-6)
