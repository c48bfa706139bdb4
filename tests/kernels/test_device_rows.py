"""Sums over listed entries by a kernel for GPUs, against the formula."""

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
transfers = pytest.importorskip("transfers")

from symrelu.kernels import device_rows  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def listed(kind, entries, dtype):
    parts = (entries.indptr.astype(np.int64), entries.indices.astype(np.int32), entries.data.astype(dtype))
    return device_rows.DeviceEntries.of(kind, *(torch.from_numpy(part).to(DEVICE) for part in parts))


def passed(lists, U, signs, V, at_least=False, weight=0.2):
    """Return the product and the sums of a pass over the entries of csr_arrays, by their kind."""
    lists = [listed(getattr(device_rows, kind), entries, U.dtype) for kind, entries in lists.items()]
    U, signs, V = (torch.from_numpy(array).to(DEVICE) for array in (U, signs, V))
    out, sums = device_rows.entry_sums(lists, U, signs, V, weight, at_least)
    alone = device_rows.entry_sums(lists, U, signs, None, weight, at_least)
    assert alone[0] is None
    torch.testing.assert_close(alone[1], sums, rtol=1e-5, atol=1e-5, equal_nan=True)
    return out.cpu().numpy(), dict(zip(device_rows.SUMS, sums.sum(dim=0).tolist(), strict=True))


def case(n, rank, columns, dtype):
    rng = np.random.default_rng(1)
    U, V = (rng.standard_normal((n, width)).astype(dtype) for width in (rank, columns))
    return U, rng.choice([-1, 1], rank).astype(dtype), V


def random_entries(n, seed=1):
    rng = np.random.default_rng(seed)
    entries = sparse.csr_array(sparse.random_array((n, n), density=0.5, rng=rng))
    entries.sort_indices()
    return entries


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")  # of NumPy, in which the interpreter computes
@pytest.mark.parametrize("kind", ["SUPPORT", "ZEROS"])
def test_products_that_overflow_show(kind):
    """The squares of these numbers are infinite, and their difference is NaN, which is not positive either."""
    U = np.full((2, 2), 2e19, np.float32)
    entries = sparse.csr_array(np.ones((2, 2)))
    out, sums = passed({kind: entries}, U, np.array([1, -1], np.float32), np.ones((2, 1), np.float32))
    assert not np.isfinite(out).any()
    assert not np.isfinite(sums["error" if kind == "SUPPORT" else "positive"])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("at_least", [False, True])
@pytest.mark.parametrize("kind", ["SUPPORT", "ZEROS", "UNKNOWN"])
def test_equals_the_formula(kind, at_least, dtype, tolerance):
    n = 12
    U, signs, V = case(n, 5, 3, dtype)
    entries = random_entries(n)
    out, sums = passed({kind: entries}, U, signs, V, at_least)
    X, M = (U * signs).astype(float) @ U.T.astype(float), entries.toarray()
    there = M > 0
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


KINDS = ("SUPPORT", "ZEROS", "UNKNOWN")


def test_lists_of_all_kinds_add_up():
    data = case(12, 5, 3, np.float64)
    lists = {kind: random_entries(12, seed) for seed, kind in enumerate(KINDS)}
    out, sums = passed(lists, *data)
    parts = [passed({kind: entries}, *data) for kind, entries in lists.items()]
    np.testing.assert_allclose(out, sum(part for part, _ in parts), rtol=1e-12)
    for name in device_rows.SUMS:
        assert sums[name] == pytest.approx(sum(each[name] for _, each in parts), rel=1e-12), name


def test_the_order_of_the_rows_changes_nothing():
    U, signs, V = (torch.from_numpy(array).to(DEVICE) for array in case(12, 5, 3, np.float64))
    lists = [listed(device_rows.SUPPORT, random_entries(12), np.float64)]
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    data = lists, U, signs, V, 0.2, False
    for found, expected in zip(
        device_rows.entry_sums(*data, order), device_rows.entry_sums(*data), strict=True
    ):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("longest", [1, 3, 5])
def test_long_rows_are_divided(kind, longest, monkeypatch):
    """Rows of 0 to 12 entries, some of them exactly as long as a piece, or twice."""
    entries = sparse.csr_array(np.tril(np.ones((13, 13)), -1))
    data = case(13, 4, 3, np.float64)
    monkeypatch.setattr(device_rows, "LONGEST", 100)
    whole, whole_sums = passed({kind: entries}, *data)
    monkeypatch.setattr(device_rows, "LONGEST", longest)
    out, sums = passed({kind: entries}, *data)
    np.testing.assert_allclose(out, whole, rtol=0, atol=1e-13)
    assert sums == pytest.approx(whole_sums, rel=1e-13)


def test_pieces_cover_every_entry_once(monkeypatch):
    monkeypatch.setattr(device_rows, "LONGEST", 3)
    lengths = [0, 7, 3, 4, 1, 6]
    pieces = device_rows.pieces_of(torch.tensor(np.cumsum([0, *lengths])))
    assert pieces.rows.tolist() == [1, 3, 5]
    assert pieces.first.tolist() == [0, 2, 3, 4]
    assert pieces.owners.tolist() == [1, 1, 3, 5]
    assert list(zip(pieces.begins.tolist(), pieces.ends.tolist(), strict=True)) == [
        (3, 6), (6, 7), (13, 14), (18, 21),
    ]  # fmt: skip
    monkeypatch.setattr(device_rows, "LONGEST", 7)
    assert device_rows.pieces_of(torch.tensor(np.cumsum([0, *lengths]))) is None


def test_a_pass_does_not_wait_for_the_division_of_long_rows(monkeypatch):
    """The entries are divided when they are listed: passes over the same list read nothing from the device."""
    monkeypatch.setattr(device_rows, "LONGEST", 3)
    U, signs, V = (torch.from_numpy(array).to(DEVICE) for array in case(12, 4, 3, np.float64))
    made = []
    reads = transfers.transfers(lambda: made.append(listed(device_rows.ZEROS, random_entries(12), np.float64)))
    assert [size for _, size in reads] == [1, 1]  # the number of long rows, and that of their pieces
    assert made[0].pieces is not None
    # The interpreter reads all of a kernel's arguments.
    monkeypatch.setattr(device_rows, "_launch", lambda *_: None)
    monkeypatch.setattr(device_rows, "_add_pieces", lambda *_: None)
    assert not transfers.transfers(lambda: device_rows.entry_sums(made, U, signs, V, 0.2, False))


def test_no_entries_add_nothing():
    data = case(3, 2, 2, np.float32)
    for lists in ({}, {"ZEROS": sparse.csr_array((3, 3))}):
        out, sums = passed(lists, *data)
        assert not out.any()
        assert not any(sums.values())
