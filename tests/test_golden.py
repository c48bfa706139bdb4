"""The numbers of 0.1.0, kept."""

import json

import pytest
from golden import FILE, cases, objective
from numpy.testing import assert_allclose

CASES = cases()
STORED = json.loads(FILE.read_text(encoding="utf-8"))


def test_every_case_is_stored():
    assert set(CASES) == set(STORED)


@pytest.mark.parametrize("name", CASES)
def test_the_objective_after_15_steps_is_that_of_the_first_release(name):
    assert_allclose(objective(*CASES[name]), STORED[name], rtol=1e-8)
