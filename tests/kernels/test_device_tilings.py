"""The stored tiles fit the arrays for every rank."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from symrelu.kernels import device_products as products
from symrelu.kernels import device_tilings as tilings


@pytest.mark.parametrize("rank", [1, 16, 17, 32, 64, 65, 128, 200, 512])
def test_tiles_divide_the_padded_arrays(rank):
    chosen = [
        tilings.tiling_of_scan(rank),
        *(tilings.tiling_of_product(rank, split) for split in (True, False)),
    ]
    for tiling in chosen:
        assert products.ROWS_AT_ONCE % tiling.rows == 0
        assert products.ROWS_AT_ONCE % tiling.columns == 0
    assert products.padded_columns(rank) >= max(16, rank)
