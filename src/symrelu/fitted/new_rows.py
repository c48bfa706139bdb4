"""Factor rows of new items: one convex problem each, solved exactly.

Let v_j = s * u_j be the signed rows of the fitted factor. A new item with similarities m to the fitted items
gets the u that minimises

    1/2 sum over m_j > 0 of (u.v_j - m_j)^2  +  w / 2 sum over m_j = 0 of max(0, u.v_j)^2  +  alpha / 4 |u|^2.

With ``at_least``, the first sum is over max(0, m_j - u.v_j)^2.

At a stationary point of the fit, each row of U solves its own problem. The cost is piecewise quadratic: it
changes where a zero of m becomes active (u.v > 0) or inactive and, with ``at_least``, where a positive
similarity is reached (u.v >= m). Newton's method with an exact line search therefore ends with an exact step
once the active set no longer changes. The Hessian of a row is kept and updated by the entries whose activity
changed.

The columns of V may differ in scale by any factor. To be independent of that, the computation uses axes P such
that the columns of B = V P are orthonormal: u = P c, and u.v_j = c.b_j.

If the active items do not span all directions, the Hessian is singular. A ridge makes it positive definite: it
shortens the steps (Levenberg-Marquardt) and does not move the minimum. Such a row has many minima; the one of
least norm is returned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.kernels.convex_rows import add_partial_grams, differentiate_rows, move_rows
from symrelu.kernels.least_norm import orthonormal_axes, shortest_minimum
from symrelu.kernels.memory import batches, rows_per_worker
from symrelu.kernels.threads import allowed_threads, run_tasks, slices

UNKNOWN = -1.0  # code of an unobserved similarity; observed ones are nonnegative

RIDGE = 1e-7  # initial ridge, relative to the mean curvature due to the row's positive entries
RIDGE_DECAY = 1e-3  # factor on the ridge after each full step
LEAST_RIDGE = 1e-14  # relative to the trace of the Hessian; below it, rounding can make the Hessian indefinite
NEGLIGIBLE_GAP = 1e-18  # cost above the minimum, relative to the explained squares, of a finished row
ROUNDING = 1e-31  # rounding error of the squared gradient, relative to the squares of its terms
TOUCHED = 1e-8  # an entry with a smaller residual, relative to the explained part, is active by rounding
MOST_FULL_STEPS = 30  # three are enough, unless the norms of the active items differ by 1e5 or more
MOST_STEPS = 500
DOUBTFUL = 1e-12  # a smaller curvature may be the rounding errors of items that were added and subtracted
FREE = 0.3  # a row is flat if this many directions, counted by the ridge's share of their curvature, are free
_MOST_STRETCH = 400  # largest ratio of column scales, as a power of two, for which the norm of u is exact

_ROWS_AT_ONCE = 32  # larger batches hardly speed up the matrix products, and exceed the caches
_NUMBERS_OF_A_WORKER = (
    5000  # if U has r times as many, about r ** 0.6 workers were fastest (measured on 16 cores)
)
_ARRAYS = 6  # arrays of the size of a batch of rows of M: similarities, products, their change, excess, copies
WORTH_A_COPY = 0.75  # finished rows are removed from the batch once at most this fraction is unfinished


def transform_rows(
    M_new: Any,
    U: np.ndarray,
    signature: np.ndarray,
    *,
    alpha: float = 0.0,
    zero_weight: float = 1.0,
    at_least: bool = False,
    mask: Any | None = None,
) -> np.ndarray:
    """Return the factor rows of new items from their similarities to the fitted ones.

    Parameters
    ----------
    M_new : csr_array or ndarray of shape (n_new, n)
        As :func:`symrelu.validation.check_rows` returns it.
    U : ndarray of shape (n, rank)
        The fitted factor.
    signature : ndarray of shape (rank,)
    alpha, zero_weight : float
    at_least : bool
        As in the fit.
    mask : csr_array or ndarray of bool of shape (n_new, n), optional
        True where a similarity is unobserved.

    Returns
    -------
    U_new : ndarray of shape (n_new, rank)
        In the dtype of U, computed in float64.
    """
    n_new, n = M_new.shape
    problem = row_problem(U, signature, alpha, zero_weight, at_least)
    U_new = np.zeros((n_new, U.shape[1]))
    at_once, workers = rows_per_worker(_ARRAYS * n * 8, _ROWS_AT_ONCE)
    # Between the kernels a worker holds the GIL: for small n, more than a few would wait for each other.
    useful = max(1, int((U.size / _NUMBERS_OF_A_WORKER) ** 0.6))
    workers = min(workers, useful, allowed_threads())

    def solve(batch: slice) -> None:
        rows, unknown = _dense_rows(M_new, mask, batch)
        # Scale each row of M to order one. Powers of two make that exact.
        exponents = np.frexp(rows.max(axis=1, initial=0.0, keepdims=True))[1]
        coded = np.ldexp(rows, -exponents, out=rows)
        if unknown is not None:
            coded[unknown] = UNKNOWN
        with np.errstate(over="ignore"):
            U_new[batch] = np.ldexp(problem.solve(coded) @ problem.axes.T, exponents - problem.exponents)

    if n_new:
        run_tasks(solve, slices(n_new, at_once), workers)
    check_range(U_new, U.dtype)
    return U_new.astype(U.dtype)


def explained_squares(
    M_new: Any, U_new: np.ndarray, V: np.ndarray, mask: Any | None = None, *, at_least: bool = False
) -> float:
    """Return 1 - ||M_new - max(0, U_new V^T)||^2 / ||M_new||^2 over the observed similarities.

    With ``at_least``, positive similarities that the reconstruction exceeds count as exact. The result is 1 for
    an exact reconstruction and 0 for one that is no better than zero everywhere. If M_new is zero, it is 1 if
    the reconstruction is zero too, and minus infinity otherwise.

    Parameters
    ----------
    M_new : csr_array or ndarray of shape (n_new, n)
    U_new : ndarray of shape (n_new, rank)
    V : ndarray of shape (n, rank)
    mask : csr_array or ndarray of bool of shape (n_new, n), optional
    at_least : bool, default=False

    Returns
    -------
    share : float
    """
    n_new, n = M_new.shape
    parts = list(batches(n_new, _ARRAYS * n * 8))
    largest = max((_dense_rows(M_new, mask, part)[0].max(initial=0.0) for part in parts), default=0.0)
    # Scale by powers of two, which is exact, so that neither squares nor products overflow or underflow.
    of_M, of_U, of_V = (int(np.frexp(np.abs(A).max(initial=0.0))[1]) for A in (largest, U_new, V))
    U_new, V = np.ldexp(U_new.astype(np.float64), -of_U), np.ldexp(V.astype(np.float64), -of_V)
    wrong = total = 0.0
    for part in parts:
        rows, unknown = _dense_rows(M_new, mask, part)
        known = np.ldexp(rows, -of_M)
        error = np.ldexp(np.maximum(0, U_new[part] @ V.T), of_U + of_V - of_M) - known
        if unknown is not None:
            error[unknown] = 0
        if at_least:
            error[(known > 0) & (error > 0)] = 0
        wrong += float(np.einsum("kj,kj->", error, error))
        total += float(np.einsum("kj,kj->", known, known))
    if total == 0:
        return 1.0 if wrong == 0 else -math.inf
    return 1 - wrong / total


def _dense_rows(M_new: Any, mask: Any | None, batch: slice) -> tuple[np.ndarray, np.ndarray | None]:
    """Return rows of M in float64, zero where they are unobserved, and the mask of these rows, or None."""
    rows = np.array(_dense(M_new[batch]), np.float64, order="C")
    if mask is None:
        return rows, None
    unknown = _dense(mask[batch])
    rows[unknown] = 0
    return rows, unknown


def _dense(rows: Any) -> Any:
    return rows.toarray() if sparse.issparse(rows) else rows


def check_range(U_new: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Raise if the dtype of the factor cannot represent the rows."""
    beyond = ~(np.abs(U_new) <= np.finfo(dtype).max).all(axis=1)
    if beyond.any():
        raise ValueError(
            f"The factor rows of new items must be within the range of {dtype}, but row "
            f"{int(np.argmax(beyond))} is not: its similarities are too large for the fitted factor. "
            "Pass M_new in the same units as the fitted M."
        )


