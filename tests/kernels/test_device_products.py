"""max(0, X) V by a kernel for GPUs, against the formula: on a GPU, or in Triton's interpreter on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from symrelu.kernels import device_products as products  # noqa: E402
from symrelu.kernels import device_tilings  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TILING = products.Tiling(32, 16, 4, 2)
SHARED_MEMORY_OF_AN_H200 = 232_448


def case(n, rank, columns, seed=0, entries=None):
    """Return a factor, signs, V and a symmetric pattern of entries to leave out: many, or so many pairs."""
    rng = np.random.default_rng(seed)
    U, V = (rng.standard_normal((n, width)).astype(np.float32) for width in (rank, columns))
    signs = np.where(np.arange(rank) < rank - 1, 1.0, -1.0).astype(np.float32)
    if entries is None:
        pattern = sparse.random_array((n, n), density=0.05, rng=rng) + sparse.eye_array(n)
    else:
        pattern = sparse.random_array((n, n), density=entries / n**2, rng=rng)
    pattern = sparse.csr_array(pattern + pattern.T)
    pattern.sort_indices()
    return U, signs, V, pattern


def found(U, signs, V, pattern, tiling=TILING, **settings):
    """Return max(0, X) V, the sum of the squares of max(0, X), and the number of its positive entries."""
    order = np.random.default_rng(3).permutation(len(U))
    ordered = sparse.csr_array(pattern[order][:, order])
    left_out = products.tile_entries(ordered.indptr, ordered.indices, tiling, DEVICE)
    U, signs, V, order = (torch.from_numpy(array).to(DEVICE) for array in (U, signs, V, order))
    out = torch.zeros_like(V)
    sums = products.subtract_positive(
        out, U, signs, U if settings.get("counts") is False else V, order, left_out, tiling,
        weight=-1.0, **settings,
    )  # fmt: skip
    totals = (None if part is None else float(part.sum(dtype=torch.float64)) for part in sums)
    return [out.cpu().double().numpy(), *totals]


def expected(U, signs, V, pattern):
    X = (U.astype(float) * signs) @ U.T.astype(float)
    Y = np.where(pattern.toarray() != 0, 0, np.maximum(X, 0))
    return Y @ V.astype(float), (Y**2).sum(), np.count_nonzero(Y)


@pytest.mark.parametrize(("split", "tolerance"), [(True, 2e-6), (False, 1e-3)])
@pytest.mark.parametrize(
    ("n", "rank", "columns", "entries"), [(130, 3, 5, None), (40, 33, 1, None), (250, 3, 5, 6)]
)
def test_equals_the_formula(n, rank, columns, entries, split, tolerance):
    """Tiles with entries, and tiles without."""
    problem = case(n, rank, columns, entries=entries)
    product, squares, counts = expected(*problem)
    actual = found(*problem, split=split)
    np.testing.assert_allclose(actual[0], product, rtol=0, atol=tolerance * np.abs(product).max())
    assert actual[1] == pytest.approx(squares, rel=tolerance)
    assert actual[2] == pytest.approx(counts, rel=0 if split else 1e-3, abs=0)


def test_rows_of_very_different_lengths_keep_their_digits():
    """Each row has its own scale, and so has each column of V."""
    U, signs, V, pattern = case(60, 4, 3)
    U *= np.logspace(-12, 6, 60, dtype=np.float32)[:, None]
    V *= np.array([1e-20, 1, 1e20], np.float32)
    product, squares, _ = expected(U, signs, V, pattern)
    actual = found(U, signs, V, pattern, split=True)
    size = np.abs(product).max(axis=0) * (np.linalg.norm(U, axis=1) / np.linalg.norm(U, axis=1).max())[:, None]
    np.testing.assert_allclose(actual[0] / size, product / size, rtol=1e-6, atol=1e-5)
    assert actual[1] == pytest.approx(squares, rel=1e-5)


def test_a_wide_v_is_cut_into_slabs():
    problem = case(20, 2, 200)
    np.testing.assert_allclose(found(*problem, split=True)[0], expected(*problem)[0], atol=1e-4)


def test_without_counts_the_squares_come_from_the_product():
    U, signs, _, pattern = case(40, 5, 5)
    product, squares, _ = expected(U, signs, U, pattern)
    actual = found(U, signs, U, pattern, split=True, counts=False)
    np.testing.assert_allclose(actual[0], product, atol=2e-6 * np.abs(product).max())
    assert actual[1] == pytest.approx(squares, rel=2e-6)
    assert actual[2] is None


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize(
    ("columns", "pieces", "settings"),
    [
        (5, 1, {"split": False}),
        (5, 4, {"split": False}),
        (5, 2, {"split": True}),
        (3, 2, {"split": False, "counts": False}),
        (200, 2, {"split": False}),  # two slabs, of which a descriptor takes one
    ],
)
def test_tiles_in_pieces_and_by_descriptors_change_nothing(columns, pieces, settings, described):
    """Most tiles of a sparse matrix have no entries, and the loop over them is another one."""
    if described and DEVICE == "cuda" and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("this GPU has no engine for descriptors")
    U, signs, V, pattern = case(250, 3, columns, entries=6)
    V = V if settings.get("counts", True) else U
    tiling = products.Tiling(64, 64, 4, 2, pieces, described)
    occupied = products.tile_entries(pattern.indptr, pattern.indices, tiling, "cpu").tiles
    assert 4 <= len(occupied) <= 12  # of 16
    actual = found(U, signs, V, pattern, tiling=tiling, **settings)
    product, squares, counts = expected(U, signs, V, pattern)
    tolerance = 2e-6 if settings["split"] else 1e-3
    np.testing.assert_allclose(actual[0], product, rtol=0, atol=tolerance * np.abs(product).max())
    assert actual[1] == pytest.approx(squares, rel=tolerance)
    assert actual[2] is None or actual[2] == pytest.approx(counts, rel=0 if settings["split"] else 1e-3, abs=0)


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


def test_too_many_entries_are_refused(monkeypatch):
    monkeypatch.setattr(products, "_MOST_NUMBERS", 9)
    pattern = sparse.csr_array(np.ones((4, 4)))
    with pytest.raises(ValueError, match=r"fewer than 2\^31 entries, .* got 16"):
        products.tile_entries(pattern.indptr, pattern.indices, TILING, "cpu")


@pytest.mark.parametrize(
    ("n", "rank", "use"),
    [(9_000_000, 129, "a rank of at most 128, "), (10**6, 5000, "a rank of at most 2048, ")],
)
def test_factors_that_are_too_large_are_refused(n, rank, use):
    products.check_offsets(n, 128)
    with pytest.raises(ValueError, match=rf"got {n} x {rank}, padded to .* Use {use}backend='sparse'"):
        products.check_offsets(n, rank)
    for larger in (2 * 10**8, 3 * 10**9):
        with pytest.raises(ValueError, match="Use backend='sparse'"):
            products.check_offsets(larger, rank)


def test_the_compiler_takes_every_kernel_and_no_registers_are_missing(tmp_path):
    """Of all modules of kernels for GPUs; it needs no GPU."""
    program = Path(__file__).parents[1] / "compiled_kernels.py"
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path)}
    made = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, env=environment
    )
    found = [line.split() for line in made.stdout.splitlines()]
    assert len({name for name, *_ in found}) == 7
    assert {spilled for _, spilled, _ in found} == {"0"}
    assert max(int(shared) for *_, shared in found) == device_tilings._SHARED_MEMORY <= SHARED_MEMORY_OF_AN_H200
