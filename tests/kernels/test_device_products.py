"""max(0, X) V by a kernel for GPUs, against the formula: on a GPU, or in Triton's interpreter on the CPU."""

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from symrelu.kernels import device_products as products  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TILING = products.Tiling(32, 16, 4, 2)


def case(n, rank, columns, seed=0):
    """Return a factor, signs, V and a symmetric pattern of entries to leave out."""
    rng = np.random.default_rng(seed)
    U, V = (rng.standard_normal((n, width)).astype(np.float32) for width in (rank, columns))
    signs = np.where(np.arange(rank) < rank - 1, 1.0, -1.0).astype(np.float32)
    pattern = sparse.random_array((n, n), density=0.05, rng=rng) + sparse.eye_array(n)
    pattern = sparse.csr_array(pattern + pattern.T)
    pattern.sort_indices()
    return U, signs, V, pattern


def found(U, signs, V, pattern, **settings):
    left_out = products.tile_entries(pattern.indptr, pattern.indices, TILING, DEVICE)
    U, signs, V = (torch.from_numpy(array).to(DEVICE) for array in (U, signs, V))
    part = products.positive_product(U, signs, V, left_out, TILING, **settings)
    return [None if value is None else value.cpu().double().numpy() for value in part]


def expected(U, signs, V, pattern):
    X = (U.astype(float) * signs) @ U.T.astype(float)
    Y = np.where(pattern.toarray() != 0, 0, np.maximum(X, 0))
    return Y @ V.astype(float), (Y**2).sum(axis=1), np.count_nonzero(Y, axis=1)


@pytest.mark.parametrize(("split", "tolerance"), [(True, 2e-6), (False, 1e-3)])
@pytest.mark.parametrize(("n", "rank", "columns"), [(130, 3, 5), (40, 33, 1)])
def test_equals_the_formula(n, rank, columns, split, tolerance):
    problem = case(n, rank, columns)
    product, squares, counts = expected(*problem)
    actual = found(*problem, split=split)
    np.testing.assert_allclose(actual[0], product, rtol=0, atol=tolerance * np.abs(product).max())
    np.testing.assert_allclose(actual[1], squares, rtol=0, atol=tolerance * squares.max())
    assert np.abs(actual[2] - counts).max() <= (0 if split else 2)


def test_rows_of_very_different_lengths_keep_their_digits():
    """Each row has its own scale, and so has each column of V."""
    U, signs, V, pattern = case(60, 4, 3)
    U *= np.logspace(-12, 6, 60, dtype=np.float32)[:, None]
    V *= np.array([1e-20, 1, 1e20], np.float32)
    product, squares, _ = expected(U, signs, V, pattern)
    actual = found(U, signs, V, pattern, split=True)
    size = np.abs(product).max(axis=0) * (np.linalg.norm(U, axis=1) / np.linalg.norm(U, axis=1).max())[:, None]
    np.testing.assert_allclose(actual[0] / size, product / size, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(actual[1], squares, rtol=1e-5)


def test_a_wide_v_is_cut_into_slabs():
    problem = case(20, 2, 200)
    np.testing.assert_allclose(found(*problem, split=True, sums=False)[0], expected(*problem)[0], atol=1e-4)


def test_rows_of_zeros_have_no_direction():
    U = torch.tensor([[0.0, 0.0], [3e-30, 4e-30], [3e20, 4e20]])
    rows, lengths = products.directions(U)
    np.testing.assert_allclose(rows, [[0, 0], [0.6, 0.8], [0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(lengths, [0, 5e-30, 5e20], rtol=1e-6)


def test_every_entry_is_in_its_tile():
    *_, pattern = case(100, 2, 1)
    entries = products.tile_entries(pattern.indptr, pattern.indices, TILING, "cpu")
    places = set()
    for block in range(len(entries.first_tile) - 1):
        for place in range(entries.first_tile[block], entries.first_tile[block + 1]):
            for entry in range(entries.first_entry[place], entries.first_entry[place + 1]):
                i, j = int(entries.rows[entry]), int(entries.columns[entry])
                assert (i // TILING.rows, j // TILING.columns) == (block, int(entries.tiles[place]))
                places.add((i, j))
    assert places == set(zip(*(coordinate.tolist() for coordinate in pattern.nonzero()), strict=True))
