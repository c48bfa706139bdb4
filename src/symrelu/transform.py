"""New rows against a fitted factor: one convex problem each, solved exactly.

With v_j = s * u_j the rows of the fitted factor, a new item with similarities m to the old ones gets the u that
minimises

    1/2 sum over m_j > 0 of (u.v_j - m_j)^2  +  w / 2 sum over m_j = 0 of max(0, u.v_j)^2  +  alpha / 4 |u|^2.

At a stationary point of the fit each row of U solves its own problem. The cost is quadratic as long as no zero
of m becomes active (u.v > 0) or ceases to be: Newton's method, with a search along each direction, ends when a
full step changes none of them. The second derivative of a row is kept, and only what changed enters it anew.

Where the active items do not span all directions the minimum is not unique. A ridge picks the solution of least
norm. So that it does not bend the solution elsewhere, it is then centred at that solution, and once more (the
proximal point method: an error of q becomes q^2 and q^3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from symrelu.batches import batches, working_memory
from symrelu.kernels.convex_rows import differentiate_rows, move_rows
from symrelu.kernels.threads import allowed_threads, run_rounds

_UNKNOWN = -1.0  # similarities are nonnegative

_RIDGE = 1e-7  # times the mean of the second derivatives of the row's own entries
_CENTRES = 3  # of the ridge: zero, and then the solution with the last one
_MOST_STEPS = 500  # 46 are the most that was seen
_NEGLIGIBLE_STEP = 1e-12
_NEGLIGIBLE_BEND = 1e-9

_ROWS_AT_ONCE = 32  # more make the matrix products hardly faster, and the caches too small
_ARRAYS = 6  # of the size of a batch of rows of M: similarities, products, their change, excess, copies
_WORTH_A_COPY = 0.75  # finished rows leave the batch when no more than this part is left


def transform_rows(
    M_new: Any,
    U: np.ndarray,
    signature: np.ndarray,
    *,
    alpha: float = 0.0,
    zero_weight: float = 1.0,
    mask: Any | None = None,
) -> np.ndarray:
    """Return the factor rows of new items from their similarities to the fitted ones.

    Parameters
    ----------
    M_new : csr_array or ndarray of shape (n_new, n)
        As returned by :func:`symrelu.validation.check_rows`.
    U : ndarray of shape (n, rank)
        The fitted factor.
    signature : ndarray of shape (rank,)
    alpha, zero_weight : float
        Those of the fit.
    mask : csr_array or ndarray of bool of shape (n_new, n), optional
        True where a similarity is unknown.

    Returns
    -------
    U_new : ndarray of shape (n_new, rank)
        In the type of U; the work is done in float64.
    """
    (n_new, n), rank = M_new.shape, U.shape[1]
    # Powers of two bring the factor and each row of M to order one, exactly.
    of_U = int(np.frexp(np.abs(U).max(initial=0.0))[1])
    V = np.ldexp(U.astype(np.float64), -of_U) * signature
    problem = _Problem(V, signature.astype(np.float64), math.ldexp(alpha / 2, -2 * of_U), float(zero_weight))
    U_new = np.zeros((n_new, rank))
    workers = min(allowed_threads(), max(1, -(-n_new // _ROWS_AT_ONCE)))
    at_once = int(np.clip(working_memory() / (workers * _ARRAYS * n * 8), 1, _ROWS_AT_ONCE))

    def work(_: int, batches: Sequence[slice]) -> None:
        for batch in batches:
            coded = _coded(M_new, mask, batch)
            of_M = np.frexp(coded.max(axis=1, initial=0.0, keepdims=True))[1]
            U_new[batch] = np.ldexp(problem.solve(np.ldexp(coded, -of_M)), of_M - of_U)

    if n_new:
        run_rounds(lambda: [list(gen_batches(n_new, at_once))], work, workers)
    return U_new.astype(U.dtype)


def explained_squares(M_new: Any, U_new: np.ndarray, V: np.ndarray, mask: Any | None = None) -> float:
    """Return 1 - ||M_new - max(0, U_new V^T)||^2 / ||M_new||^2 over the known similarities.

    It is 1 for an exact reconstruction and 0 for one that is not better than nothing. Where M_new is zero
    everywhere, it is 1 if the reconstruction is too, else minus infinity.

    Parameters
    ----------
    M_new : csr_array or ndarray of shape (n_new, n)
    U_new : ndarray of shape (n_new, rank)
    V : ndarray of shape (n, rank)
    mask : csr_array or ndarray of bool of shape (n_new, n), optional

    Returns
    -------
    share : float
    """
    n_new, n = M_new.shape
    wrong = total = 0.0
    values = M_new.data if sparse.issparse(M_new) else M_new
    exponent = int(np.frexp(values.max(initial=0.0))[1])  # so that no square leaves the range
    V = np.ldexp(V.astype(np.float64), -exponent)
    for batch in batches(n_new, _ARRAYS * n * 8):
        coded = np.ldexp(_coded(M_new, mask, batch), -exponent)
        error = np.where(coded < 0, 0, np.maximum(0, U_new[batch] @ V.T) - coded)
        wrong += float(np.einsum("kj,kj->", error, error))
        known = np.maximum(coded, 0)
        total += float(np.einsum("kj,kj->", known, known))
    if total == 0:
        return 1.0 if wrong == 0 else -math.inf
    return 1 - wrong / total


def _coded(M_new: Any, mask: Any | None, batch: slice) -> np.ndarray:
    """Return rows of M in float64, with a negative number where they are unknown."""
    rows = M_new[batch]
    coded = np.array(rows.toarray() if sparse.issparse(rows) else rows, np.float64, order="C")
    if mask is not None:
        unknown = mask[batch]
        coded[unknown.toarray() if sparse.issparse(unknown) else unknown] = _UNKNOWN
    return coded


@dataclass(eq=False)
class _Rows:
    """Where the rows of a batch stand."""

    place: np.ndarray  # in the batch
    coded: np.ndarray
    U: np.ndarray
    X: np.ndarray  # U V^T
    excess: np.ndarray  # derivative of the cost by X
    active: np.ndarray  # which zeros are
    hessian: np.ndarray
    ridge: np.ndarray
    centre: np.ndarray  # of the ridge
    centres: np.ndarray  # how many there have been before
    steps: np.ndarray  # length of the last step: 1 is Newton's, 0 a negligible one

    def keep(self, kept: np.ndarray) -> None:
        """Forget the other rows."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[kept])