def row_problem(
    U: np.ndarray, signature: np.ndarray, alpha: float, zero_weight: float, at_least: bool
) -> RowProblem:
    """Scale the columns of V to order one (or their penalty, if larger), and find orthonormal axes."""
    penalty = math.sqrt(alpha / 2)
    sizes = np.maximum(np.abs(U).max(axis=0, initial=0.0), penalty)
    exponents = np.frexp(sizes)[1]
    largest = exponents.max(where=sizes > 0, initial=-_MOST_STRETCH * 10)
    exponents[sizes == 0] = largest
    V, penalties = np.ldexp(U.astype(np.float64), -exponents) * signature, np.ldexp(penalty, -exponents)
    stretch = np.ldexp(1.0, np.minimum(largest - exponents, _MOST_STRETCH))
    axes, B, gram = orthonormal_axes(V, penalties, stretch)
    coordinates = np.linalg.pinv(axes) / stretch  # of u along the axes, up to powers of two
    along = penalties[:, None] * axes
    return RowProblem(
        axes=axes,
        exponents=exponents,
        lengths=stretch[:, None] * axes,
        B=B,
        gram=gram,
        model=(coordinates * signature) @ coordinates.T,
        penalty=along.T @ along,
        zero_weight=float(zero_weight),
        at_least=at_least,
    )


