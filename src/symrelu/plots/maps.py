"""Maps of the items, coloured by groups or numbers, with links and names."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs import as_similarity
from symrelu.plots.factors import check_fitted
from symrelu.plots.figures import PALETTE, shown_axes
from symrelu.plots.labels import place_names, write_at_centers
from symrelu.plots.planar_map import checked_positions, planar_map

MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # with the colours: 56 groups that differ
MOST_IN_LEGEND = 12
MOST_EDGES = 20_000
_ALL_NAMES = 200  # items up to which the names that an estimator has are written without being asked for
_GREY = "0.6"


def plot_map(
    model: Any,
    ax: Any | None = None,
    *,
    labels: Any | None = None,
    values: Any | None = None,
    edges: Any | None = None,
    names: Any | None = None,
    positions: Any | None = None,
    random_state: Any = 0,
) -> Any:
    """Draw the map of the items.

    Parameters
    ----------
    model : Solution, fitted model or estimator, or array-like of shape (n, rank)
        Anything with a factor, or the factor U itself. Ignored if ``positions`` are passed.
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.
    labels : array-like of shape (n,), optional
        Groups of the items, numbers or texts. Up to 56 groups differ in colour or marker; the legend has the 12
        largest.
    values : array-like of shape (n,), optional
        A number for each item, shown by its colour. NaN is grey. Not together with ``labels``.
    edges : sparse or dense matrix of shape (n, n), or a graph, optional
        Its nonzero entries are drawn as lines, at most 20,000.
    names : array-like of shape (n,), bool, optional
        Names of the items, as many as fit without overlap. By default those of the input of ``fit``, if there
        are at most 200 items; True writes them for more items, False never.
    positions : array-like of shape (n, 2), optional
        Places of the items, as :func:`planar_map` returns them, which is called by default.
    random_state : None, int, Generator or RandomState, default=0
        Seed of the map.

    Returns
    -------
    ax : matplotlib Axes
    """
    if labels is not None and values is not None:
        raise ValueError("Items are coloured by labels or by values: pass one of them.")
    places = _places(model, positions, random_state)
    n = len(places)
    labels = None if labels is None else _column("labels", labels, n)
    values = None if values is None else _column("values", values, n).astype(np.float64)
    links = None if edges is None else _links(edges, n)
    texts = _names(model, names, n)
    ax = shown_axes(figsize=(7, 5.5)) if ax is None else ax
    if links is not None:
        _draw_links(ax, places, links)
    style = {"s": float(np.clip(12_000 / n, 2, 40)), "linewidths": 0, "rasterized": n > 5000, "zorder": 2}
    if labels is not None:
        _draw_groups(ax, places, labels, style)
    elif values is not None:
        _draw_values(ax, places, values, style)
    else:
        ax.scatter(*places.T, color=PALETTE[0], **style)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    if texts is not None:
        place_names(ax, places, texts)
    return ax


def plot_clusters(
    model: Any,
    ax: Any | None = None,
    *,
    labels: Any | None = None,
    positions: Any | None = None,
    **options: Any,
) -> Any:
    """Draw the map with the clusters found, each with its number at its centre.

    Parameters
    ----------
    model : SymReLUClustering, or anything that :func:`plot_map` takes
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.
    labels : array-like of shape (n,), optional
        Clusters of the items; by default ``model.labels_``.
    positions : array-like of shape (n, 2), optional
        As in :func:`plot_map`.
    **options
        Further options of :func:`plot_map`.

    Returns
    -------
    ax : matplotlib Axes
    """
    if labels is None:
        labels = getattr(model, "labels_", None)
    if labels is None:
        if not hasattr(model, "embedding_"):
            check_fitted(model)
        raise ValueError(f"{type(model).__name__} has no labels_: pass labels, one for each item.")
    places = _places(model, positions, options.pop("random_state", 0))
    ax = plot_map(model, ax, labels=labels, positions=places, **options)
    if ax.get_legend() is not None:
        ax.get_legend().remove()  # the numbers in the map say the same
    write_at_centers(ax, places, np.asarray(labels))
    count = len(np.unique(np.asarray(labels)))
    method = f" by {model.method_}" if hasattr(model, "method_") else ""
    ax.set_title(f"{count} clusters{method}")
    return ax


def _places(model: Any, positions: Any | None, random_state: Any) -> np.ndarray:
    return planar_map(model, random_state=random_state) if positions is None else checked_positions(positions)


def _column(name: str, column: Any, n: int) -> np.ndarray:
    array = np.asarray(column)
    if array.shape != (n,):
        raise ValueError(f"{name} must have one entry for each of the {n} items, got shape {array.shape}.")
    return array


def _links(edges: Any, n: int) -> np.ndarray:
    """Return the ends of the links, of shape (count, 2)."""
    matrix = sparse.coo_array(as_similarity(edges).matrix)
    if matrix.shape != (n, n):
        raise ValueError(f"edges must have shape {(n, n)}, like the factor, got {matrix.shape}.")
    once = (matrix.row < matrix.col) & (matrix.data != 0)
    if once.sum() > MOST_EDGES:
        raise ValueError(
            f"edges must have at most {MOST_EDGES} pairs, got {once.sum()}: their lines would cover the map. "
            "Leave them out, or pass the strongest ones."
        )
    return np.column_stack([matrix.row[once], matrix.col[once]])


def _names(model: Any, names: Any | None, n: int) -> np.ndarray | None:
    known = getattr(model, "node_names_", None)
    if names is False or (names is None and (known is None or n > _ALL_NAMES)):
        return None
    if names is None or names is True:
        if known is None:
            raise ValueError("names=True requires a model with node_names_. Pass the names themselves.")
        names = known
    array = np.empty(len(names), dtype=object)
    array[:] = [str(name) for name in names]  # names may be tuples, which NumPy would take for rows
    return _column("names", array, n)


def _draw_links(ax: Any, places: np.ndarray, links: np.ndarray) -> None:
    from matplotlib.collections import LineCollection

    alpha = float(np.clip(200 / max(len(links), 1), 0.08, 0.5))
    ax.add_collection(LineCollection(places[links], colors=_GREY, linewidths=0.5, alpha=alpha, zorder=1))


def _draw_values(ax: Any, places: np.ndarray, values: np.ndarray, style: dict[str, Any]) -> None:
    known = np.isfinite(values)
    ax.scatter(*places[~known].T, color=_GREY, **style)
    drawn = ax.scatter(*places[known].T, c=values[known], cmap="viridis", **style)
    ax.figure.colorbar(drawn, ax=ax, shrink=0.8)


def _draw_groups(ax: Any, places: np.ndarray, labels: np.ndarray, style: dict[str, Any]) -> None:
    groups, members, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    listed = set(np.argsort(-sizes, kind="stable")[:MOST_IN_LEGEND].tolist())
    for k, group in enumerate(groups):
        ax.scatter(
            *places[members == k].T,
            color=PALETTE[k % len(PALETTE)],
            marker=MARKERS[k // len(PALETTE) % len(MARKERS)],
            label=_literal(group) if k in listed else None,
            **style,
        )
    if len(groups) > 1:
        more = len(groups) - len(listed)
        title = f"the largest {len(listed)}\nof {len(groups)} groups" if more > 0 else None
        legend = ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, title=title)
        for handle in legend.legend_handles:
            handle.set_sizes([30])


def _literal(group: Any) -> str:
    """Return a label of the legend as it is: matplotlib leaves out those with an underscore first."""
    text = str(group).replace("$", r"\$")
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") else text