@dataclass(frozen=True, eq=False)
class _Problem:
    """What all rows have in common."""

    V: np.ndarray
    signature: np.ndarray
    half_alpha: float
    zero_weight: float

    def solve(self, coded: np.ndarray) -> np.ndarray:
        """Return the solutions of the rows of a batch."""
        solution = np.zeros((len(coded), self.V.shape[1]))
        rows = self._start(coded)
        for _ in range(_MOST_STEPS):
            before = rows.active.copy()
            changed = differentiate_rows(rows.X, rows.coded, self.zero_weight, rows.excess, rows.active)
            for k in np.flatnonzero(changed):
                self._update(rows.hessian[k], before[k], rows.active[k])
            solved = ((changed == 0) & (rows.steps == 1)) | (rows.steps == 0)
            unfinished = rows.centres < _CENTRES
            self._move_centre(rows, np.flatnonzero(solved & unfinished))
            solution[rows.place[unfinished]] = rows.U[unfinished]
            unfinished = rows.centres < _CENTRES
            if not unfinished.any():
                return solution
            if np.mean(unfinished) <= _WORTH_A_COPY:
                rows.keep(unfinished)
            self._step(rows)
        return solution  # rounding: as good as it gets

    def _start(self, coded: np.ndarray) -> _Rows:
        """Begin with the mean of the similar items, at the length that suits the similarities.

        A row without a similarity has the solution zero, and needs no work.
        """
        V, rank = self.V, self.V.shape[1]
        ridge = _RIDGE / rank * ((coded > 0) @ np.einsum("jr,jr->j", V, V))
        place = np.flatnonzero(ridge > 0)
        if len(place) < len(coded):
            coded, ridge = coded[place], ridge[place]
        similarities = np.maximum(coded, 0)
        U = (similarities @ V) * self.signature
        X = U @ V.T
        fitting = np.einsum("kj,kj->k", similarities, X)
        on_support = np.where(coded > 0, X, 0)
        square = np.einsum("kj,kj->k", on_support, on_support)
        length = np.divide(fitting, square, out=np.zeros_like(fitting), where=(fitting > 0) & (square > 0))
        U *= length[:, None]
        X *= length[:, None]
        active = ((coded == 0) & (X > 0)).astype(np.uint8)
        return _Rows(
            place=place,
            coded=coded,
            U=U,
            X=X,
            excess=np.empty_like(X),
            active=active,
            hessian=self._hessians(coded > 0, active),
            ridge=ridge,
            centre=np.zeros_like(U),
            centres=np.zeros(len(place), np.int64),
            steps=np.full(len(place), np.nan),
        )

    def _hessians(self, support: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Return V^T D V for each row, D being one on the support and the zero weight on the active zeros."""
        V, rank = self.V, self.V.shape[1]
        gram = V.T @ V
        hessians = np.zeros((len(support), rank, rank))
        for hessian, entries, zeros in zip(hessians, support, active.astype(bool), strict=True):
            if self.zero_weight == 1:
                entries = entries | zeros
            if 2 * np.count_nonzero(entries) > len(entries):  # what is left out is less
                hessian += gram - self._gram(~entries)
            else:
                hessian += self._gram(entries)
            if self.zero_weight != 1:
                hessian += self.zero_weight * self._gram(zeros)
        return hessians

    def _gram(self, entries: np.ndarray) -> np.ndarray:
        """Return the sum of v_j v_j^T over some items."""
        part = self.V.take(np.flatnonzero(entries), axis=0)
        return part.T @ part

    def _update(self, hessian: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
        """Add the zeros that became active to a second derivative, take away those that ceased to be."""
        hessian += self.zero_weight * (self._gram(after > before) - self._gram(after < before))

    def _move_centre(self, rows: _Rows, solved: np.ndarray) -> None:
        """Put the centre of the ridge into the solution; where that changes nothing, the row is finished."""
        if not len(solved):
            return
        # The derivative of the rest of the cost is minus that of the ridge there.
        pull = rows.ridge[solved, None] * (rows.U[solved] - rows.centre[solved])
        change = np.linalg.solve(self._systems(rows)[solved], pull[:, :, None])[:, :, 0]
        rows.centre[solved] = rows.U[solved]
        unbent = np.abs(change).max(axis=1) <= _NEGLIGIBLE_BEND * np.abs(rows.U[solved]).max(axis=1)
        rows.centres[solved] += np.where(unbent, _CENTRES, 1)

    def _systems(self, rows: _Rows) -> np.ndarray:
        return rows.hessian + (self.half_alpha + rows.ridge)[:, None, None] * np.eye(self.V.shape[1])

    def _step(self, rows: _Rows) -> None:
        """Go along Newton's direction to the lowest cost."""
        ridges = self.half_alpha * rows.U + rows.ridge[:, None] * (rows.U - rows.centre)
        gradient = rows.excess @ self.V + ridges
        direction = -np.linalg.solve(self._systems(rows), gradient[:, :, None])[:, :, 0]
        move_rows(
            rows.X,
            direction @ self.V.T,
            rows.coded,
            self.zero_weight,
            np.einsum("kr,kr->k", gradient, direction),
            np.einsum("kr,kr->k", ridges, direction),
            (self.half_alpha + rows.ridge) * np.einsum("kr,kr->k", direction, direction),
            rows.steps,
        )
        direction *= rows.steps[:, None]
        rows.U += direction
        negligible = np.abs(direction).max(axis=1) <= _NEGLIGIBLE_STEP * np.abs(rows.U).max(axis=1)
        rows.steps[negligible] = 0