@dataclass(eq=False)
class Batch:
    """The state of the iteration for the unfinished rows of a batch."""

    place: np.ndarray  # index of the row in the batch
    coded: np.ndarray  # scaled similarities, UNKNOWN where unobserved
    rounding: np.ndarray  # rounding error of the squared gradient
    C: np.ndarray  # coordinates of the rows along the axes
    X: np.ndarray  # C B^T
    excess: np.ndarray  # derivative of the cost with respect to X
    active: np.ndarray  # whether an entry adds to the curvature
    hessian: np.ndarray
    own: np.ndarray  # trace of the Hessian if only the positive entries are active
    ridge: np.ndarray
    direction: np.ndarray  # of the next step
    slope: np.ndarray  # derivative of the cost along the direction
    explained: np.ndarray  # C^T hessian C, the squares that the model explains
    step: np.ndarray  # length of the last step: 1 for a full Newton step, 0 before the first
    full_steps: np.ndarray  # number of full steps so far
    finished: np.ndarray

    def keep(self, kept: np.ndarray) -> None:
        """Drop all other rows."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[kept])


@dataclass(frozen=True, eq=False)
class RowProblem:
    """The data shared by all rows."""

    axes: np.ndarray  # u = axes c, up to powers of two
    exponents: np.ndarray  # the exponents of these powers
    lengths: np.ndarray  # |u| = |lengths c|, up to a power of two
    B: np.ndarray  # products of the items with the axes
    gram: np.ndarray  # B^T B
    model: np.ndarray  # X = B model B^T, up to a power of two
    penalty: np.ndarray  # Hessian of alpha / 4 |u|^2 with respect to c
    zero_weight: float
    at_least: bool

    def solve(self, coded: np.ndarray) -> np.ndarray:
        """Return the solutions for the rows of a batch, as coordinates along the axes."""
        solution = np.zeros((len(coded), self.B.shape[1]))
        rows = self._start_batch(coded)
        for _ in range(MOST_STEPS):
            before = rows.active.copy()
            changed = differentiate_rows(
                rows.X, rows.coded, self.zero_weight, self.at_least, rows.excess, rows.active
            )
            if changed.any():
                # Entries that became active are added, and those that became inactive subtracted.
                changes = rows.active.astype(np.int8) - before.astype(np.int8)
                self._change_hessians(rows.hessian, rows.coded, changes)
            self._set_newton_direction(rows)
            self._write_finished(rows, solution)
            if rows.finished.all():
                return solution
            if np.mean(~rows.finished) <= WORTH_A_COPY:
                rows.keep(~rows.finished)
            self._take_step(rows)
        self._write_solutions(solution, rows, np.flatnonzero(~rows.finished))  # limited by rounding
        return solution

    def _start_batch(self, coded: np.ndarray) -> Batch:
        """Start from the weighted sum of the similar items, scaled to fit the similarities.

        The solution of a row without positive similarities is zero; such rows are left out.
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
        active = self._active(X, coded)
        hessian = self._hessians(coded, active)
        own = (coded > 0) @ np.einsum("jr,jr->j", B, B)
        return Batch(
            place=place,
            coded=coded,
            rounding=ROUNDING * own * np.einsum("kj,kj->k", similarities, similarities),
            C=C,
            X=X,
            excess=np.empty_like(X),
            active=active.astype(np.uint8),
            hessian=hessian,
            own=own,
            ridge=np.maximum(RIDGE * own / max(1, B.shape[1]), self._least_ridge(hessian, own)),
            direction=np.empty_like(C),
            slope=np.empty(len(place)),
            explained=np.empty(len(place)),
            step=np.zeros(len(place)),
            full_steps=np.zeros(len(place), np.int64),
            finished=np.zeros(len(place), bool),
        )

    def _active(self, X: np.ndarray, coded: np.ndarray) -> np.ndarray:
        """Return which entries add to the curvature, as ``differentiate_rows`` does."""
        short = (coded > 0) & (coded > X) if self.at_least else coded > 0
        return short | ((coded == 0) & (X > 0))

    def _change_hessians(self, hessians: np.ndarray, coded: np.ndarray, changes: np.ndarray) -> None:
        """Add the entries with change 1 to the Hessians, and subtract those with change -1."""
        of_zeros = changes * (coded == 0)
        add_partial_grams(hessians, self.B, of_zeros, self.zero_weight)
        if self.at_least:
            add_partial_grams(hessians, self.B, changes - of_zeros, 1.0)

    def _hessians(self, coded: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Return B^T D B + penalty for each row: D is 1 or, for zeros, zero_weight where an entry is active."""
        full = active if self.zero_weight == 1 else active & (coded > 0)
        most = 2 * np.count_nonzero(full, axis=1) > full.shape[1]
        hessians = np.where(most[:, None, None], self.gram + self.penalty, self.penalty)
        # Subtracting the other items from all is cheaper where most have full weight.
        add_partial_grams(hessians, self.B, full.astype(np.int8) - most[:, None].astype(np.int8), 1.0)
        if self.zero_weight != 1:
            add_partial_grams(hessians, self.B, (active & (coded == 0)).astype(np.int8), self.zero_weight)
        return hessians

    def _least_ridge(self, hessians: np.ndarray, own: np.ndarray) -> np.ndarray:
        traces = np.einsum("krr->k", hessians)
        # The Hessian is zero once every similarity is reached.
        return LEAST_RIDGE * (np.maximum(traces, own) if self.at_least else traces)

    def _set_newton_direction(self, rows: Batch) -> None:
        """Compute the Newton direction, the slope along it and the explained squares."""
        gradient = rows.excess @ self.B + rows.C @ self.penalty
        systems = self._systems(rows.hessian, rows.ridge)
        rows.direction = -np.linalg.solve(systems, gradient[:, :, None])[:, :, 0]
        rows.slope = np.einsum("kr,kr->k", gradient, rows.direction)
        bent = (rows.hessian @ rows.C[:, :, None])[:, :, 0]
        rows.explained = np.maximum(0, np.einsum("kr,kr->k", bent, rows.C))
        if self.at_least:
            reached = np.where((rows.coded > 0) & (rows.active == 0), rows.coded, 0)
            rows.explained += np.einsum("kj,kj->k", reached, reached)

    def _systems(self, hessians: np.ndarray, ridge: np.ndarray) -> np.ndarray:
        return hessians + ridge[:, None, None] * np.eye(self.B.shape[1])

    def _write_finished(self, rows: Batch, solution: np.ndarray) -> None:
        """Write the rows that are converged: a full step lowers the cost by half the slope."""
        negligible = -rows.slope <= np.maximum(NEGLIGIBLE_GAP * rows.explained, rows.rounding / rows.ridge)
        finished = (negligible & (rows.step > 0)) | (rows.full_steps >= MOST_FULL_STEPS)
        self._write_solutions(solution, rows, np.flatnonzero(finished & ~rows.finished))
        rows.finished |= finished

    def _write_solutions(self, solution: np.ndarray, rows: Batch, found: np.ndarray) -> None:
        """Write the solutions; if a row has many, the one of least norm."""
        if not len(found):
            return
        solution[rows.place[found]] = rows.C[found]
        X, coded = rows.X[found], rows.coded[found]
        touched = self._close_to_walls(X, coded, rows.explained[found, None]) & rows.active[found].astype(bool)
        hessians, ridge = rows.hessian[found], np.maximum(rows.ridge[found], DOUBTFUL)
        self._change_hessians(hessians, coded, -touched.astype(np.int8))
        free = ridge * np.einsum("krr->k", np.linalg.inv(self._systems(hessians, ridge))) > FREE
        held = self._active(X, coded) & ~touched
        for k in np.flatnonzero(free):
            one = rows.C[found[k]], coded[k], held[k]
            solution[rows.place[found[k]]] = shortest_minimum(*one, self.B, self.lengths)

    def _close_to_walls(self, X: np.ndarray, coded: np.ndarray, explained: np.ndarray) -> np.ndarray:
        """Return which entries would be inactive, but for rounding errors."""
        residual = np.where(coded > 0, coded - X if self.at_least else np.inf, X)
        return TOUCHED * np.sqrt(explained / np.where(coded > 0, 1.0, self.zero_weight)) >= residual

    def _take_step(self, rows: Batch) -> None:
        """Minimise the cost exactly along the direction, and lower the ridge after full steps."""
        penalties = rows.direction @ self.penalty
        move_rows(
            rows.X,
            rows.direction @ self.B.T,
            rows.coded,
            self.zero_weight,
            self.at_least,
            rows.slope,
            np.einsum("kr,kr->k", penalties, rows.C),
            np.einsum("kr,kr->k", penalties, rows.direction),
            rows.step,
        )
        rows.C += rows.step[:, None] * rows.direction
        rows.full_steps += rows.step == 1
        lower = np.maximum(RIDGE_DECAY * rows.ridge, self._least_ridge(rows.hessian, rows.own))
        rows.ridge = np.where(rows.step >= 1, lower, rows.ridge)
