"""Sums over listed entries by a kernel for GPUs, against the formula."""

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from symrelu.kernels import device_rows  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def passed(kind, A, B, V, entries, at_least, weight=0.2):
    """Return the product and the sums of a pass over the entries of a csr_array."""
    dtype = A.dtype
    A, B, V = (torch.from_numpy(array).to(DEVICE) for array in (A, B, V))
    out, sums = torch.zeros_like(V), torch.zeros((len(A), 7), dtype=torch.float64, device=DEVICE)
    parts = (entries.indptr.astype(np.int64), entries.indices.astype(np.int32), entries.data.astype(dtype))
    listed = device_rows.DeviceEntries(kind, *(torch.from_numpy(part).to(DEVICE) for part in parts))
    device_rows.add_entries(listed, A, B, V, weight, at_least, out, sums)
    return out.cpu().numpy(), dict(zip(device_rows.SUMS, sums.sum(dim=0).tolist(), strict=True))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("at_least", [False, True])
@pytest.mark.parametrize("kind", ["SUPPORT", "ZEROS", "UNKNOWN"])
def test_equals_the_formula(kind, at_least, dtype, tolerance):
    rng = np.random.default_rng(1)
    n = 12
    A, B, V = (rng.standard_normal((n, width)).astype(dtype) for width in (5, 5, 3))
    entries = sparse.csr_array(sparse.random_array((n, n), density=0.5, rng=rng))
    entries.sort_indices()
    out, sums = passed(getattr(device_rows, kind), A, B, V, entries, at_least)
    X, M, there = A.astype(float) @ B.T.astype(float), entries.toarray(), entries.toarray() > 0
    expected, R = dict.fromkeys(device_rows.SUMS, 0.0), np.zeros((n, n))
    if kind == "SUPPORT":
        met = there & (X > M) if at_least else np.zeros_like(there)
        counted = there & ~met
        R = np.where(counted, M - X, 0)
        expected["fit"] = np.sum(R**2)
        expected["error"] = np.sum((M - np.maximum(X, 0))[counted] ** 2)
        expected["free"] = np.sum((X**2 - M**2)[met])
        expected["inner"] = np.sum(R * X)
        expected["visited"] = np.sum(X[there] ** 2)
    elif kind == "ZEROS":
        above = there & (X > 0)
        R = np.where(above, -0.2 * X, 0)
        expected |= {"positive": np.sum(X[above] ** 2), "active": above.sum(), "visited": np.sum(X[above] ** 2)}
    else:
        expected |= {"free": np.sum(X[there] ** 2), "visited": np.sum(X[there] ** 2)}
    scale = np.sum(X**2) + np.sum(M**2)
    np.testing.assert_allclose(out, R @ V, rtol=0, atol=tolerance * scale)
    for name, value in expected.items():
        assert sums[name] == pytest.approx(value, rel=0, abs=tolerance * scale), name


def test_no_entries_are_no_work():
    nothing = sparse.csr_array((3, 3))
    out, sums = passed(device_rows.ZEROS, *(np.ones((3, 2), np.float32),) * 3, nothing, False)
    assert not out.any()
    assert not any(sums.values())
