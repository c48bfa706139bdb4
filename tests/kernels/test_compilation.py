"""Compilation is noticed, and only that."""

import numpy as np
import pytest
from numba import njit

from symrelu.kernels.compilation import noticing_compilation


def new_function():
    @njit
    def inner(x):
        return x + 1

    @njit
    def outer(x):
        return 2 * inner(x)

    return outer


@pytest.fixture
def noticed():
    times = []
    with noticing_compilation(lambda: times.append(1)):
        yield times


def test_it_is_noticed_once(noticed):
    function = new_function()
    assert not noticed
    assert function(1) == 4
    assert noticed == [1]
    assert new_function()(1.5) == 5
    assert noticed == [1]


def test_machine_code_that_is_there_is_not_noticed():
    function = new_function()
    function(np.float64(1))
    times = []
    with noticing_compilation(lambda: times.append(1)):
        function(np.float64(2))
    assert not times


def test_nothing_is_noticed_afterwards():
    times = []
    with noticing_compilation(lambda: times.append(1)):
        pass
    new_function()(1)
    assert not times
