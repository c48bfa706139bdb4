"""How much memory there is."""

from symrelu.kernels.memory import available_memory


def test_available_memory_is_plausible():
    assert 10**7 < available_memory() < 10**14
