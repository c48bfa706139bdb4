"""The stored tiles fit the arrays for every rank."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from symrelu.kernels import device_scaling as scaling  # noqa: E402
from symrelu.kernels import device_tilings as tilings  # noqa: E402


@pytest.mark.parametrize("rank", [1, 16, 17, 32, 64, 65, 128, 200, 512])
def test_tiles_divide_the_padded_arrays(rank):
    sizes = (True, False)
    chosen = [tilings.tiling_of_scan(rank, large) for large in sizes]
    chosen += [tilings.tiling_of_product(rank, split, large) for split in (True, False) for large in sizes]
    for tiling in chosen:
        assert scaling.ROWS_AT_ONCE % tiling.rows == 0
        assert scaling.ROWS_AT_ONCE % tiling.columns == 0
        assert tiling.columns % (16 * tiling.pieces) == 0  # the matrix units take no less
    assert scaling.padded_columns(rank) >= max(16, rank)


@pytest.mark.parametrize("rank", [1, 32, 64, 128, 200])
def test_small_devices_need_no_engine_for_descriptors(rank):
    assert not any(tilings.tiling_of_product(rank, split, large=False).described for split in (True, False))


def test_the_interpreter_runs_the_tuned_tiles():
    assert tilings.has_large_tiles(torch.device("cpu"))
    assert tilings.tiling_of_product(64, True) != tilings.tiling_of_product(64, True, large=False)
