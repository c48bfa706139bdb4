"""Queries of a fitted model on a torch device, such as a GPU. They return what the methods return.

Rows of X are formed a few at a time, in the type of the factor, so that no query needs much memory. Scores may
differ from those of the methods in their last digits, because a device adds up in another order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from symrelu.fitted.certificate import Certificate
from symrelu.fitted.certificate import certify as certify_vectors
from symrelu.fitted.counts_on_device import certain_counts
from symrelu.fitted.link_scores import LinkScores, check_links
from symrelu.fitted.models import SymmetricReLU, check_nodes
from symrelu.fitted.rows_on_device import transform_rows
from symrelu.kernels.scores import NO_ITEM
from symrelu.kernels.threads import slices
from symrelu.operators.torch_device import checked_device
from symrelu.operators.torch_precision import undisturbed  # explains what is missing
from symrelu.operators.torch_rows import numbers_at_once, tensor
from symrelu.validation import check_rows

import torch  # isort: skip

__all__ = ["certify", "top_k", "top_links", "transform"]


def transform(model: Any, M_new: Any, mask: Any | None = None, *, device: Any = "cuda") -> np.ndarray:
    """Return the factor rows of new items, computed on a device.

    Rows with many minima, of which the one of least norm is wanted, are finished on the host. With
    ``support="at_least"`` there can be many of them.

    Parameters
    ----------
    model : SymmetricReLU or Solution
        With the method ``transform``.
    M_new : sparse matrix, sparse array or array-like of shape (n_new, n)
        Similarities of the new items to the fitted ones.
    mask : sparse or dense bool matrix of shape (n_new, n), optional
        True where a similarity is unobserved.
    device : str or torch.device, default="cuda"

    Returns
    -------
    U_new : ndarray of shape (n_new, rank)
    """
    model = getattr(model, "model", model)
    if not isinstance(model, SymmetricReLU):
        raise TypeError(f"transform needs a SymmetricReLU, which has rows for new items, got {model!r}.")
    answers = DeviceAnswers(model, checked_device(device))
    return answers.transform_checked(*check_rows(M_new, model.n, mask))


@undisturbed
def top_k(
    model: Any, nodes: Any, k: int, *, exclude: Any | None = None, device: Any = "cuda"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k items nearest to each node, searched on a device.

    Parameters
    ----------
    model : FittedModel or Solution
    nodes : array-like of int of shape (count,)
    k : int
    exclude : sparse or dense matrix of shape (n, n), optional
        Pairs that are left out, as for the method ``top_k``.
    device : str or torch.device, default="cuda"

    Returns
    -------
    items, scores : ndarray of shape (count, k)
        As the method ``top_k`` returns them: ties go to the lower index.
    """
    model = getattr(model, "model", model)
    nodes, exclude = check_nodes(nodes, k, exclude, model.n)
    scores_of = _Scores(model, checked_device(device))
    there, dtype = scores_of.device, scores_of.dtype
    items, scores = np.full((len(nodes), k), NO_ITEM, np.int64), np.full((len(nodes), k), -np.inf, dtype)
    found = min(k, model.n)
    for part in slices(len(nodes), max(1, numbers_at_once(there) // model.n)):
        rows = tensor(nodes[part], there).long()
        X = scores_of.block(rows, slice(None))
        X.nan_to_num_(nan=-math.inf, posinf=math.inf, neginf=-math.inf)  # NaN is never among the largest
        X[torch.arange(len(rows), device=there), rows] = -math.inf  # a node is not its own neighbour
        if exclude is not None:
            X[_places(exclude[nodes[part]], there)] = -math.inf
        best = _largest(X, found)
        items[part, :found], scores[part, :found] = (kind.cpu().numpy() for kind in best)
    return items, scores.astype(model.dtype, copy=False)


@undisturbed
def top_links(
    model: LinkScores, k: int, *, exclude: Any | None = None, device: Any = "cuda"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k pairs with the largest scores, searched on a device.

    Parameters
    ----------
    model : LinkScores
        Such as ``link_scores_`` of a fitted :class:`~symrelu.LinkPredictor`.
    k : int
    exclude : sparse or dense matrix of shape (n, n), optional
        Pairs that are left out, as for the method ``top_links``: to leave out the links that are known,
        ``known_`` of the predictor.
    device : str or torch.device, default="cuda"

    Returns
    -------
    pairs : ndarray of int of shape (k, 2)
        As the method ``top_links`` returns them: ties go to the lower indices.
    scores : ndarray of shape (k,)
    """
    if not isinstance(model, LinkScores):
        raise TypeError(
            f"top_links needs a LinkScores, got {model!r}. Pass link_scores_ of a fitted LinkPredictor."
        )
    excluded, n = check_links(k, exclude, model.n), model.n
    scores_of = _Scores(model, checked_device(device))
    there = scores_of.device
    links = torch.empty(0, dtype=torch.int64, device=there)  # (i, j) as i * n + j
    scores = torch.empty(0, dtype=scores_of.left.dtype, device=there)
    start = 0
    while start < n - 1:
        stop = min(start + max(1, numbers_at_once(there) // (n - start)), n)
        X = scores_of.block(slice(start, stop), slice(start, None))
        # Only pairs i < j: the columns begin at ``start`` too.
        own = torch.ones((stop - start, stop - start), dtype=torch.bool, device=there).tril_()
        X[:, : stop - start].masked_fill_(own, -math.inf)
        if excluded is not None:
            X[_places(excluded[start:stop, start:], there)] = -math.inf
        # Pairs are visited in the order of their indices, so a score equal to the k-th best loses the tie.
        least = scores[-1] if len(scores) == k else -math.inf
        better = torch.nonzero(X.view(-1) > least)[:, 0]
        if len(better):
            best, found = _largest(X.view(-1)[better][None], min(k, len(better)))
            places = better[best[0]]
            rows, columns = places // X.shape[1], places % X.shape[1]
            links = torch.cat([links, (start + rows) * n + start + columns])
            scores, order = torch.cat([scores, found[0]]).sort(descending=True, stable=True)
            links, scores = links[order][:k], scores[:k]
        start = stop
    pairs = np.stack(np.divmod(links.cpu().numpy(), n), axis=1)
    return pairs, scores.cpu().numpy().astype(model.dtype, copy=False)


def certify(vectors: Any, *, device: Any = "cuda") -> Certificate:
    """Compare all pairs of nodes with their graph, on a device.

    Parameters
    ----------
    vectors : NeighborVectors
        With the method ``certify``.
    device : str or torch.device, default="cuda"

    Returns
    -------
    certificate : Certificate
        Computed in float64, like that of the method: only the last digits of its margin may differ.
    """
    count = partial(certain_counts, device=checked_device(device))
    return certify_vectors(
        vectors.item_vectors, vectors.signature, vectors.graph, vectors.threshold, count=count
    )


@dataclass(frozen=True)
class DeviceAnswers:
    """A model whose queries a device answers, with the methods of the model that checked input is passed to.

    Parameters
    ----------
    model : FittedModel
        For ``transform_checked`` and ``score_checked`` a SymmetricReLU, for ``top_links`` a LinkScores.
    device : str or torch.device
    """

    model: Any
    device: Any

    def top_k(self, nodes: Any, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the k items nearest to each node."""
        return top_k(self.model, nodes, k, exclude=exclude, device=self.device)

    def top_links(self, k: int, *, exclude: Any | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the k pairs with the largest scores."""
        return top_links(self.model, k, exclude=exclude, device=self.device)

    def transform_checked(self, M_new: Any, mask: Any | None) -> np.ndarray:
        """Return the factor rows of new items."""
        return transform_rows(M_new, **self.model.of_rows, mask=mask, device=checked_device(self.device))

    def score_checked(self, M_new: Any, mask: Any | None) -> float:
        """Return the explained share of new rows, whose factor rows the device computes."""
        return self.model.explained(M_new, self.transform_checked(M_new, mask), mask)


class _Scores:
    """The scores of a model on a device, of which a block is formed at a time.

    Parameters
    ----------
    model : FittedModel
    device : torch.device
    """

    def __init__(self, model: Any, device: Any) -> None:
        self.device = device
        self.dtype = np.float32 if model.dtype == np.float32 else np.float64
        *factors, scales = model.scoring
        self.left, self.right = (tensor(factor.astype(self.dtype), device) for factor in factors)
        self.scales = None if scales is None else tensor(scales.astype(self.dtype), device)

    def block(self, rows: Any, columns: Any) -> Any:
        """Return the scores of some rows with some columns."""
        X = self.left[rows] @ self.right[columns].T
        if self.scales is None:
            return X
        # The scales first, as on the host: their product is the same for (i, j) and (j, i).
        return _smooth(X).mul_(self.scales[rows, None] * self.scales[columns])


def _places(matrix: Any, device: Any) -> tuple[Any, Any]:
    """Return the rows and columns of the nonzero entries of a csr_array."""
    rows, columns = (tensor(places, device).long() for places in matrix.nonzero())
    return rows, columns


def _smooth(X: Any) -> Any:
    """Return (X + sqrt(X^2 + 1)) / 2, by the formula of :func:`symrelu.kernels.scores.smooth_value`."""
    root = (X * X + 1).sqrt_().add_(X.abs())
    return torch.where(X >= 0, root / 2, 0.5 / root)


def _largest(X: Any, k: int) -> tuple[Any, Any]:
    """Return the columns and values of the k largest entries of each row; ties go to the lower column."""
    values, items = torch.topk(X, min(k + 1, X.shape[1]), dim=1)
    last, items = values[:, k - 1], items[:, :k]
    if values.shape[1] > k:
        # Of equal entries, topk may take any.
        tied = torch.nonzero((values[:, k] == last) & (last > -math.inf))[:, 0]
        if len(tied):
            items[tied] = _first_of_ties(X[tied], last[tied], k)
    items = items.sort(dim=1).values
    # Adding zero makes zeros of both signs equal: some sorts put the negative ones last.
    scores, order = (X.gather(1, items) + 0.0).sort(dim=1, descending=True, stable=True)
    return torch.where(scores > -math.inf, items.gather(1, order), NO_ITEM), scores


def _first_of_ties(X: Any, last: Any, k: int) -> Any:
    """Return the columns of the k largest entries, of those equal to the k-th the first ones."""
    above, equal = X.gt(last[:, None]), X.eq(last[:, None])
    room = k - above.sum(dim=1, keepdim=True)
    chosen = above | (equal & (equal.cumsum(dim=1, dtype=torch.int32) <= room))
    return torch.nonzero(chosen)[:, 1].view(len(X), k)
