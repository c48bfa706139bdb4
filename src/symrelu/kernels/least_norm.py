"""Linear algebra of the row problems: well-scaled axes, and the minimum of least norm.

A row problem depends on u only through the products V u (and through a penalty on |u|). The *axes* P have
orthonormal products V P, so the coordinates c of u = P c are well scaled even if the columns of V differ
widely in size. The norm that is minimised is that of u, not of c.
"""

from __future__ import annotations

import numpy as np

_MOST_TURNS = 6  # three were enough in practice
_ORTHONORMAL = 0.1  # deviation of a Gram matrix from the identity that does no harm
_DEPENDENT = 1e-11  # below this size, relative to the columns, the products of a direction are rounding errors

_FLAT = 1e-10  # relative singular value below which the held products do not determine a direction
_ROUNDING = 1e-14  # of a product, relative to the lengths of its factors
_TOUCHED = 1e-8  # a product beyond its wall by less, relative to the similarities, costs next to nothing: 1e-16
_MOST_CUTS = 500
_CUTS = 3  # constraints that are added at once, per direction


def orthonormal_axes(
    V: np.ndarray, penalty: np.ndarray, stretch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return axes P, the products V P, and the Gram matrix of these products.

    Parameters
    ----------
    V : ndarray of shape (n, rank)
    penalty : ndarray of shape (rank,)
        The cost of u contains |penalty * u|^2 / 2.
    stretch : ndarray of shape (rank,)
        The norm of u is measured as |stretch * u|.

    Returns
    -------
    P : ndarray of shape (rank, n_axes)
        Fewer axes than columns if the columns are dependent: P c is then the u of least norm with its products.
    products : ndarray of shape (n, n_axes)
        The columns of [V P; penalty * P] are orthonormal up to ``_ORTHONORMAL``.
    gram : ndarray of shape (n_axes, n_axes)
    """
    P, dropped = np.eye(V.shape[1]), np.empty((V.shape[1], 0))
    rotation = P
    # One eigendecomposition of the Gram matrix leaves small directions inaccurate, so the basis is refined.
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
    products = np.compress(kept, products, axis=1) / sizes
    penalties = penalty[:, None] * P
    # The products of dropped directions are small. Without components along the axes, they are rounding errors.
    for _ in range(2):
        along = products.T @ (V @ dropped) + penalties.T @ (penalty[:, None] * dropped)
        dropped = dropped - P @ along
    return _orthogonal_to(dropped, P, stretch), products, gram


def _orthogonal_to(dropped: np.ndarray, P: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Return P without its components along the dropped directions: same products, least norm."""
    if not dropped.shape[1]:
        return P
    Z = np.linalg.qr(stretch[:, None] * dropped)[0]
    P = stretch[:, None] * P
    for _ in range(2):  # twice, because the first projection leaves rounding errors
        P -= Z @ (Z.T @ P)
    return P / stretch[:, None]


def shortest_minimum(
    c: np.ndarray, coded: np.ndarray, held: np.ndarray, B: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Return the coordinates of least |lengths c| among those with the same cost as a given minimum.

    They have the same products with the held items. Of the others, zeros have nonpositive products and
    positive similarities products that are at least as large: the result is the point of a polyhedron that is
    nearest to the origin.

    Parameters
    ----------
    c : ndarray of shape (n_axes,)
        A minimum.
    coded : ndarray of shape (n,)
        Similarities, or a negative number where they are unobserved.
    held : ndarray of bool of shape (n,)
        Items whose products determine the cost: the active ones, except those that only rounding made active.
    B : ndarray of shape (n, n_axes)
    lengths : ndarray of shape (rank, n_axes)

    Returns
    -------
    shortest : ndarray of shape (n_axes,)
        ``c`` itself if rounding errors prevent a shorter one.
    """
    free = _null_space(B[held])
    if not free.shape[1]:
        return c
    directions, sizes, turn = np.linalg.svd(lengths @ free, full_matrices=False)
    free = free @ turn.T / sizes  # now orthonormal in u
    rest, part = c, np.zeros(len(sizes))
    for _ in range(2):  # twice, because the first projection leaves rounding errors
        along = directions.T @ (lengths @ rest)
        rest, part = rest - free @ along, part + along
    wall = (coded >= 0) & ~held & B.any(axis=1)
    sides = np.where(coded[wall] > 0, -1.0, 1.0)  # the product must be at least, or at most, the similarity
    heights = np.abs(B[wall]).max(axis=1)
    constraints = sides[:, None] * (B[wall] / heights[:, None])
    limits = np.maximum(sides * coded[wall] / heights, constraints @ c)
    G, size = constraints @ free, float(np.linalg.norm(part))
    slack = _ROUNDING * (np.linalg.norm(c) + size * np.linalg.norm(G, axis=1))
    violation = constraints @ rest - limits - slack
    if (violation <= 0).all():
        return rest
    shortest = rest + free @ _least_distance(G, -violation, size)
    # Walls that nearly cancel each other amplify rounding errors: accept them as long as they cost nothing.
    slack = 10 * (slack + _ROUNDING * np.linalg.norm(shortest))
    slack = np.maximum(slack, _TOUCHED * np.linalg.norm(np.maximum(coded, 0)) / heights)
    return shortest if (constraints @ shortest <= limits + slack).all() else c


def _null_space(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the null space of A."""
    # R has the null space of A, and far fewer rows.
    _, sizes, axes = np.linalg.svd(np.linalg.qr(A)[1])
    return axes[np.count_nonzero(sizes > _FLAT * sizes.max(initial=0.0)) :].T


def _least_distance(G: np.ndarray, limits: np.ndarray, size: float) -> np.ndarray:
    """Return the shortest y with G y <= limits, provided that one of norm at most ``size`` exists.

    Least distance programming (Lawson and Hanson, chapter 23): nonnegative least squares for the multipliers of
    the constraints. Few of many constraints matter, so they are added when they are violated.
    """
    norms = np.linalg.norm(G, axis=1)
    # With constraints and a y of length one, violations compare with each other and with rounding errors.
    G, limits = G[norms > 0] / norms[norms > 0, None], limits[norms > 0] / (size * norms[norms > 0])
    y, active = np.zeros(G.shape[1]), np.empty(0, np.int64)
    for _ in range(_MOST_CUTS):
        violation = G @ y - limits
        violation[active] = 0
        violated = np.flatnonzero(violation > _ROUNDING)
        if not len(violated):
            break
        furthest = np.argsort(-violation[violated])[: _CUTS * len(y)]
        chosen = np.append(active, violated[furthest])
        multipliers, y = _solve_dual(G[chosen], limits[chosen])
        before, active = active, chosen[multipliers > 0]
        if np.array_equal(active, before):
            break  # limited by rounding
    return y * size


def _solve_dual(G: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the multipliers, and the shortest y with G y <= limits (zero if rounding errors prevent it)."""
    from scipy.optimize import nnls  # not at the top: slow to import, and no fit needs it

    dual = np.vstack([G.T, limits])
    target = np.append(np.zeros(G.shape[1]), -1.0)
    try:
        multipliers = nnls(dual, target)[0]
    except RuntimeError:  # scipy's iteration limit
        return np.ones(len(G)), np.zeros(G.shape[1])
    residual = dual @ multipliers - target
    if not residual[-1] > 0:
        return np.ones(len(G)), np.zeros(G.shape[1])
    y = -residual[:-1] / residual[-1]
    active = multipliers > 0
    # The rows of the dual differ in size, so y meets the active constraints only roughly: correct it.
    y += np.linalg.lstsq(G[active], limits[active] - G[active] @ y)[0]
    return multipliers, y
