"""Counts over all pairs of a graph on a torch device, as :mod:`symrelu.kernels.neighbor_counts` has them.

A few rows of X = left right^T are formed at a time, and only counts come back to the host.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symrelu.kernels.neighbor_counts import Edges, PairCounts, Uncertainty
from symrelu.operators.torch_device import checked_device
from symrelu.operators.torch_precision import undisturbed  # explains what is missing
from symrelu.operators.torch_rows import numbers_at_once, tensor

import torch  # isort: skip


@undisturbed
def other_scores(
    left: np.ndarray, right: np.ndarray, edges: Edges, levels: np.ndarray, *, device: Any = "cuda"
) -> tuple[np.ndarray, float]:
    """Count the scores of the pairs without an edge, on a device.

    Parameters
    ----------
    left, right : ndarray of shape (n, rank)
        Both float32 or both float64.
    edges : Edges
    levels : ndarray of shape (n_levels,)
        Equally spaced and ascending.
    device : str or torch.device, default="cuda"

    Returns
    -------
    counts : ndarray of int64 of shape (n_levels,)
        The number of ordered pairs with a score above each level.
    largest : float
        The largest score.
    """
    there, n = checked_device(device), len(left)
    rows, columns = tensor(left, there), tensor(right, there)
    neighbours = tensor(edges.indices, there)
    counts = torch.zeros(len(levels), dtype=torch.int64, device=there)
    largest = torch.full((), -math.inf, dtype=rows.dtype, device=there)
    height = max(1, numbers_at_once(there) // n)
    for start in range(0, n, height):
        stop = min(start + height, n)
        X = rows[start:stop] @ columns.T
        X[:, start:stop].fill_diagonal_(-math.inf)  # a node is not its own neighbour
        degrees = tensor(np.diff(edges.indptr[start : stop + 1]), there)
        own = torch.repeat_interleave(torch.arange(stop - start, device=there), degrees)
        X[own, neighbours[edges.indptr[start] : edges.indptr[stop]]] = -math.inf
        largest = torch.maximum(largest, X.max())  # NaN if there is one
        counts += _in_bins(X, levels)
    # A score in bin k is above the levels 0 to k.
    return counts.flip(0).cumsum(0).flip(0).cpu().numpy(), float(largest)


def _in_bins(X: Any, levels: np.ndarray) -> Any:
    """Return how many scores are between each level and the next, the last without end."""
    first, spacing = float(levels[0]), float(levels[1] - levels[0])
    # torch would round the level to the type of X: a lower one lets no score through that is above it.
    lower = float(np.nextafter(np.array(first, str(X.dtype).removeprefix("torch.")), -np.inf))
    # Not below or equal, so that NaN counts as above every level.
    scores = X[~X.le(lower)].double()
    scores = scores[~(scores <= first)]
    places = ((scores - first) / spacing).nan_to_num_(nan=math.inf, posinf=math.inf)
    # A score on a level is not above it.
    bins = places.clamp_(max=len(levels)).ceil_().sub_(1).clamp_(min=0)
    return torch.bincount(bins.long(), minlength=len(levels))


@undisturbed
def certain_counts(
    left: np.ndarray,
    right: np.ndarray,
    edges: Edges,
    threshold: float,
    uncertainty: Uncertainty,
    *,
    device: Any = "cuda",
) -> PairCounts:
    """Compare the scores of all pairs with a threshold, each pair once, on a device.

    Parameters
    ----------
    left, right : ndarray of float64 of shape (n, rank)
        X must be symmetric up to rounding.
    edges : Edges
    threshold : float
    uncertainty : Uncertainty
        A pair counts as right only if its score is on the right side of the threshold by more than this.
    device : str or torch.device, default="cuda"

    Returns
    -------
    counts : PairCounts
    """
    there, n = checked_device(device), len(left)
    rows, columns = tensor(left, there), tensor(right, there)
    norms = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
    # Otherwise some scores may overflow or be NaN.
    certain = norms[0].max() * norms[1].max() < uncertainty.largest and math.isfinite(threshold)
    of_rows, of_columns = (tensor(lengths, there) for lengths in norms)
    upper = edges.indices > edges.rows
    i, j = edges.rows[upper], edges.indices[upper]
    found, start = [], 0
    while start < n:
        stop = min(start + max(1, numbers_at_once(there) // (n - start)), n)
        part = slice(*np.searchsorted(i, [start, stop]))
        places = tensor((i[part] - start) * (n - start) + j[part] - start, there)
        # Pairs (i, j) with j > i are compared, so the columns begin at ``start`` too.
        beyond = (rows[start:stop] @ columns[start:].T).neg_().add_(threshold)
        scores = beyond.view(-1)
        scores[places] = -scores[places]
        lengths = of_rows[start:stop, None], of_columns[None, start:]
        beyond.addcmul_(*lengths, value=-uncertainty.relative).sub_(uncertainty.absolute)
        if not certain:
            unknown = ~(lengths[0] * lengths[1] < uncertainty.largest) | beyond.isnan()
            beyond.masked_fill_(unknown, -math.inf)
        seen = torch.ones((stop - start, stop - start), dtype=torch.bool, device=there).tril_()
        beyond[:, : stop - start].masked_fill_(seen, math.inf)
        wrong, missing = (torch.count_nonzero(part <= 0) for part in (scores, scores[places]))
        found.append((missing, wrong - missing, beyond.min()))
        start = stop
    missing, extra, margins = (torch.stack(parts) for parts in zip(*found, strict=True))
    return PairCounts(int(missing.sum()), int(extra.sum()), float(margins.min()))
