"""Scores of linked and other pairs, and the metrics of hidden links."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs import as_similarity
from symrelu.plots.factors import check_fitted
from symrelu.plots.figures import PALETTE, shown_axes
from symrelu.validation import check_integer, random_generator

_STREAM = 6  # random stream of drawn pairs: independent of the fits with the same seed
_BINS = 60
_METRICS = {
    "auc_uniform": "AUC, uniform",
    "auc_degree": "AUC, by degree",
    "average_precision": "average precision",
    "hits_at_50": "Hits@50",
    "mrr": "MRR",
}


def plot_link_scores(
    model: Any,
    ax: Any | None = None,
    *,
    links: Any | None = None,
    hidden: Any | None = None,
    n_pairs: int = 20_000,
    random_state: Any = 0,
) -> Any:
    """Plot the distribution of the scores of linked pairs, of hidden links, and of pairs without a link.

    Parameters
    ----------
    model : LinkPredictor, Solution or another fitted estimator with ``score_pairs``
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.
    links : sparse or dense matrix of shape (n, n), or a graph, optional
        The links that were fitted; by default ``model.known_``.
    hidden : array-like of int of shape (count, 2), optional
        Pairs that are links but were not fitted. They do not count as pairs without a link.
    n_pairs : int, default=20,000
        Largest number of pairs of each kind, drawn at random if there are more.
    random_state : None, int, Generator or RandomState, default=0
        Seed of the draw.

    Returns
    -------
    ax : matplotlib Axes
    """
    check_integer("n_pairs", n_pairs, 1)
    links = getattr(model, "known_", None) if links is None else as_similarity(links).matrix
    if links is None:
        if not hasattr(model, "embedding_"):
            check_fitted(model)
        raise ValueError(f"{type(model).__name__} does not keep its links: pass links=M.")
    rng = random_generator(random_state, _STREAM)
    kinds = _pairs(sparse.csr_array(links), hidden, n_pairs, rng)
    scores = {name: np.asarray(model.score_pairs(*pairs), float) for name, pairs in kinds.items() if pairs.size}
    ax = shown_axes(figsize=(6, 4)) if ax is None else ax
    everything = np.concatenate(list(scores.values()))
    positive = bool((everything > 0).all())
    edges = _edges(everything, positive)
    styles = {
        "pairs without a link": (PALETTE[6], ":"),
        "links": (PALETTE[0], "-"),
        "hidden links": (PALETTE[5], "--"),
    }
    for name, values in scores.items():
        colour, style = styles[name]
        weights = np.full(len(values), 1 / len(values))
        ax.hist(
            values,
            edges,
            weights=weights,
            histtype="step",
            color=colour,
            linestyle=style,
            linewidth=1.8,
            label=f"{name} ({len(values)})",
        )
    if positive:
        ax.set_xscale("log")
    ax.set_xlabel("score")
    ax.set_ylabel("share of the pairs in a bin")
    ax.legend(frameon=False)
    return ax


def plot_link_metrics(evaluation: Any, ax: Any | None = None) -> Any:
    """Plot the metrics of each split of an evaluation, and their means.

    Parameters
    ----------
    evaluation : LinkEvaluation
    ax : matplotlib Axes, optional
        Where to draw; a new pyplot figure by default.

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = shown_axes(figsize=(6, 3.2)) if ax is None else ax
    for place, name in enumerate(_METRICS):
        values = np.array([getattr(split, name) for split in evaluation.splits])
        if np.isnan(values).any():  # Hits@50 needs 50 negatives
            ax.text(0.02, place, "not defined", va="center", color="0.4")
            continue
        ax.plot(values, np.full(len(values), place), "o", color=PALETTE[4], alpha=0.8)
        ax.plot([values.mean()], [place], "|", color="black", markersize=16, markeredgewidth=2)
        ax.annotate(
            f"{values.mean():.3f}", (values.mean(), place), (0, 9), textcoords="offset points", ha="center"
        )
    ax.set_yticks(range(len(_METRICS)), list(_METRICS.values()))
    ax.set_ylim(len(_METRICS) - 0.4, -0.7)
    ax.set_xlim(0, 1.03)
    ax.grid(True, axis="x", alpha=0.25)
    ax.set_title(f"{evaluation.n_hidden} of {evaluation.n_links} links hidden, {len(evaluation.splits)} splits")
    return ax


def _pairs(links: Any, hidden: Any | None, most: int, rng: Any) -> dict[str, np.ndarray]:
    """Return pairs of each kind, of shape (2, count)."""
    n = links.shape[0]
    upper = sparse.coo_array(sparse.triu(links, k=1))
    linked = np.stack([upper.row, upper.col]).astype(np.int64)[:, upper.data != 0]
    kinds = {"pairs without a link": np.empty((2, 0), np.int64), "links": _some(linked, most, rng)}
    known = [linked[0] * n + linked[1]]
    if hidden is not None:
        pairs = np.sort(np.asarray(hidden), axis=1).T
        if pairs.shape[0] != 2:
            raise ValueError(f"hidden must have shape (count, 2), got {np.asarray(hidden).shape}.")
        kinds["hidden links"] = _some(pairs, most, rng)
        known.append(pairs[0] * n + pairs[1])
    first, second = np.sort((rng.random((2, 2 * most)) * n).astype(np.int64), axis=0)
    others = np.unique((first * n + second)[first < second])
    others = others[~np.isin(others, np.concatenate(known))]
    kinds["pairs without a link"] = _some(np.stack(np.divmod(others, n)), most, rng)
    return kinds


def _some(pairs: np.ndarray, most: int, rng: Any) -> np.ndarray:
    return pairs if pairs.shape[1] <= most else pairs[:, np.sort(rng.permutation(pairs.shape[1])[:most])]


def _edges(scores: np.ndarray, logarithmic: bool) -> np.ndarray:
    """Return the edges of the bins."""
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        return np.linspace(low - 0.5, high + 0.5, 2) if not logarithmic else np.array([low / 2, high * 2])
    return np.geomspace(low, high, _BINS + 1) if logarithmic else np.linspace(low, high, _BINS + 1)
