"""Linear algebra of the row problems: axes in which the fitted items are well scaled, and the shortest minimum.

A row problem depends on u through the products V u alone (and through a penalty on |u|). The *axes* P have
orthonormal products V P, so that u = P c costs the same whatever the sizes of the columns of V are. Length, on
the other hand, is measured in u.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

_MOST_TURNS = 6  # three are enough
_ORTHONORMAL = 0.1  # a basis that is off by this much is as good as any
_DEPENDENT = 1e-11  # products of a direction that small, next to those of the columns, are rounding

_FLAT = 1e-10  # relative singular value below which the active items do not see a direction
_OVER = 1e-12  # product that a wall may be crossed by, next to the largest coordinate
_MOST_CUTS = 500
_CUTS = 3  # walls that are taken in at once, next to the number of directions


def orthonormal_axes(
    V: np.ndarray, penalty: np.ndarray, stretch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return axes P, the products V P, and the Gram matrix of these.

    Parameters
    ----------
    V : ndarray of shape (n, rank)
    penalty : ndarray of shape (rank,)
        The cost of u contains |penalty * u|^2 / 2.
    stretch : ndarray of shape (rank,)
        The length of u is that of stretch * u.

    Returns
    -------
    P : ndarray of shape (rank, n_axes)
        Fewer axes than columns where these are dependent: P c is then the shortest u of its products.
    products : ndarray of shape (n, n_axes)
        With columns that are orthonormal, up to ``_ORTHONORMAL``, when those of penalty * P are put below.
    gram : ndarray of shape (n_axes, n_axes)
    """
    P, dropped = np.eye(V.shape[1]), np.empty((V.shape[1], 0))
    rotation = P
    for turn in range(_MOST_TURNS):
        P = P @ rotation
        products = V @ P if turn else V
        gram, penalties = products.T @ products, penalty[:, None] * P
        whole = gram + penalties.T @ penalties
        sizes = np.sqrt(np.diag(whole))
        kept = sizes > (_DEPENDENT if turn else 0.0)
        dropped = np.hstack([dropped, P[:, ~kept]])
        P, sizes = P[:, kept], sizes[kept]
        P = P / sizes
        gram, whole = (A[np.ix_(kept, kept)] / np.outer(sizes, sizes) for A in (gram, whole))
        if np.abs(whole - np.eye(len(sizes))).max(initial=0.0) <= _ORTHONORMAL:
            break
        rotation = np.linalg.eigh(whole)[1]
    return _without(dropped, P, stretch), np.compress(kept, products, axis=1) / sizes, gram


def _without(dropped: np.ndarray, P: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Take the dropped directions out of P, which does not change its products: this makes it shortest."""
    if not dropped.shape[1]:
        return P
    Z = np.linalg.qr(stretch[:, None] * dropped)[0]
    P = stretch[:, None] * P
    for _ in range(2):  # once more, for what rounding has left
        P -= Z @ (Z.T @ P)
    return P / stretch[:, None]


def shortest_minimum(
    c: np.ndarray, x: np.ndarray, coded: np.ndarray, touched: np.ndarray, B: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Return the coordinates of least |lengths c| among those that cost the same as a minimum.

    These have the same products with the similar items and the active zeros, and none above zero with the other
    zeros: the point of a polyhedron that is nearest to the origin.

    Parameters
    ----------
    c : ndarray of shape (n_axes,)
        A minimum.
    x : ndarray of shape (n,)
        Its products B c.
    coded : ndarray of shape (n,)
        Similarities, or a negative number where they are unknown.
    touched : ndarray of bool of shape (n,)
        The zeros whose product is above zero by rounding alone.
    B : ndarray of shape (n, n_axes)
    lengths : ndarray of shape (rank, n_axes)

    Returns
    -------
    shortest : ndarray of shape (n_axes,)
        ``c`` itself where rounding hides a shorter one.
    """
    held = (coded > 0) | ((coded == 0) & (x > 0) & ~touched)
    free = _null_space(B[held])
    if not free.shape[1]:
        return c
    directions, sizes, turn = np.linalg.svd(lengths @ free, full_matrices=False)
    free = free @ turn.T / sizes  # now of length one, and orthogonal in u
    part = directions.T @ (lengths @ c)
    rest = c - free @ part
    wall = (coded == 0) & ~held
    slack = _OVER * np.abs(c).max()
    walls, limits = B[wall], np.maximum(0, x[wall]) + slack
    over = walls @ rest - limits
    if (over <= 0).all():
        return rest
    shortest = rest + free @ _shortest_within(walls @ free, -over, float(np.linalg.norm(part)))
    return shortest if (walls @ shortest <= limits + slack).all() else c


def _null_space(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the vectors that A takes to zero."""
    _, sizes, axes = np.linalg.svd(np.linalg.qr(A)[1])
    return axes[np.count_nonzero(sizes > _FLAT * sizes.max(initial=0.0)) :].T


def _shortest_within(G: np.ndarray, limits: np.ndarray, size: float) -> np.ndarray:
    """Return the shortest y with G y <= limits, if there is one not longer than ``size``.

    Least distance programming (Lawson and Hanson, chapter 23): nonnegative least squares in the multipliers of
    the walls that y presses against. Of many walls few matter: they are taken in as they are crossed.
    """
    limits = limits / size
    norms = np.linalg.norm(G, axis=1)
    y, pressed = np.zeros(G.shape[1]), np.empty(0, np.int64)
    for _ in range(_MOST_CUTS):
        over = G @ y - limits
        over[pressed] = 0
        crossed = np.flatnonzero((over > 0) & (norms > 0))
        if not len(crossed):
            break
        furthest = np.argsort(-over[crossed] / norms[crossed])[: _CUTS * len(y)]
        walls = np.append(pressed, crossed[furthest])
        multipliers, y = _press(G[walls], limits[walls])
        pressed = walls[multipliers > 0]
    return y * size


def _press(G: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the multipliers of the walls, and the shortest y within them (zeros where rounding hides it)."""
    dual = np.vstack([G.T, limits])
    target = np.append(np.zeros(G.shape[1]), -1.0)
    try:
        multipliers = nnls(dual, target)[0]
    except RuntimeError:  # it does not end
        return np.ones(len(G)), np.zeros(G.shape[1])
    residual = dual @ multipliers - target
    if not residual[-1] > 0:
        return np.ones(len(G)), np.zeros(G.shape[1])
    y = -residual[:-1] / residual[-1]
    pressed = multipliers > 0
    y += np.linalg.lstsq(G[pressed], limits[pressed] - G[pressed] @ y)[0]  # the rows of the dual differ in size
    return multipliers, y
