"""Smaller problems: their entries against the formula, and what may not leak into them."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from symrelu import Problem
from symrelu.problem import coarsening
from symrelu.problem.coarsening import coarse_levels


@pytest.fixture
def any_density(monkeypatch):
    """Merge the small graphs of these tests too, which are too dense to be of use."""
    monkeypatch.setattr(coarsening, "_MOST_ENTRIES", 1.0)
    monkeypatch.setattr(coarsening, "_MOST_POSITIVE", 1.0)


def graph(seed, n=61, density=0.1):
    rng = np.random.default_rng(seed)
    half = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density))
    return half + half.T


def symmetric_mask(seed, n, share):
    half = np.triu(np.random.default_rng([seed, 1]).random((n, n)) < share)
    return half | half.T


def indicator(levels):
    """Return the matrix with a 1 where an item of the first problem belongs to a group of the last."""
    Z = np.eye(len(levels[0].groups))
    for level in levels:
        Z = Z @ np.eye(level.problem.n)[level.groups]
    return Z


def expected(M, known, Z):
    """Return root sizes times the mean of the observed entries, and where there are none."""
    sizes = Z.sum(axis=0)
    count = Z.T @ known @ Z
    mean = Z.T @ (M * known) @ Z / np.where(count > 0, count, 1)
    return np.sqrt(np.outer(sizes, sizes)) * mean, count == 0


@pytest.mark.usefixtures("any_density")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
@pytest.mark.parametrize("share", [None, 0.0, 0.3, 0.9])
def test_entries_are_means_of_what_is_observed(kind, diagonal, share):
    M = graph(0)
    mask = np.zeros(M.shape, bool) if share is None else symmetric_mask(0, len(M), share)
    problem = Problem.of(kind(M), None if share is None else mask, diagonal)
    levels = coarse_levels(problem, 10)
    assert levels
    for k, level in enumerate(levels, 1):
        Z = indicator(levels[:k])
        entries, hidden = expected(M, (~mask).astype(float), Z)
        if diagonal == "ignore":
            np.fill_diagonal(entries, 0)
        got = level.problem
        assert_allclose(got.M.toarray(), entries, rtol=1e-6, atol=1e-14)  # in float32
        assert_array_equal(got.M.toarray(), got.M.toarray().T)
        assert (got.M.data > 0).all()
        assert got.diagonal == diagonal
        assert_array_equal(level.sizes, Z.sum(axis=0))
        if share is not None:
            off = ~np.eye(got.n, dtype=bool) | (diagonal == "fit")
            assert_array_equal(got.mask.toarray()[off], hidden[off])


@pytest.mark.usefixtures("any_density")
def test_it_is_the_projection_of_the_matrix_if_all_is_observed():
    """The best X that is constant on groups: P^T M P with orthonormal columns P."""
    M = graph(1)
    levels = coarse_levels(Problem.of(M), 10)
    Z = indicator(levels)
    P = Z / np.linalg.norm(Z, axis=0)
    assert_allclose(P.T @ P, np.eye(P.shape[1]), atol=1e-14)
    assert_allclose(levels[-1].problem.M.toarray(), P.T @ M @ P, rtol=1e-6, atol=1e-13)


@pytest.mark.usefixtures("any_density")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_masked_entries_do_not_leak(kind):
    M, mask = graph(2), symmetric_mask(2, 61, 0.3)
    first = coarse_levels(Problem.of(kind(M), mask), 10)
    others = coarse_levels(Problem.of(kind(np.where(mask, 7.0, M)), mask), 10)
    for level, other in zip(first, others, strict=True):
        assert_array_equal(level.groups, other.groups)
        assert_array_equal(level.problem.M.toarray(), other.problem.M.toarray())


@pytest.mark.usefixtures("any_density")
def test_an_ignored_diagonal_does_not_leak():
    M = graph(3)
    first, others = (coarse_levels(Problem.of(M + c * np.eye(61), diagonal="ignore"), 10) for c in (0, 9))
    for level, other in zip(first, others, strict=True):
        assert_array_equal(level.problem.M.toarray(), other.problem.M.toarray())


@pytest.mark.usefixtures("any_density")
@pytest.mark.parametrize("scale", [4.0**-400, 4.0**-3, 4.0**400])
def test_scale(scale):
    """Merging goes by the order of the weights; the smaller problems are in the units of the scaled one."""
    M = graph(4)
    first, others = coarse_levels(Problem.of(M), 10), coarse_levels(Problem.of(M * scale), 10)
    for level, other in zip(first, others, strict=True):
        assert_array_equal(level.groups, other.groups)
        a, b = level.problem.M.toarray(), other.problem.M.toarray()
        assert_allclose(a * b.max(), b * a.max(), rtol=1e-14)
        assert 1e-3 < b.max() < 1e6


@pytest.mark.usefixtures("any_density")
def test_dtype():
    levels = coarse_levels(Problem.of(graph(5).astype(np.float32)), 10)
    doubles = coarse_levels(Problem.of(graph(5).astype(np.float32).astype(float)), 10)
    for single, double in zip(levels, doubles, strict=True):
        assert single.problem.dtype == double.problem.dtype == np.float32
        assert_allclose(single.problem.M.toarray(), double.problem.M.toarray(), rtol=1e-6)


def edges(n, pairs):
    i, j = np.array(list(pairs)).T
    half = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(n, n))
    return sparse.csr_array(half + half.T)


N = 900
GRAPHS = {
    "path": edges(N, ((i, i + 1) for i in range(N - 1))),
    "grid": edges(N, [(i, i + 30) for i in range(N - 30)] + [(i, i + 1) for i in range(N) if i % 30 < 29]),
    "star": edges(N, ((0, i) for i in range(1, N))),
    "two stars and isolated nodes": edges(N, ((i // 300 * 300, i) for i in range(600) if i % 300)),
}


@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_halved_until_they_are_small(name, diagonal):
    """The leaves of stars and isolated nodes are merged as well."""
    sizes = [N] + [level.problem.n for level in coarse_levels(Problem.of(GRAPHS[name], diagonal=diagonal), 200)]
    assert sizes[-1] <= 200
    assert all(small <= 0.6 * large for large, small in pairwise(sizes))


@pytest.mark.parametrize("diagonal", ["fit", "ignore"])
@pytest.mark.parametrize(
    "matrix",
    [
        sparse.csr_array(1 - np.eye(200)),
        edges(N, [(7, 8)]),
        edges(N, ((2 * k, 2 * k + 1) for k in range(N // 2))),
        sparse.csr_array(
            sparse.random_array((N, N), density=0.01, rng=np.random.default_rng(0)) > 0, dtype=float
        ),
    ],
    ids=["complete", "one edge", "single edges", "random"],
)
def test_graphs_that_no_smaller_one_resembles(matrix, diagonal):
    assert coarse_levels(Problem.of(matrix.maximum(matrix.T), diagonal=diagonal), 100) == []


def test_triangles_are_merged_as_long_as_edges_are_left():
    matrix = edges(N, ((3 * k + i, 3 * k + (i + 1) % 3) for k in range(N // 3) for i in range(3)))
    assert [level.problem.n for level in coarse_levels(Problem.of(matrix, diagonal="ignore"), 100)] == [
        N * 2 // 3
    ]


def test_small_problems_are_left_alone():
    assert coarse_levels(Problem.of(GRAPHS["path"]), N) == []
    assert [level.problem.n for level in coarse_levels(Problem.of(GRAPHS["path"]), N - 1)] == [N // 2]


@pytest.mark.usefixtures("any_density")
def test_numbering_does_not_matter_if_no_two_weights_are_equal():
    M, order = graph(6, density=0.3), np.random.default_rng(0).permutation(61)
    (first, *_), (other, *_) = (
        coarse_levels(Problem.of(A, diagonal="ignore"), 31) for A in (M, M[order][:, order])
    )
    assert_array_equal(np.sort(first.sizes), np.sort(other.sizes))
    together = first.groups[:, None] == first.groups[None, :]
    assert_array_equal(together[order][:, order], other.groups[:, None] == other.groups[None, :])
    assert_allclose(np.sort(first.problem.M.data), np.sort(other.problem.M.data), rtol=1e-13)
