"""Queries of a fitted model that are shared out among the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from symrelu.fitted.models import check_nodes
from symrelu.operators.block_tasks import on_worker
from symrelu.validation import check_rows

_PARTS_OF_A_WORKER = 4  # rows take different times


def transform(model: Any, M_new: Any, mask: Any | None = None, *, client: Any | None = None) -> np.ndarray:
    """Return the factor rows of new items, computed on a cluster.

    Parameters
    ----------
    model : SymmetricReLU or Solution
        With the method ``transform``.
    M_new : sparse matrix, sparse array or array-like of shape (n_new, n)
        Similarities of the new items to the fitted ones.
    mask : sparse or dense bool matrix of shape (n_new, n), optional
        True where a similarity is unobserved.
    client : distributed.Client or str, optional
        A client, or the address of a scheduler. By default the current client.

    Returns
    -------
    U_new : ndarray of shape (n_new, rank)
    """
    model = getattr(model, "model", model)
    M_new, mask = check_rows(M_new, model.n, mask)

    def arguments(part: slice) -> tuple[Any, ...]:
        return M_new[part], None if mask is None else mask[part]

    parts = _over_rows("transform", _transform_part, model, M_new.shape[0], arguments, client)
    return np.concatenate([np.empty((0, model.rank), model.dtype), *parts])


def top_k(
    model: Any, nodes: Any, k: int, *, exclude: Any | None = None, client: Any | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k items nearest to each node, searched on a cluster.

    Parameters
    ----------
    model : FittedModel or Solution
    nodes : array-like of int of shape (count,)
    k : int
    exclude : sparse or dense matrix of shape (n, n), optional
        Pairs that are left out, as for the method ``top_k``.
    client : distributed.Client or str, optional
        A client, or the address of a scheduler. By default the current client.

    Returns
    -------
    items, scores : ndarray of shape (count, k)
    """
    model = getattr(model, "model", model)
    nodes, exclude = check_nodes(nodes, k, exclude, model.n)

    def arguments(part: slice) -> tuple[Any, ...]:
        if exclude is None:
            return nodes[part], k, None
        kept = exclude[nodes[part]]  # only these rows are sent
        return nodes[part], k, kept

    parts = _over_rows("top-k", _top_k_part, model, len(nodes), arguments, client)
    if not parts:
        found: tuple[np.ndarray, np.ndarray] = model.top_k(nodes, k)
        return found
    items, scores = zip(*parts, strict=True)
    return np.concatenate(items), np.concatenate(scores)


def _over_rows(
    name: str,
    function: Callable[..., Any],
    model: Any,
    count: int,
    arguments: Callable[[slice], tuple[Any, ...]],
    client: Any | None,
) -> list[Any]:
    """Return the results of a function of the model for consecutive parts of so many rows."""
    from symrelu.operators.cluster import Cluster

    cluster = Cluster(client)
    try:
        workers = cluster.workers()
        parts = [part for part in _parts(count, _PARTS_OF_A_WORKER * len(workers)) if part.stop > part.start]

        def make(numbers: Sequence[int], attempt: int) -> dict[int, Any]:
            there = list(cluster.workers().items())
            sent = cluster.broadcast(model)
            found = {}
            for k in numbers:
                worker, threads = there[k % len(there)]
                found[k] = cluster.submit(
                    name, function, sent, *arguments(parts[k]), worker=worker, threads=threads
                )
            return found

        return cluster.run_round(make, len(parts))
    finally:
        cluster.close()


def _parts(count: int, parts: int) -> list[slice]:
    ends = [count * k // parts for k in range(parts + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


@on_worker
def _transform_part(model: Any, M_new: Any, mask: Any | None) -> np.ndarray:
    rows: np.ndarray = model.transform_checked(M_new, mask)
    return rows


@on_worker
def _top_k_part(model: Any, nodes: np.ndarray, k: int, rows: Any | None) -> tuple[np.ndarray, np.ndarray]:
    from scipy import sparse

    if rows is None:
        found: tuple[np.ndarray, np.ndarray] = model.top_k(nodes, k)
        return found
    entries = rows.tocoo()
    places = (nodes[entries.coords[0]], entries.coords[1])
    found = model.top_k(nodes, k, exclude=sparse.csr_array((entries.data, places), shape=(model.n, model.n)))
    return found
