"""New rows against a fitted factor: one convex problem each, solved exactly.

With v_j = s * u_j the rows of the fitted factor, a new item with similarities m to the old ones gets the u that
minimises

    1/2 sum over m_j > 0 of (u.v_j - m_j)^2  +  w / 2 sum over m_j = 0 of max(0, u.v_j)^2  +  alpha / 4 |u|^2.

At a stationary point of the fit each row of U solves its own problem. The cost is quadratic as long as no zero
of m becomes active (u.v > 0) or ceases to be: Newton's method, with a search along each direction, is exact as
soon as none does. The second derivative of a row is kept, and only what changed enters it anew.

The columns of V may differ in size by any factor. It does not matter along axes P with orthonormal products
B = V P, so that is where the work is done: u = P c, and u.v_j = c.b_j.

Where the active items do not span all directions the second derivative is singular. A ridge makes it definite:
it shortens the steps (Levenberg and Marquardt) and leaves the minimum where it is. Such a row has many minima;
the shortest of them is returned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from symrelu.kernels.convex_rows import differentiate_rows, move_rows
from symrelu.kernels.least_norm import orthonormal_axes, shortest_minimum
from symrelu.kernels.memory import batches, working_memory
from symrelu.kernels.threads import allowed_threads, run_tasks

_UNKNOWN = -1.0  # similarities are nonnegative

_RIDGE = 1e-7  # times the mean of the second derivatives of the row's own entries
_FALL = 1e-3  # of the ridge, with each full step
_LEAST_RIDGE = 1e-14  # times the trace of the second derivative: below, rounding can make it indefinite
_NEGLIGIBLE_GAP = 1e-18  # to the lowest cost, next to the squares that are explained
_ROUNDING = 1e-31  # in the square of the derivative of the cost, next to the squares of its terms
_TOUCHED = 1e-8  # root of the cost of an active zero, next to what is explained, that is taken for rounding
_MOST_FULL_STEPS = 30  # three are enough, but where the sizes of the active items differ by 1e5 and more
_MOST_STEPS = 500
_FREE = 0.3  # directions, counted by the share of the ridge in their curvature, that make a row flat
_MOST_STRETCH = 400  # binary orders between columns up to which the norm of u is exact

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
    n_new, n = M_new.shape
    problem = _problem(U, signature, alpha, zero_weight)
    U_new = np.zeros((n_new, U.shape[1]))
    workers = min(allowed_threads(), max(1, -(-n_new // _ROWS_AT_ONCE)))
    at_once = int(np.clip(working_memory() / (workers * _ARRAYS * n * 8), 1, _ROWS_AT_ONCE))

    def solve(batch: slice) -> None:
        rows, unknown = _rows(M_new, mask, batch)
        # Powers of two bring each row of M to order one, exactly.
        exponents = np.frexp(rows.max(axis=1, initial=0.0, keepdims=True))[1]
        coded = np.ldexp(rows, -exponents, out=rows)
        if unknown is not None:
            coded[unknown] = _UNKNOWN
        with np.errstate(over="ignore"):
            U_new[batch] = np.ldexp(problem.solve(coded) @ problem.axes.T, exponents - problem.exponents)

    if n_new:
        run_tasks(solve, gen_batches(n_new, at_once), workers)
    _check_range(U_new, U.dtype)
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
    parts = list(batches(n_new, _ARRAYS * n * 8))
    largest = max((_rows(M_new, mask, part)[0].max(initial=0.0) for part in parts), default=0.0)
    # Powers of two, so that neither squares nor products leave the range.
    of_M, of_U, of_V = (int(np.frexp(np.abs(A).max(initial=0.0))[1]) for A in (largest, U_new, V))
    U_new, V = np.ldexp(U_new.astype(np.float64), -of_U), np.ldexp(V.astype(np.float64), -of_V)
    wrong = total = 0.0
    for part in parts:
        rows, unknown = _rows(M_new, mask, part)
        known = np.ldexp(rows, -of_M)
        error = np.ldexp(np.maximum(0, U_new[part] @ V.T), of_U + of_V - of_M) - known
        if unknown is not None:
            error[unknown] = 0
        wrong += float(np.einsum("kj,kj->", error, error))
        total += float(np.einsum("kj,kj->", known, known))
    if total == 0:
        return 1.0 if wrong == 0 else -math.inf
    return 1 - wrong / total


def _rows(M_new: Any, mask: Any | None, batch: slice) -> tuple[np.ndarray, np.ndarray | None]:
    """Return rows of M in float64, with zeros where they are unknown, and where that is."""
    rows = np.array(_dense(M_new[batch]), np.float64, order="C")
    if mask is None:
        return rows, None
    unknown = _dense(mask[batch])
    rows[unknown] = 0
    return rows, unknown


def _dense(rows: Any) -> Any:
    return rows.toarray() if sparse.issparse(rows) else rows


def _check_range(U_new: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Refuse rows that the type of the factor cannot hold."""
    beyond = ~(np.abs(U_new) <= np.finfo(dtype).max).all(axis=1)
    if beyond.any():
        raise ValueError(
            f"The factor rows of new items must be within the range of {dtype}, but row "
            f"{int(np.argmax(beyond))} is not: its similarities are too large next to the fitted factor. "
            "Give M_new in the units of the M that was fitted."
        )


