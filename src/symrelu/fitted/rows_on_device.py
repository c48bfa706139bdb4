"""Factor rows of new items on a torch device: the method of :mod:`symrelu.fitted.new_rows` with tensors.

The problems, their scaling, the steps and the end of the iteration are those of the host. There, the Hessian of
a row is updated by the entries whose activity changed; here, it is a matrix product with the products of all
pairs of columns of B, computed again for the rows in which an activity changed. For the rest, see there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.fitted import new_rows
from symrelu.fitted.new_rows import Batch, RowProblem, check_range, row_problem
from symrelu.kernels.convex_rows import ENOUGH, LONGEST, MOST_TRIALS
from symrelu.kernels.least_norm import shortest_minimum
from symrelu.kernels.threads import slices
from symrelu.operators.torch_precision import undisturbed  # explains what is missing
from symrelu.operators.torch_rows import numbers_at_once, tensor

import torch  # isort: skip

# A batch of rows of M has this part of the numbers of a block, because several arrays of its size are held at
# once; with far fewer rows, the products of the columns of B would take most of the time.
_PART = 1 / 2


@undisturbed
def transform_rows(
    M_new: Any,
    U: np.ndarray,
    signature: np.ndarray,
    *,
    alpha: float = 0.0,
    zero_weight: float = 1.0,
    at_least: bool = False,
    mask: Any | None = None,
    device: Any,
) -> np.ndarray:
    """Return the factor rows of new items from their similarities to the fitted ones.

    Parameters
    ----------
    M_new, U, signature, alpha, zero_weight, at_least, mask
        As for :func:`symrelu.fitted.new_rows.transform_rows`.
    device : torch.device

    Returns
    -------
    U_new : ndarray of shape (n_new, rank)
        In the dtype of U, computed in float64.
    """
    n_new, n = M_new.shape
    host = row_problem(U, signature, alpha, zero_weight, at_least)
    problem = _DeviceProblem(host, device)
    U_new = np.zeros((n_new, U.shape[1]))
    for batch in slices(n_new, max(1, int(_PART * numbers_at_once(device) / n))):
        rows = _dense(M_new[batch], torch.float64, device)
        exponents = np.frexp(rows.amax(dim=1, keepdim=True).cpu().numpy())[1]
        # Twice a half: the whole power of two may be beyond the range of float64.
        for part in (-exponents // 2, -exponents - (-exponents // 2)):
            rows *= tensor(np.ldexp(1.0, part), device)
        if mask is not None:
            rows[_dense(mask[batch], torch.bool, device)] = new_rows.UNKNOWN
        with np.errstate(over="ignore"):
            U_new[batch] = np.ldexp(problem.solve(rows) @ host.axes.T, exponents - host.exponents)
    check_range(U_new, U.dtype)
    return U_new.astype(U.dtype)


def _dense(rows: Any, dtype: Any, device: Any) -> Any:
    """Return rows of a csr_array or an ndarray as a dense tensor; only stored entries are sent."""
    if not sparse.issparse(rows):
        return tensor(rows, device).to(dtype)
    entries = rows.tocoo()
    found = torch.zeros(rows.shape, dtype=dtype, device=device)
    places = tuple(tensor(part.astype(np.int64), device) for part in entries.coords)
    found[places] = tensor(entries.data, device).to(dtype)
    return found


class _DeviceProblem:
    """The data shared by all rows, on a device.

    Parameters
    ----------
    host : RowProblem
    device : torch.device
    """

    def __init__(self, host: RowProblem, device: Any) -> None:
        self.host = host
        self.device = device
        self.zero_weight, self.at_least = host.zero_weight, host.at_least
        self.B, self.model, self.penalty = (tensor(A, device) for A in (host.B, host.model, host.penalty))
        self.squares = (self.B * self.B).sum(dim=1)

    def solve(self, coded: Any) -> np.ndarray:
        """Return the solutions for the rows of a batch, as coordinates along the axes, on the host."""
        solution = torch.zeros((len(coded), self.B.shape[1]), dtype=coded.dtype, device=self.device)
        rows = self._start_batch(coded)
        for step in range(new_rows.MOST_STEPS):
            if step:
                self._differentiate(rows)
            self._set_newton_direction(rows)
            self._write_finished(rows, solution)
            unfinished = ~rows.finished
            left = int(unfinished.sum())
            if not left:
                return solution.cpu().numpy()
            if left <= new_rows.WORTH_A_COPY * len(unfinished):
                rows.keep(unfinished)
            self._take_step(rows)
        self._write_solutions(solution, rows, torch.nonzero(~rows.finished)[:, 0])  # limited by rounding
        return solution.cpu().numpy()

    def _start_batch(self, coded: Any) -> Batch:
        """Start from the weighted sum of the similar items, scaled to fit the similarities."""
        place = torch.nonzero(((coded > 0) & (self.squares > 0)).any(dim=1))[:, 0]
        coded = coded[place]
        similarities = coded.clamp(min=0)
        C = similarities @ self.B @ self.model
        X = C @ self.B.T
        fitting = (similarities * X).sum(dim=1)
        square = torch.where(coded > 0, X, 0.0).square().sum(dim=1)
        length = torch.where((fitting > 0) & (square > 0), fitting / square, 0.0)[:, None]
        C, X = C * length, X * length
        active = self._active(X, coded)
        hessian = self._hessians(coded, active)
        own = (coded > 0).to(X.dtype) @ self.squares
        least = self._least_ridge(hessian, own)
        nothing = torch.zeros_like(own)
        return Batch(
            place=place,
            coded=coded,
            rounding=new_rows.ROUNDING * own * similarities.square().sum(dim=1),
            C=C,
            X=X,
            excess=self._excess(X, coded, active),
            active=active,
            hessian=hessian,
            own=own,
            ridge=torch.maximum(new_rows.RIDGE * own / max(1, self.B.shape[1]), least),
            direction=C,
            slope=nothing,
            explained=nothing,
            step=nothing,
            full_steps=nothing.long(),
            finished=nothing.bool(),
        )

    def _active(self, X: Any, coded: Any) -> Any:
        """Return which entries add to the curvature."""
        short = (coded > 0) & (coded > X) if self.at_least else coded > 0
        return short | ((coded == 0) & (X > 0))

    def _excess(self, X: Any, coded: Any, active: Any) -> Any:
        """Return the derivative of the cost with respect to X."""
        return self._weights(coded, active).mul_(X - coded)  # an active zero has similarity zero

    def _weights(self, coded: Any, active: Any) -> Any:
        """Return 1, or for zeros of M zero_weight, where an entry is active, else 0."""
        weights = active.to(coded.dtype)
        return (
            weights if self.zero_weight == 1 else weights.masked_fill_(active & (coded == 0), self.zero_weight)
        )

    def _hessians(self, coded: Any, active: Any) -> Any:
        """Return B^T D B + penalty for each row, where D has the weights of its active entries."""
        weights, rank = self._weights(coded, active), self.B.shape[1]
        hessians = self.penalty.reshape(1, -1).repeat(len(coded), 1)
        for part in slices(len(self.B), max(1, numbers_at_once(self.device) // max(1, rank**2))):
            B = self.B[part]
            hessians += weights[:, part] @ (B[:, :, None] * B[:, None, :]).reshape(len(B), rank**2)
        return hessians.view(len(coded), rank, rank)

    def _least_ridge(self, hessians: Any, own: Any) -> Any:
        traces = hessians.diagonal(dim1=1, dim2=2).sum(dim=1)
        # The Hessian is zero once every similarity is reached.
        return new_rows.LEAST_RIDGE * (torch.maximum(traces, own) if self.at_least else traces)

    def _differentiate(self, rows: Any) -> None:
        """Compute which entries are active now, the excess, and the Hessians that changed."""
        active = self._active(rows.X, rows.coded)
        changed = torch.nonzero((active != rows.active).any(dim=1))[:, 0]
        rows.active, rows.excess = active, self._excess(rows.X, rows.coded, active)
        if len(changed):
            rows.hessian[changed] = self._hessians(rows.coded[changed], active[changed])

    def _set_newton_direction(self, rows: Any) -> None:
        """Compute the Newton direction, the slope along it and the explained squares."""
        gradient = rows.excess @ self.B + rows.C @ self.penalty
        rows.direction = -torch.linalg.solve(self._systems(rows.hessian, rows.ridge), gradient)
        rows.slope = (gradient * rows.direction).sum(dim=1)
        bent = (rows.hessian @ rows.C[:, :, None])[:, :, 0]
        rows.explained = (bent * rows.C).sum(dim=1).clamp_(min=0)
        if self.at_least:
            reached = torch.where((rows.coded > 0) & ~rows.active, rows.coded, 0.0)
            rows.explained += reached.square().sum(dim=1)

    def _systems(self, hessians: Any, ridge: Any) -> Any:
        unit = torch.eye(self.B.shape[1], dtype=self.B.dtype, device=self.device)
        return hessians + ridge[:, None, None] * unit

    def _write_finished(self, rows: Any, solution: Any) -> None:
        """Write the rows that are converged: a full step lowers the cost by half the slope."""
        enough = torch.maximum(new_rows.NEGLIGIBLE_GAP * rows.explained, rows.rounding / rows.ridge)
        finished = (-rows.slope <= enough) & (rows.step > 0) | (rows.full_steps >= new_rows.MOST_FULL_STEPS)
        self._write_solutions(solution, rows, torch.nonzero(finished & ~rows.finished)[:, 0])
        rows.finished = rows.finished | finished

    def _write_solutions(self, solution: Any, rows: Any, found: Any) -> None:
        """Write the solutions; if a row has many, the one of least norm."""
        if not len(found):
            return
        solution[rows.place[found]] = rows.C[found]
        X, coded, active = rows.X[found], rows.coded[found], rows.active[found]
        touched = self._close_to_walls(X, coded, rows.explained[found, None]) & active
        hessians, ridge = rows.hessian[found], rows.ridge[found].clamp(min=new_rows.DOUBTFUL)
        close = torch.nonzero(touched.any(dim=1))[:, 0]
        if len(close):
            of_touched = self._hessians(coded[close], touched[close]) - self.penalty
            hessians[close] -= of_touched
        inverses = torch.linalg.inv(self._systems(hessians, ridge))
        traces = inverses.diagonal(dim1=1, dim2=2).sum(dim=1)
        for k in torch.nonzero(ridge * traces > new_rows.FREE)[:, 0].tolist():
            one = rows.C[found[k]], coded[k], active[k] & ~touched[k]
            c, similarities, held = (part.cpu().numpy() for part in one)
            shortest = shortest_minimum(c, similarities, held, self.host.B, self.host.lengths)
            solution[rows.place[found[k]]] = tensor(shortest, self.device)

    def _close_to_walls(self, X: Any, coded: Any, explained: Any) -> Any:
        """Return which entries would be inactive, but for rounding errors."""
        positive = coded > 0
        # If X = M is required, a positive similarity has no wall.
        residual = torch.where(positive, coded - X if self.at_least else torch.inf, X)
        reach = new_rows.TOUCHED * explained.sqrt()
        return torch.where(positive, reach, reach / math.sqrt(self.zero_weight)) >= residual

    def _take_step(self, rows: Any) -> None:
        """Minimise the cost along the direction, and lower the ridge after full steps."""
        penalties = rows.direction @ self.penalty
        Z = rows.direction @ self.B.T
        slopes, curvatures = ((penalties * A).sum(dim=1) for A in (rows.C, rows.direction))
        rows.step = self._step_lengths(rows.X, Z, rows.coded, rows.slope, slopes, curvatures)
        rows.X.addcmul_(rows.step[:, None], Z)
        rows.C += rows.step[:, None] * rows.direction
        rows.full_steps = rows.full_steps + (rows.step == 1)
        lower = torch.maximum(new_rows.RIDGE_DECAY * rows.ridge, self._least_ridge(rows.hessian, rows.own))
        rows.ridge = torch.where(rows.step >= 1, lower, rows.ridge)

    def _step_lengths(
        self, X: Any, Z: Any, coded: Any, slopes: Any, penalty_slopes: Any, penalty_curvatures: Any
    ) -> Any:
        """Return the step lengths of :func:`symrelu.kernels.convex_rows.move_rows`, which has the method."""
        steps = torch.ones_like(slopes)
        open_rows = torch.arange(len(X), device=self.device)  # whose search goes on
        t, low, high = steps.clone(), torch.zeros_like(slopes), torch.full_like(slopes, math.inf)
        for _ in range(MOST_TRIALS):
            x = torch.addcmul(X, t[:, None], Z)
            bent = self._weights(coded, self._active(x, coded)).mul_(Z)
            slope = penalty_slopes + t * penalty_curvatures + (bent * x.sub_(coded)).sum(dim=1)
            curvature = penalty_curvatures + bent.mul_(Z).sum(dim=1)
            high, low = torch.where(slope > 0, t, high), torch.where(slope > 0, low, t)
            following = t - slope / curvature
            # Outside the bracket: bisect, or double t while there is no upper end.
            between = torch.where(high < math.inf, (low + high) / 2, 2 * t)
            following = torch.where((low < following) & (following < high), following, between)
            following = following.clamp(max=LONGEST)
            ended = (slope.abs() <= -ENOUGH * slopes) | ~(curvature > 0) | (following == t)
            steps[open_rows] = t
            going = torch.nonzero(~ended)[:, 0]
            if not len(going):
                return steps
            t = following[going]
            if len(going) < len(open_rows):
                open_rows, low, high = open_rows[going], low[going], high[going]
                X, Z, coded, slopes = X[going], Z[going], coded[going], slopes[going]
                penalty_slopes, penalty_curvatures = penalty_slopes[going], penalty_curvatures[going]
        steps[open_rows] = t
        return steps
