"""A solution with everything a fit can set."""

import pytest

from symrelu import AAPB, decompose
from symrelu.datasets import make_relu_gram


@pytest.fixture
def solution():
    M, _ = make_relu_gram(30, 3, shift=0.05, random_state=0)
    return decompose(M, 4, n_negative=1, alpha=0.1, solver=AAPB(step_size=2), max_iter=10, random_state=0)
