"""Combine weighted pairs of rows to a symmetric matrix: repeated edges, self loops, both directions."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.validation import check_choice

DUPLICATES = ("error", "max", "sum")
SELF_LOOPS = ("keep", "drop", "error")
DIRECTED = ("error", "max", "sum", "mean")

# With "error", all weights of a group are equal by the time they are combined.
_COMBINE = {"error": np.maximum, "max": np.maximum, "sum": np.add, "mean": np.add}
# How a note says what happened.
_DONE = {"sum": "added", "max": "combined to the largest weight", "mean": "averaged"}
NOT_ADDED = "the two directions of all pairs are equal, and were not added: the graph is undirected already"


@dataclass(frozen=True)
class Rules:
    """What to do with repeated edges, self loops and edges that differ between the two directions.

    With ``directed=None`` the two directions are not told apart: ``duplicates`` is the rule for both.
    """

    duplicates: str = "error"
    self_loops: str = "keep"
    directed: str | None = None

    def __post_init__(self) -> None:
        check_choice("duplicates", self.duplicates, DUPLICATES)
        check_choice("self_loops", self.self_loops, SELF_LOOPS)
        if self.directed is not None:
            check_choice("directed", self.directed, DIRECTED)


class Pairs(NamedTuple):
    """The ends of each edge as numbers of rows and columns, and their names.

    Without ``names_of_cols``, the columns have the names of the rows.
    """

    rows: np.ndarray
    cols: np.ndarray
    names: Sequence[Any]
    names_of_cols: Sequence[Any] | None = None

    def edge(self, k: int) -> str:
        others = self.names if self.names_of_cols is None else self.names_of_cols
        return f"({self.names[self.rows[k]]!r}, {others[self.cols[k]]!r})"

    def take(self, chosen: np.ndarray) -> Pairs:
        return self._replace(rows=self.rows[chosen], cols=self.cols[chosen])


class Combined(NamedTuple):
    """A matrix, and sentences about what was combined or left out."""

    matrix: Any
    notes: tuple[str, ...]


def similarity_of(pairs: Pairs, weights: Any, rules: Rules) -> Combined:
    """Return the symmetric matrix of edges, combined by the rules."""
    pairs, values = sort_pairs(pairs, check_weights(pairs, weights))
    pairs, values, notes = without_loops(pairs, values, rules.self_loops)
    if rules.directed is None:
        if rules.duplicates == "error":
            pairs, values, _ = once_each(pairs, values, "error")
        pairs, values, more = one_direction(pairs, values, rules.duplicates, "duplicates")
    else:
        also = partial(_directions_too, pairs, values) if rules.directed == "error" else str
        pairs, values, repeated = once_each(pairs, values, rules.duplicates, also)
        pairs, values, more = one_direction(pairs, values, rules.directed, "directed")
        notes += repeated
    low, high = pairs.rows, pairs.cols
    off = low != high  # self loops are stored once
    coordinates = (np.concatenate([low, high[off]]), np.concatenate([high, low[off]]))
    n = len(pairs.names)
    matrix = sparse.csr_array((np.concatenate([values, values[off]]), coordinates), shape=(n, n))
    matrix.eliminate_zeros()  # an edge of weight zero is no edge
    return Combined(matrix, notes + more)


def sort_pairs(pairs: Pairs, values: np.ndarray) -> tuple[Pairs, np.ndarray]:
    """Return edges in an order in which equal ones are neighbours, and the two directions of a pair too."""
    low, high = np.minimum(pairs.rows, pairs.cols), np.maximum(pairs.rows, pairs.cols)
    # A single number for each edge: sorting these takes half the time of sorting by three keys.
    key = (low * (high.max(initial=0) + 1) + high) * 2 + (pairs.rows > pairs.cols)
    order = np.argsort(key, kind="stable")
    return pairs.take(order), values[order]


def once_each(
    pairs: Pairs, values: np.ndarray, duplicates: str, also: Callable[[], str] = str
) -> tuple[Pairs, np.ndarray, tuple[str, ...]]:
    """Return each of the sorted edges once, with the weights of repeated ones combined, and notes.

    If repeated edges are an error, ``also`` returns what else must be said in the same message.
    """
    starts = _starts(pairs.rows, pairs.cols)
    repeated = len(values) - len(starts)
    if repeated == 0:
        return pairs, values, ()
    if duplicates == "error":
        times = np.diff(starts, append=len(values))
        worst = int(np.argmax(times > 1))
        others = _others(int(np.count_nonzero(times > 1)), "edge", "repeated")
        raise ValueError(
            f"Edge {pairs.edge(starts[worst])} is given {times[worst]} times{others}. "
            f'Pass duplicates="sum" to add the weights, or "max" to keep the largest.{also()}'
        )
    values = _COMBINE[duplicates].reduceat(values, starts)
    return pairs.take(starts), values, (f"{_count(repeated, 'repeated edge')} {_DONE[duplicates]}",)


def _others(count: int, noun: str, state: str) -> str:
    """Return how many more there are than the one that a message names."""
    return "" if count < 2 else f", and {_count(count - 1, f'other {noun}', 'is', 'are')} {state}"


def _directions_too(pairs: Pairs, values: np.ndarray) -> str:
    """Return a sentence for those who add repeated edges, if the two directions of pairs would differ then."""
    pairs, values, _ = once_each(pairs, values, "sum")
    starts, smallest, largest = _by_pair(pairs, values)
    differing = np.flatnonzero(smallest != largest)
    if not differing.size:
        return ""
    noun = "1 pair differ" if differing.size == 1 else f"{differing.size} pairs differ"
    return (
        f" The two directions of {noun} too, such as those of {pairs.edge(starts[differing[0]])}: pass "
        'duplicates="sum", directed="sum" to add both.'
    )


def _by_pair(pairs: Pairs, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the sorted edges of each pair start, and the smallest and the largest of their weights."""
    low, high = np.minimum(pairs.rows, pairs.cols), np.maximum(pairs.rows, pairs.cols)
    starts = _starts(low, high)
    return starts, np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)


