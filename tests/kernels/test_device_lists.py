"""Candidates that a GPU lists: all positive pairs, no known ones, and the same in every run."""

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from symrelu.kernels import device_lists as lists  # noqa: E402
from symrelu.kernels import device_products as products  # noqa: E402
from symrelu.kernels import device_scaling as scaling  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TILING = products.Tiling(32, 16, 4, 2)


def listed(U, signs, known, room=10_000):
    n, rank = U.shape
    rows, lengths = scaling.directions(torch.from_numpy(U).to(DEVICE))
    items = torch.nonzero(lengths)[:, 0]
    D = scaling.halves(rows[items], split=False)
    blocks = len(D.high) // TILING.rows
    buffer = lists.Buffer(torch.full((blocks,), room, device=DEVICE), room * blocks)
    lists.scan(D, torch.from_numpy(signs).to(DEVICE), len(items), lists.margin(rank), TILING, buffer)
    i, j = known.nonzero()
    keys = torch.from_numpy(i.astype(np.int64) * n + j).to(DEVICE)
    fits = int(buffer.counts.max()) <= room
    if not fits:
        return buffer, None
    return buffer, lists.sorted_pairs(lists.sorting_keys(buffer.found(), keys, n, items), n)


def example(dtype):
    rng = np.random.default_rng(0)
    U = rng.standard_normal((70, 5)).astype(dtype)
    U[3], U[4], U[5] = 0, 1e-25, U[6]
    known = sparse.random_array((70, 70), density=0.1, rng=rng)
    return U, np.array([1, 1, 1, -1, -1], dtype), sparse.csr_array(known + known.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_positive_zero_is_listed_in_order(dtype):
    U, signs, known = example(dtype)
    _, pairs = listed(U, signs, known)
    indptr, indices = pairs.indptr.cpu().numpy(), pairs.indices.cpu().numpy()
    found = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(70, 70))
    assert found.has_sorted_indices
    assert found.has_canonical_format
    listed_ = found.toarray() > 0
    wide = U.astype(float)
    X, zeros = (wide * signs) @ wide.T, known.toarray() == 0
    assert not (listed_ & ~zeros).any()
    assert listed_[(X > 0) & zeros].all()
    assert (listed_ == listed_.T).all()
    lengths = np.linalg.norm(wide, axis=1)
    assert (-2 * lists.margin(5) * np.outer(lengths, lengths) < X)[listed_].all()


def test_a_full_buffer_says_how_many_there_are():
    problem = example(np.float32)
    enough, pairs = listed(*problem)
    scarce, none = listed(*problem, room=4)
    assert none is None
    assert pairs is not None
    assert scarce.counts.tolist() == enough.counts.tolist()


def test_a_second_scan_has_just_the_room_that_is_needed():
    U, signs, known = example(np.float32)
    first, pairs = listed(U, signs, known)
    D = scaling.halves(
        scaling.directions(torch.from_numpy(U).to(DEVICE)[[0, 1, 2, *range(4, 70)]])[0], split=False
    )
    exact = lists.Buffer(first.counts.clone(), int(first.counts.sum()))
    lists.scan(D, torch.from_numpy(signs).to(DEVICE), 69, lists.margin(5), TILING, exact)
    assert sorted(exact.found().tolist()) == sorted(first.found().tolist())
    assert len(exact.places) == int(first.counts.sum())
    assert pairs is not None


def test_a_pair_that_float16_makes_negative_is_listed():
    """<u_0, u_1> is positive, and negative after rounding to float16."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4000, 2, 8))
    rows[:, 1] -= (
        rows[:, 0] * (np.sum(rows[:, 0] * rows[:, 1], axis=1) / np.sum(rows[:, 0] ** 2, axis=1))[:, None]
    )
    rows[:, 1] += 1e-5 * rows[:, 0]
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    halves = rows.astype(np.float16).astype(float)
    spoilt = np.sum(halves[:, 0] * halves[:, 1], axis=1) < -2e-4
    assert spoilt.any()
    U = rows[np.flatnonzero(spoilt)[0]].astype(np.float32)
    assert U[0].astype(float) @ U[1] > 0
    _, pairs = listed(U, np.ones(8, np.float32), sparse.csr_array(np.eye(2)))
    assert pairs.indices.tolist() == [1, 0]


def test_the_margin_is_that_of_float16():
    rng = np.random.default_rng(0)
    for rank in (2, 16, 64):
        rows = rng.standard_normal((200, rank))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rounded = rows.astype(np.float16).astype(float)
        assert np.abs(rounded @ rounded.T - rows @ rows.T).max() <= lists.margin(rank) <= 1.2e-3
