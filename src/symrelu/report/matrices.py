"""M and its model as two pictures of the same order, without an array of n x n numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from symrelu.kernels.threads import single_threaded_blas
from symrelu.plots import binned
from symrelu.report.encoding import quantised

BINS = 120  # cells along a side
_ROWS = 128  # of the model at once, which stay in the cache of the processor
DECADES = 3.0  # of the colour scale, as in symrelu.plots.plot_matrices


def matrix_order(positions: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
    """Return the nodes in an order that puts similar ones together: by cluster, then by place on the map.

    Parameters
    ----------
    positions : ndarray of shape (n, 2)
    labels : ndarray of int of shape (n,), or None
        From 0; nodes with -1 have no cluster, and come last.

    Returns
    -------
    order : ndarray of int of shape (n,)
    """
    x, y = (quantised(positions).astype(np.int64) >> 8).T
    # Bits of x and y in turn: a curve that fills the plane and leaves a square only when it has seen all of it.
    curve = sum(((x >> k & 1) << (2 * k)) | ((y >> k & 1) << (2 * k + 1)) for k in range(8))
    if labels is None:
        return np.lexsort((curve,))
    return np.lexsort((curve, labels, labels < 0))


def binned_pair(
    M: Any, predicted: Callable[[np.ndarray], np.ndarray], order: np.ndarray, bins: int, diagonal: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of M and of its model over bins x bins cells.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
    predicted : function of an array of rows that returns an array of shape (len(rows), n)
    order : ndarray of int of shape (n,)
    bins : int
        At most n.
    diagonal : {"fit", "ignore"}
        "ignore" leaves out the diagonal of the model, as that of M is.

    Returns
    -------
    M_means, model_means : ndarray of shape (bins, bins)
    """
    n = len(order)
    ends = -(-np.arange(bins + 1) * n // bins)  # of the cells in the order, as in symrelu.plots.binned
    sums = np.zeros((bins, n))
    with single_threaded_blas():  # threads would wait for each other longer than such small products take
        for cell, (begin, end) in enumerate(pairwise(ends)):
            for start in range(begin, end, _ROWS):
                items = order[start : min(start + _ROWS, end)]
                block = predicted(items)
                if diagonal == "ignore":
                    block[np.arange(len(items)), items] = 0
                sums[cell] += np.maximum(block, 0, out=block).sum(axis=0)
    total = np.add.reduceat(sums[:, order], ends[:-1], axis=1)
    sizes = np.diff(ends)
    return binned(M, order, bins), total / np.outer(sizes, sizes)