def _starts(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return where a group of equal pairs starts, if equal ones are neighbours."""
    return np.flatnonzero((np.diff(first, prepend=-1) != 0) | (np.diff(second, prepend=-1) != 0))


def without_loops(
    pairs: Pairs, values: np.ndarray, self_loops: str
) -> tuple[Pairs, np.ndarray, tuple[str, ...]]:
    """Return the edges with self loops kept or dropped, and notes."""
    loops = pairs.rows == pairs.cols
    count = int(np.count_nonzero(loops))
    if count == 0:
        return pairs, values, ()
    if self_loops == "error":
        raise ValueError(
            f"Edge {pairs.edge(int(np.argmax(loops)))} is a self loop, one of {count}. "
            'Pass self_loops="drop" to leave them out, or "keep" to put them on the diagonal.'
        )
    if self_loops == "keep":
        return pairs, values, (f"{_count(count, 'self loop', 'is', 'are')} on the diagonal",)
    return pairs.take(~loops), values[~loops], (f"{_count(count, 'self loop')} left out",)


def one_direction(
    pairs: Pairs, values: np.ndarray, rule: str, option: str, *, all_pairs: bool = True
) -> tuple[Pairs, np.ndarray, tuple[str, ...]]:
    """Return each pair once, the lower row first, with the weights of both directions combined, and notes.

    Directions that are equal in all pairs of a graph are not added; ``all_pairs=False`` says that there are
    others than these.
    """
    starts, smallest, largest = _by_pair(pairs, values)
    differing = np.flatnonzero(smallest != largest)
    rows, cols = pairs.rows[starts], pairs.cols[starts]
    once = Pairs(np.minimum(rows, cols), np.maximum(rows, cols), pairs.names)
    if rule == "error":
        if differing.size:
            k = starts[differing[0]]
            more = _others(differing.size, "pair", "different")
            _refuse_directions(
                pairs.edge(k), values[k], f"{values[k + 1]:g} in the other direction{more}", option
            )
        return once, largest, ()
    times = np.diff(starts, append=len(values))
    if all_pairs and option == "directed" and not differing.size and _symmetric(once, times):
        skipped = rule == "sum" and bool((times > 1).any())
        return once, largest, (NOT_ADDED,) if skipped else ()
    combined = _COMBINE[rule].reduceat(values, starts)
    if rule == "mean":
        combined = combined / times.astype(combined.dtype)
    both = differing.size if rule != "sum" else int(np.count_nonzero(times > 1))
    pairs_of = f"{both} pair{'s' if both > 1 else ''}"
    notes = (f"the two directions of {pairs_of} were {_DONE[rule]}",) if both else ()
    return once, combined, notes if option == "directed" else ()


def _symmetric(pairs: Pairs, times: np.ndarray) -> bool:
    """Return whether all pairs of different nodes are given in both directions."""
    return bool(((times == 2) | (pairs.rows == pairs.cols)).all())


def _refuse_directions(edge: str, weight: float, other: str, option: str) -> None:
    advice = 'Pass {}="max" to keep the larger, {}"sum" to add them{}.'.format(
        *((option, "or ", "") if option == "duplicates" else (option, "", ', or "mean" to average them'))
    )
    raise ValueError(f"Edge {edge} has the weight {weight:g}, but {other}. {advice}")


def _count(number: int, noun: str, one: str = "was", many: str = "were") -> str:
    return f"{number} {noun} {one}" if number == 1 else f"{number} {noun}s {many}"


def check_weights(pairs: Pairs, weights: Any) -> np.ndarray:
    """Return the weights as floats, or raise an error that names an edge with an invalid weight."""
    array = _as_floats(pairs, weights)
    bad = np.flatnonzero(~((array >= 0) & (array < np.inf)))  # catches NaN, which compares false
    if bad.size:
        k = int(bad[0])
        raise ValueError(
            f"Weights must be finite and nonnegative: edge {pairs.edge(k)} has {array[k]:g}. "
            "Drop the edge, or give it a valid weight."
        )
    return array


def _as_floats(pairs: Pairs, weights: Any) -> np.ndarray:
    try:
        array = np.asarray(weights)
    except ValueError:  # lists of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        # Convert one by one from the original values: NumPy turns numbers among strings into strings.
        values = weights.tolist() if hasattr(weights, "tolist") else weights
        array = np.array([_as_number(pairs, k, value) for k, value in enumerate(values)], dtype=np.float64)
    return array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)


def _as_number(pairs: Pairs, k: int, value: Any) -> float:
    if isinstance(value, (numbers.Real, Decimal)):
        return float(value)
    if is_missing(value):
        return float("nan")
    raise TypeError(
        f"Weights must be numbers: edge {pairs.edge(k)} has {value!r}. Convert them to float first."
    )


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA, whose truth value raises an error."""
    if value is None:
        return True
    try:
        return bool(value != value)  # true for NaN and NaT only
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