def _problem(U: np.ndarray, signature: np.ndarray, alpha: float, zero_weight: float) -> _Problem:
    """Bring the columns of V to order one (or the penalty, where it is larger), and find axes for them."""
    penalty = math.sqrt(alpha / 2)
    sizes = np.maximum(np.abs(U).max(axis=0, initial=0.0), penalty)
    exponents = np.frexp(sizes)[1]
    largest = exponents.max(where=sizes > 0, initial=-_MOST_STRETCH * 10)
    exponents[sizes == 0] = largest
    V, penalties = np.ldexp(U.astype(np.float64), -exponents) * signature, np.ldexp(penalty, -exponents)
    stretch = np.ldexp(1.0, np.minimum(largest - exponents, _MOST_STRETCH))
    axes, B, gram = orthonormal_axes(V, penalties, stretch)
    coordinates = np.linalg.pinv(axes) / stretch  # of the axes of u, but for powers of two
    along = penalties[:, None] * axes
    return _Problem(
        axes=axes,
        exponents=exponents,
        lengths=stretch[:, None] * axes,
        B=B,
        gram=gram,
        model=(coordinates * signature) @ coordinates.T,
        penalty=along.T @ along,
        zero_weight=float(zero_weight),
    )


@dataclass(eq=False)
class _Rows:
    """Where the rows of a batch stand."""

    place: np.ndarray  # in the batch
    coded: np.ndarray
    rounding: np.ndarray  # in the square of the derivative
    C: np.ndarray
    X: np.ndarray  # C B^T
    excess: np.ndarray  # derivative of the cost by X
    active: np.ndarray  # which zeros are
    hessian: np.ndarray
    ridge: np.ndarray
    direction: np.ndarray  # of the next step
    slope: np.ndarray  # of the cost along it
    explained: np.ndarray  # squares of the products that count
    step: np.ndarray  # length of the last one: 1 is Newton's, 0 where there was none
    full_steps: np.ndarray  # number of them
    finished: np.ndarray

    def keep(self, kept: np.ndarray) -> None:
        """Forget the other rows."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[kept])


@dataclass(frozen=True, eq=False)
class _Problem:
    """What all rows have in common."""

    axes: np.ndarray  # u = axes c, but for powers of two
    exponents: np.ndarray  # of these
    lengths: np.ndarray  # |u| = |lengths c|, but for a power of two
    B: np.ndarray  # products of the items with the axes
    gram: np.ndarray  # B^T B
    model: np.ndarray  # X = B model B^T, but for a power of two
    penalty: np.ndarray  # second derivative of alpha / 4 |u|^2 by c
    zero_weight: float

    def solve(self, coded: np.ndarray) -> np.ndarray:
        """Return the solutions of the rows of a batch, as coordinates along the axes."""
        solution = np.zeros((len(coded), self.B.shape[1]))
        rows = self._start(coded)
        for _ in range(_MOST_STEPS):
            before = rows.active.copy()
            changed = differentiate_rows(rows.X, rows.coded, self.zero_weight, rows.excess, rows.active)
            for k in np.flatnonzero(changed):
                self._update(rows.hessian[k], before[k], rows.active[k])
            self._aim(rows)
            self._finish(rows, solution)
            if rows.finished.all():
                return solution
            if np.mean(~rows.finished) <= _WORTH_A_COPY:
                rows.keep(~rows.finished)
            self._step(rows)
        self._write(solution, rows, np.flatnonzero(~rows.finished))  # rounding: as good as it gets
        return solution

    def _start(self, coded: np.ndarray) -> _Rows:
        """Begin with the mean of the similar items, at the length that suits the similarities.

        A row without a similarity has the solution zero, and needs no work.
        """
        B = self.B
        place = np.flatnonzero(((coded > 0) & B.any(axis=1)).any(axis=1))
        if len(place) < len(coded):
            coded = coded[place]
        similarities = np.maximum(coded, 0)
        C = similarities @ B @ self.model
        X = C @ B.T
        fitting = np.einsum("kj,kj->k", similarities, X)
        on_support = np.where(coded > 0, X, 0)
        square = np.einsum("kj,kj->k", on_support, on_support)
        length = np.divide(fitting, square, out=np.zeros_like(fitting), where=(fitting > 0) & (square > 0))
        C *= length[:, None]
        X *= length[:, None]
        active = ((coded == 0) & (X > 0)).astype(np.uint8)
        hessian = self._hessians(coded > 0, active)
        own = (coded > 0) @ np.einsum("jr,jr->j", B, B)
        return _Rows(
            place=place,
            coded=coded,
            rounding=_ROUNDING * own * np.einsum("kj,kj->k", similarities, similarities),
            C=C,
            X=X,
            excess=np.empty_like(X),
            active=active,
            hessian=hessian,
            ridge=np.maximum(_RIDGE * own / max(1, B.shape[1]), _least_ridge(hessian)),
            direction=np.empty_like(C),
            slope=np.empty(len(place)),
            explained=np.empty(len(place)),
            step=np.zeros(len(place)),
            full_steps=np.zeros(len(place), np.int64),
            finished=np.zeros(len(place), bool),
        )

    def _hessians(self, support: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Return B^T D B and the penalty for each row: D is one on the support, the weight on active zeros."""
        hessians = np.repeat(self.penalty[None], len(support), axis=0)
        for hessian, entries, zeros in zip(hessians, support, active.astype(bool), strict=True):
            if self.zero_weight == 1:
                entries = entries | zeros
            if 2 * np.count_nonzero(entries) > len(entries):  # what is left out is less
                hessian += self.gram - self._gram(~entries)
            else:
                hessian += self._gram(entries)
            if self.zero_weight != 1:
                hessian += self.zero_weight * self._gram(zeros)
        return hessians

    def _gram(self, entries: np.ndarray) -> np.ndarray:
        """Return the sum of b_j b_j^T over some items."""
        part = self.B.take(np.flatnonzero(entries), axis=0)
        return part.T @ part

    def _update(self, hessian: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
        """Add the zeros that became active to a second derivative, take away those that ceased to be."""
        hessian += self.zero_weight * (self._gram(after > before) - self._gram(after < before))

    def _aim(self, rows: _Rows) -> None:
        """Take Newton's direction."""
        gradient = rows.excess @ self.B + rows.C @ self.penalty
        rows.direction = -np.linalg.solve(self._systems(rows), gradient[:, :, None])[:, :, 0]
        rows.slope = np.einsum("kr,kr->k", gradient, rows.direction)
        bent = (rows.hessian @ rows.C[:, :, None])[:, :, 0]
        rows.explained = np.maximum(0, np.einsum("kr,kr->k", bent, rows.C))

    def _systems(self, rows: _Rows, chosen: np.ndarray | slice = slice(None)) -> np.ndarray:
        return rows.hessian[chosen] + rows.ridge[chosen, None, None] * np.eye(self.B.shape[1])

    def _finish(self, rows: _Rows, solution: np.ndarray) -> None:
        """Write the rows that have nothing to gain: a full step lowers the cost by half the slope."""
        negligible = -rows.slope <= np.maximum(_NEGLIGIBLE_GAP * rows.explained, rows.rounding / rows.ridge)
        finished = (negligible & (rows.step > 0)) | (rows.full_steps >= _MOST_FULL_STEPS)
        self._write(solution, rows, np.flatnonzero(finished & ~rows.finished))
        rows.finished |= finished

    def _write(self, solution: np.ndarray, rows: _Rows, found: np.ndarray) -> None:
        """Write solutions; where there may be others, the shortest."""
        if not len(found):
            return
        solution[rows.place[found]] = rows.C[found]
        walls = _TOUCHED * np.sqrt(rows.explained[found, None] / self.zero_weight) >= rows.X[found]
        touched = walls & rows.active[found].astype(bool)
        systems = self._systems(rows, found)
        for k in np.flatnonzero(touched.any(axis=1)):
            systems[k] -= self.zero_weight * self._gram(touched[k])
        free = rows.ridge[found] * np.einsum("krr->k", np.linalg.inv(systems)) > _FREE
        for k, zeros in zip(found[free], touched[free], strict=True):
            one = rows.C[k], rows.X[k], rows.coded[k], zeros
            solution[rows.place[k]] = shortest_minimum(*one, self.B, self.lengths)

    def _step(self, rows: _Rows) -> None:
        """Go along the direction to the lowest cost."""
        penalties = rows.direction @ self.penalty
        move_rows(
            rows.X,
            rows.direction @ self.B.T,
            rows.coded,
            self.zero_weight,
            rows.slope,
            np.einsum("kr,kr->k", penalties, rows.C),
            np.einsum("kr,kr->k", penalties, rows.direction),
            rows.step,
        )
        rows.C += rows.step[:, None] * rows.direction
        rows.full_steps += rows.step == 1
        lower = np.maximum(_FALL * rows.ridge, _least_ridge(rows.hessian))
        rows.ridge = np.where(rows.step >= 1, lower, rows.ridge)


def _least_ridge(hessians: np.ndarray) -> np.ndarray:
    return _LEAST_RIDGE * np.einsum("krr->k", hessians)
