"""M as a sparse array, and a list of the zeros at which X can be positive: a pass visits only what matters.

R(U) is zero where M = 0 and X <= 0. In a signed model that is almost everywhere, except at the beginning of a
fit, so a pass over the support and the listed pairs gives the same numbers as one over all pairs. The list is
kept from one pass to the next, with a bound that says when a row has to be scanned again
(:mod:`symrelu.kernels.pair_lists`).

Where too many zeros are positive, as in the model of the paper, or where M is small, a pass visits all pairs in
tiles. A sample of the rows of X and a model of the costs (:mod:`symrelu.operators.pass_costs`) decide, so this
depends on U alone, and so do the results: whatever passes came before, the same U gives the same numbers. A fit
can therefore resume from a checkpoint that does not hold the list.

There is one exception, in theory. A new list holds the zeros with X > 0 and, because references are rounded,
those with X > -e |u_i| |u_j|, where e is about 3e-5 times the root of the rank. If the sample promises a list
of at most four fifths of the allowed length, but all of these together are longer than allowed and the zeros
with X > 0 alone are not, an operator without a list makes the pass over tiles, and one with a list that is
still valid uses it. The results then differ by rounding. Only a scan in each pass could tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from symrelu.kernels.integer_rows import rounding_of_rows
from symrelu.kernels.pair_lists import PairList, TooManyPairs, most_entries, scan_again, scan_all
from symrelu.kernels.pair_passes import Entries, Visited, pass_over_pairs
from symrelu.kernels.row_references import (
    EDGES,
    SAMPLED_ROWS,
    References,
    full_slack,
    integer_directions,
    movement,
    new_references,
    refer,
    rounding_of_products,
    sample_cosines,
)
from symrelu.operators.base import Evaluation
from symrelu.operators.host import shared_property
from symrelu.operators.pass_costs import list_pays
from symrelu.operators.sparse import SparseOperator
from symrelu.operators.tiled import evaluation_of

# Part of a full list that the sample may predict: a list that turns out too long is a scan for nothing.
PREDICTED = 0.8

# Part of all pairs for which a new list is made to hold: to compare more takes longer than to scan more often.
_LARGEST_SHARE = 0.005

# A slack that would last for fewer passes is not worth a longer list: all rows are scanned at each pass.
_FEWEST_PASSES = 1.5
_PASSES_OF_A_LIST = 8  # for which a new list is made to last, if it is not too long

# With a larger share of rows to be scanned again, a scan of all pairs, which uses the symmetry, is faster.
_LARGEST_RESCAN = 0.3


# With less slack, most listed pairs are positive.
_LITTLE_SLACK = 0.01

# If a row has to be scanned again, so are all that have moved by this fraction of what is allowed.
_SOON = 0.75


@dataclass
class Visits:
    """How many pairs the passes of an operator have visited.

    Attributes
    ----------
    tiled, scanned, listed : int
        Pairs in tiles, pairs compared with the threshold of a list, and pairs on the list. A pair i, j counts
        once, and of those on a list all are assumed to have two items.
    """

    tiled: int = 0
    scanned: int = 0
    listed: int = 0


class ActiveOperator(SparseOperator):
    """A sparse M, compared with X on the support and where X can be positive.

    Parameters
    ----------
    M : csr_array of shape (n, n)
    unknown : csr_array of bool, or None
    always_lists : bool
        Whether a list is used even where a pass over tiles is faster.
    **settings
        As in :class:`~symrelu.operators.sparse.SparseOperator`.

    Attributes
    ----------
    visits : Visits
        The pairs visited so far.
    """

    def __init__(
        self, M: Any, unknown: Any | None = None, *, always_lists: bool = False, **settings: Any
    ) -> None:
        super().__init__(M, unknown, **settings)
        self.always_lists = always_lists

    def _set_model(self, *model: Any) -> None:
        super()._set_model(*model)
        self.visits = Visits()
        self._candidates: Candidates | None = None  # never shared with a copy under another model

    def _evaluate(self, U: np.ndarray, V: np.ndarray | None) -> Evaluation:
        listed = self._listed(U)
        if listed is None:
            self.visits.tiled += self.n * (self.n + 1) // 2
            return super()._evaluate(U, V)
        self.visits.listed += -(-len(listed.indices) // 2)
        visited = Visited(self._support_entries, self._unknown_entries, listed, *self._settings_of_tiles())
        product, sums = pass_over_pairs(U, self.signs, V, visited, mostly_negative=self._mostly_negative)
        return evaluation_of(self, product, sums)

    def _near(self, U: np.ndarray, reach: float) -> PairList | None:
        # With a list, this is not a pass: the list is kept.
        return self._listed(U, reach) if self._worth_sampling else super()._near(U, reach)

    def _listed(self, U: np.ndarray, reach: float = 0.0) -> PairList | None:
        """Return a list of pairs that has all with cosines above -reach, or None if that would be too long."""
        # A number that is not finite, or whose square is not, makes the sum of squares infinite or NaN.
        if not self._worth_sampling or not math.isfinite(self.inner(U, U)):
            return None
        U = np.ascontiguousarray(U)
        counts = sample_cosines(U, self.signs, self._not_zero)
        candidates = self._candidates or Candidates(self.signs, self._not_zero)
        self._candidates = None
        try:
            if not self._list_pays(counts, candidates, reach):
                return None
            self.visits.scanned += candidates.update(U, counts, reach)
        except TooManyPairs:
            return None
        self._candidates = candidates
        return candidates.listed

    def warm_up(self) -> None:
        super().warm_up()
        if self._worth_sampling:
            _compile_lists(self.dtype)

    @property
    def _mostly_negative(self) -> bool:
        """Whether most listed pairs are there only because of the slack."""
        return self._candidates is not None and self._candidates.slack > _LITTLE_SLACK

    @property
    def _worth_sampling(self) -> bool:
        """Whether a list could be faster than tiles, if few zeros are positive."""
        return self.always_lists or list_pays(self.n, self.rank, self.dtype, 0.0)

    def _list_pays(self, counts: np.ndarray, candidates: Candidates, reach: float) -> bool:
        """Return whether a list is faster than tiles, and not too long, by a sample of the cosines."""
        if self.always_lists:
            return True
        positive, near = (
            self.n * counts[EDGES[:-1] >= least].sum() / sampled_pairs(self.n) for least in (0.0, -reach)
        )
        short = near * self.n <= PREDICTED * candidates.most
        return bool(short) and list_pays(self.n, self.rank, self.dtype, positive)

    @shared_property
    def _unknown_entries(self) -> Entries:
        if self._unknown is None:
            return Entries(np.zeros(self.n + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_))
        unknown = self._unknown
        return Entries(unknown.indptr.astype(np.int64), unknown.indices.astype(np.int32), unknown.data)


class Candidates:
    """The list of pairs, with the references and the slack for which it holds.

    Parameters
    ----------
    signs : ndarray of shape (rank,)
    known : csr_array
        Its stored entries are not listed.
    """

    def __init__(self, signs: np.ndarray, known: Any) -> None:
        n = known.shape[0]
        self.signs = signs
        self.known = known
        self.most = most_entries(n, len(signs))
        self.listed: PairList | None = None
        self.slack = 0.0
        self._passes = 0  # since the last scan of all pairs
        self._references: References | None = None
        self._wanted = 0.0  # the reach that was asked for last: it will be asked for again

    def update(self, U: np.ndarray, counts: np.ndarray, reach: float = 0.0) -> int:
        """Make the list valid for U, and return how many pairs were scanned.

        Parameters
        ----------
        U : ndarray of shape (n, rank)
        counts : ndarray of int
            As :func:`~symrelu.kernels.row_references.sample_cosines` returns them, for the slack of a new list.
        reach : float
            The list has to hold all pairs whose cosine is above -reach.
        """
        if reach:
            self._wanted = reach
        else:
            self._passes += 1
        if self.listed is None or self._references is None:
            return self._scan(U, 0.0, reach)
        moved = movement(self._references, U)
        # Rows that have moved by at most a, multiplied by numbers with which they are not longer than their
        # references, of length one, have X <= (1 + a)^2 - 1 - slack at a pair that is not listed. That is at
        # most -reach if (1 + a)^2 <= 1 + slack - reach. Rounded references can be a little longer than one.
        limit = math.sqrt((1 + self.slack) / (1 + reach)) - 1
        if moved.max() <= limit:
            return 0
        # Those that will soon be too far as well: every scan copies the list.
        again = np.flatnonzero(moved > _SOON * limit)
        # A new reference has moved too, by its rounding.
        if limit < rounding_of_rows(len(self.signs)) or len(again) > _LARGEST_RESCAN * len(U):
            return self._scan(U, self._new_slack(moved, counts, reach), reach)
        refer(self._references, again, U)
        try:
            self.listed = scan_again(self.listed, again, *self._scanned_by())
        except TooManyPairs:
            return self._scan(U, 0.0, reach)
        return len(again) * len(U)

    def _scan(self, U: np.ndarray, slack: float, reach: float) -> int:
        """Make a new list for U, and return how many pairs were scanned."""
        self.listed = None  # before there is a second one
        self._references = new_references(U, self.signs)
        self._passes = 0
        self.slack = full_slack((1 + slack) * (1 + max(reach, self._wanted)) - 1, len(self.signs))
        try:
            self.listed = scan_all(*self._scanned_by())
        except TooManyPairs:
            # A function of U and reach alone: whatever came before, these pairs are too many.
            if slack == 0 and self._wanted <= reach:
                raise
            self._wanted = reach
            return self._scan(U, 0.0, reach)
        return len(U) * (len(U) + 1) // 2

    def _scanned_by(self) -> tuple[Any, ...]:
        # Pairs whose X is positive only by rounding are listed too: otherwise it would depend on the list
        # whether they count.
        slack = self.slack + rounding_of_products(len(self.signs), self.signs.dtype)
        return self._references, slack, self.known, self.most

    def _new_slack(self, moved: np.ndarray, counts: np.ndarray, reach: float) -> float:
        """Return the slack beyond the reach with which a list lasts for some passes, if it is not too long."""
        n = len(moved)
        # Not np.quantile, which warns of the infinite movement of a row that was zero.
        pace = 2 * float(np.sort(moved)[int((1 - _LARGEST_RESCAN) * n)]) / max(1, self._passes)
        # Predicted from a sample: half of the allowed length is the aim.
        share = min(_LARGEST_SHARE, self.most / (2 * n**2))
        above = np.cumsum(counts[::-1])[::-1]  # cosines above the lower edge of each bin
        allowed = EDGES[:-1][above <= share * sampled_pairs(n)]
        longest = max(0.0, -float(allowed.min(initial=0.0)))
        slack = min(_PASSES_OF_A_LIST * pace, longest - max(reach, self._wanted))
        return slack if slack > _FEWEST_PASSES * pace else 0.0


def sampled_pairs(n: int) -> int:
    """Return the number of pairs in a sample of rows."""
    return min(SAMPLED_ROWS, n) * n


@lru_cache
def _compile_lists(dtype: np.dtype[Any]) -> None:
    """Make a pass over a list of almost nothing, and scan a row again."""
    M, unknown = csr_array(np.ones((2, 2), dtype)), csr_array(np.eye(2, dtype=bool))
    op = ActiveOperator(M, unknown, signature=np.ones(1), always_lists=True)
    U = np.ones((2, 1), dtype)
    op.residual_product(U, U)
    candidates = op._candidates
    assert candidates is not None
    assert candidates.listed is not None
    assert candidates._references is not None
    movement(candidates._references, U)
    integer_directions(U)
    scan_again(candidates.listed, np.array([1]), *candidates._scanned_by())
