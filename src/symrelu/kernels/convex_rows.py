"""One convex problem for each new row of similarities, whose minimum is the factor row u of a new item.

With the products x_j = u . v_j, a row of observed similarities m has the cost

    1/2 sum over m_j > 0 of (x_j - m_j)^2  +  zero_weight / 2 sum over m_j = 0 of max(0, x_j)^2.

With ``at_least``, the first sum is over max(0, m_j - x_j)^2: products above the similarity cost nothing.

Entries of ``coded`` are m, or a negative number where the similarity is unobserved. The *excess* is the
derivative of the cost with respect to the products. An entry is *active* if it adds to the curvature: zeros
with a positive product and positive similarities, with ``at_least`` only those above their product.
"""

from __future__ import annotations

import numpy as np

from symrelu.kernels.jit import compiled

MOST_TRIALS = 100
ENOUGH = 0.01  # a line search ends when the slope has dropped to this fraction of the initial one
_ROWS_AT_ONCE = 256  # of B, gathered for one product: they stay in the cache
LONGEST = 100.0  # along a direction without curvature, rounding errors would decide the step length


@compiled
def differentiate_rows(X, coded, zero_weight, at_least, excess, active):  # type: ignore[no-untyped-def]
    """Write the excess and the active entries. Return how many of each row became active or inactive."""
    changed = np.zeros(X.shape[0], np.int64)
    for i in range(X.shape[0]):
        count = 0
        for j in range(X.shape[1]):
            x, m = X[i, j], coded[i, j]
            short = m > 0 and not (at_least and x >= m)
            now = np.uint8(short or (m == 0 and x > 0))
            e = x - m if short else 0.0
            excess[i, j] = zero_weight * x if now and not short else e
            count += now ^ active[i, j]
            active[i, j] = now
        changed[i] = count
    return changed


@compiled
def move_rows(  # type: ignore[no-untyped-def]
    X, Z, coded, zero_weight, at_least, slopes, penalty_slopes, penalty_curvatures, steps
):
    """Move each row of X along its row of Z to the minimum of the cost. Write the step lengths into ``steps``.

    The penalty, which does not depend on the products, adds ``penalty_slopes + t penalty_curvatures`` to the
    derivative with respect to the step length t; ``slopes`` holds the whole derivative at t = 0. The derivative
    increases with t and is piecewise linear, so Newton's method, safeguarded by bisection, finds its zero.
    """
    for i in range(X.shape[0]):
        low, high = 0.0, np.inf
        t = 1.0
        for _ in range(MOST_TRIALS):
            slope = penalty_slopes[i] + t * penalty_curvatures[i]
            curvature = penalty_curvatures[i]
            for j in range(X.shape[1]):
                z, m = Z[i, j], coded[i, j]
                x = X[i, j] + t * z
                weight = zero_weight if m == 0 and x > 0 else 0.0
                weight = 1.0 if m > 0 and not (at_least and x >= m) else weight
                slope += weight * (x - m) * z  # an active zero has m = 0
                curvature += weight * z * z
            if abs(slope) <= -ENOUGH * slopes[i] or not curvature > 0:
                break
            if slope > 0:
                high = t
            else:
                low = t
            following = t - slope / curvature
            # Outside the bracket: bisect, or double t while there is no upper end.
            if not low < following < high:
                following = (low + high) / 2 if high < np.inf else 2 * t
            following = min(following, LONGEST)
            if following == t:
                break
            t = following
        steps[i] = t
        for j in range(X.shape[1]):
            X[i, j] += t * Z[i, j]


@compiled
def add_partial_grams(hessians, B, changes, weight):  # type: ignore[no-untyped-def]
    """Add ``weight`` times the sum of ``changes[i, j] b_j b_j^T`` over j to each ``hessians[i]``.

    The changes are 1, 0 and -1: items to add, to leave out and to subtract.
    """
    rank = B.shape[1]
    gathered = np.empty((_ROWS_AT_ONCE, rank))
    gram = np.empty((rank, rank))
    for i in range(len(hessians)):
        for sign in (1, -1):
            count = 0
            for j in range(len(B)):
                if changes[i, j] == sign:
                    for c in range(rank):
                        gathered[count, c] = B[j, c]
                    count += 1
                if count == _ROWS_AT_ONCE or (count > 0 and j == len(B) - 1):
                    part = gathered[:count]
                    np.dot(part.T, part, gram)
                    for a in range(rank):
                        for b in range(rank):
                            hessians[i, a, b] += sign * weight * gram[a, b]
                    count = 0
