"""The settings that a rank selection compares: validated, in order of complexity, and the default ranks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from symrelu.fit.settings import check_auto, check_rank, check_zero_weight
from symrelu.problem import Problem
from symrelu.validation import check_integer, check_number

# The settings that are compared, as columns of the table.
GRID = ("rank", "n_negative", "alpha", "zero_weight")

# Bounds of the default ranks. Nearest-neighbour graphs were predicted best with up to 10 parameters per
# positive pair, since their zeros are data too. A factor with n / 4 columns has half as many parameters as
# there are pairs.
_PARAMETERS_PER_PAIR = 8
_ITEMS_PER_RANK = 4
_LARGEST_RANK = 128


def default_ranks(problem: Problem) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, ... up to the bounds."""
    n = problem.n
    determined = int(_PARAMETERS_PER_PAIR / problem.parameters_per_pair(1))
    bound = min(n // _ITEMS_PER_RANK, determined, _LARGEST_RANK)
    bound = min(n, max(2, bound))
    powers = [2**k for k in range(_LARGEST_RANK.bit_length())]
    return sorted(r for r in {*powers, *(3 * power for power in powers)} if r <= bound)


def check_axes(
    n: int, ranks: Any, n_negative: Any, alpha: Any, zero_weight: Any
) -> tuple[list[int], list[Any], list[float], list[float]]:
    """Return the distinct values of each parameter of the grid, validated for an n x n matrix."""

    def check_n_negative(value: Any) -> Any:
        if isinstance(value, str):
            return check_auto(value)
        return check_integer("n_negative", value, 0, max(n - 1, 0), " (n - 1) or 'auto'")

    axes = (
        _values("ranks", ranks, partial(check_rank, n=n, name="ranks")),
        _values("n_negative", n_negative, check_n_negative),
        _values("alpha", alpha, partial(check_number, "alpha")),
        _values("zero_weight", zero_weight, check_zero_weight),
    )
    if not grid_of(*axes):
        raise ValueError(
            f"ranks must have one larger than n_negative, got ranks {axes[0]} and n_negative {axes[1]}: "
            "at least one column must be positive."
        )
    return axes


def grid_of(*axes: Sequence[Any]) -> list[dict[str, Any]]:
    """Return all combinations with a positive column, the simplest first."""
    grid = [dict(zip(GRID, values, strict=True)) for values in itertools.product(*axes)]
    grid = [s for s in grid if isinstance(s["n_negative"], str) or s["n_negative"] < s["rank"]]
    return sorted(grid, key=complexity)


def complexity(setting: dict[str, Any]) -> tuple[Any, ...]:
    """Return a sort key: fewer columns, fewer negative ones ("auto" last), stronger penalties first."""
    negative = setting["n_negative"]
    known = (1, 0) if isinstance(negative, str) else (0, negative)
    return setting["rank"], known, -setting["alpha"], -setting["zero_weight"]


def _values(name: str, given: Any, check: Callable[[Any], Any]) -> list[Any]:
    """Return the distinct values of one parameter, each validated."""
    values = list(given) if hasattr(given, "__iter__") and not isinstance(given, str) else [given]
    if not values:
        raise ValueError(f"{name} must have at least one value, got none.")
    return list(dict.fromkeys(check(value) for value in values))
