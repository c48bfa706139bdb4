"""t-SNE of a weighted graph in the plane: linked items attract, all items repel each other.

It minimises the Kullback-Leibler divergence of the weights from 1 / (1 + |y_i - y_j|^2), both scaled to sum 1
(van der Maaten and Hinton, 2008). The repulsion is that of a field on a regular grid, whose convolutions are
products of Fourier transforms (Linderman et al., 2019): a step takes time in proportion to the edges and to the
area of the map. Nothing runs in parallel or is drawn at random, so the same start gives the same map.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.kernels.planar_forces import NODES, attract, gather, own_field, spread

EXAGGERATION = 12.0  # of the attraction in the first steps, so that groups can pass each other
EARLY_STEPS = 250
STEPS = 750

_SPACING = 0.5  # of the grid, in units of the map. Forces are then within 7 % (root mean square).
_PAIRWISE = 250  # points up to which all pairs are compared
_MOST_NODES = 1000  # along a side of the grid: wider maps get a coarser one
_MARGIN = 1.0  # nodes of the grid before the first point; interpolation needs one
_MOMENTUM = (0.5, 0.8)  # with and without exaggeration
_LEAST_GAIN = 0.01
_LEAST_SUM = 1e-6  # of q: rounding in float32 could leave less for a few points that are far apart


def tsne(graph: Any, start: np.ndarray, *, steps: int = STEPS, early: int = EARLY_STEPS) -> np.ndarray:
    """Return the map of a graph.

    Parameters
    ----------
    graph : csr_array of shape (n, n)
        Symmetric and nonnegative, with sum 1 and an empty diagonal.
    start : ndarray of shape (n, 2)
        Where the items are at the start, close together.
    steps : int, default=750
        Number of steps.
    early : int, default=250
        Number of steps with exaggerated attraction among them.

    Returns
    -------
    coordinates : ndarray of float64 of shape (n, 2)
    """
    points = np.ascontiguousarray(start.T, dtype=np.float64)
    rate = len(start) / EXAGGERATION / 4  # weights are about 1 / n: larger steps overshoot
    velocity, gains, pulls = np.zeros_like(points), np.ones_like(points), np.empty_like(points)
    repulsion = Repulsion()
    for step in range(steps):
        exaggeration, momentum = (EXAGGERATION, _MOMENTUM[0]) if step < early else (1.0, _MOMENTUM[1])
        attract(points, graph.indptr, graph.indices, graph.data, pulls)
        gradient = 4 * (exaggeration * pulls - repulsion(points))
        # Longer steps along coordinates that keep their direction, shorter ones along those that turn.
        gains = np.maximum(np.where(gradient * velocity < 0, gains + 0.2, gains * 0.8), _LEAST_GAIN)
        velocity = momentum * velocity - rate * gains * gradient
        points += velocity
        points -= points.mean(axis=1, keepdims=True)
    return points.T.copy()


def exact(points: np.ndarray) -> np.ndarray:
    """Return the repulsion by the formula, over all pairs.

    Parameters
    ----------
    points : ndarray of shape (2, n)

    Returns
    -------
    forces : ndarray of shape (2, n)
    """
    dx, dy = points[:, :, None] - points[:, None, :]
    q = 1 / (1 + dx**2 + dy**2)
    np.fill_diagonal(q, 0)
    squares = q**2
    return np.stack([(dx * squares).sum(axis=1), (dy * squares).sum(axis=1)]) / q.sum()


class Repulsion:
    """The repulsion between all points: sum_j (y_i - y_j) q_ij^2 / sum q with q_ij = 1 / (1 + |y_i - y_j|^2).

    A few points are compared in pairs, as they may be far apart, on a large grid with little on it.
    The transforms of q and of both components of the force are kept for as long as the size of the grid stays
    the same.
    """

    def __init__(self) -> None:
        self._size = 0
        self._spacing = 0.0
        self._transforms = self._near = np.empty(0)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Return the forces on points of shape (2, n), in the same shape."""
        return exact(points) if points.shape[1] <= _PAIRWISE else self._on_grid(points)

    def _on_grid(self, points: np.ndarray) -> np.ndarray:
        from scipy import fft  # it imports scipy.special, which is slow

        corner = points.min(axis=1, keepdims=True)
        self._fit_grid(float((points - corner).max()))
        places = (points - corner) / self._spacing + _MARGIN
        sides = (2 * self._size,) * 2  # twice the size, as products of transforms are periodic convolutions
        density = np.zeros(sides, np.float32)
        spread(places, density)
        fields = fft.irfft2(self._transforms * fft.rfft2(density), s=sides)
        values = np.empty((3, points.shape[1]))
        gather(places, fields, values)
        # Without the pairs of a point with itself, as they are on the grid: points that are far apart have
        # little else.
        total = values[0].sum() - own_field(places, self._near)
        return values[1:] / max(total, _LEAST_SUM)

    def _fit_grid(self, span: float) -> None:
        """Make the grid larger if it is too small for the map, and smaller if it is much too large."""
        from scipy import fft

        coarser = max(0, int(np.ceil(np.log2(max(span, 1.0) / (_SPACING * _MOST_NODES)))))
        spacing = _SPACING * 2**coarser
        needed = int(span / spacing) + NODES + 1
        if spacing == self._spacing and needed <= self._size <= 1.3 * needed + 16:
            return
        self._spacing, self._size = spacing, fft.next_fast_len(needed + needed // 10, real=True)
        offsets = np.fft.fftfreq(2 * self._size, 0.5 / self._size) * spacing
        dx, dy = offsets[:, None], offsets[None, :]
        q = 1 / (1 + dx**2 + dy**2)
        self._near = q[:NODES, :NODES].copy()
        self._transforms = fft.rfft2(np.stack([q, dx * q**2, dy * q**2]).astype(np.float32))
