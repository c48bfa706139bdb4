"""Places of bits, against Python's integers."""

import numba
import pytest

from symrelu.kernels.bits import trailing_zeros


@numba.njit
def counted(word):
    return trailing_zeros(word)


@pytest.mark.parametrize("place", range(64))
def test_the_lowest_one_is_found(place):
    for above in (0, 1, 0x0101010101010101):
        word = (1 << place | above << (place + 1)) % 2**64
        assert counted(word - 2**64 if word >= 2**63 else word) == place
