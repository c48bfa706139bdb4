"""Solutions of every model, and their comparison."""

import dataclasses

import numpy as np
from numpy.testing import assert_array_equal

from symrelu.fitted import Linear, Logistic, TwoFactor


def assert_same(loaded, solution):
    """Every field, bit for bit, also those of the history and of the model."""
    assert type(loaded) is type(solution)
    for field in dataclasses.fields(solution):
        one, other = getattr(loaded, field.name), getattr(solution, field.name)
        if dataclasses.is_dataclass(other):
            assert_same(one, other)
        elif isinstance(other, np.ndarray):
            assert_array_equal(one, other, strict=True)
        else:
            assert (type(one), one) == (type(other), other), field.name


def with_model(solution, name):
    """The solution as if it had ended with another model."""
    V = np.random.default_rng(0).standard_normal(solution.U.shape)
    model = {
        "SymmetricReLU": lambda: solution.model,
        "Linear": lambda: Linear(solution.U, solution.signature),
        "TwoFactor": lambda: TwoFactor(solution.U, V),
        "Logistic": lambda: Logistic(solution.U, V),
    }[name]()
    return dataclasses.replace(solution, model=model)
