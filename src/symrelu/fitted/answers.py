"""Which machine answers queries and counts pairs: this one, or the torch device that a backend names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from symrelu.kernels import neighbor_counts
from symrelu.operators import operator_class

_DEVICES = {"torch": "cpu", "cuda": "cuda"}


def answers_of(model: Any, backend: str) -> Any:
    """Return an object with the queries of a model: ``top_k``, ``top_links`` and those of checked new rows.

    A model that was fitted on a GPU may be loaded where there is none. It then answers itself, with the same
    results.

    Parameters
    ----------
    model : FittedModel
    backend : str
        With "torch" and "cuda", a torch device answers.

    Returns
    -------
    answers : FittedModel or DeviceAnswers
    """
    if backend not in _DEVICES or not _is_available(backend):
        return model
    from symrelu.fitted.on_device import DeviceAnswers

    return DeviceAnswers(model, _DEVICES[backend])


class PairCounters(NamedTuple):
    """Counts over all pairs, with the arguments and results of :mod:`symrelu.kernels.neighbor_counts`."""

    other_scores: Callable[..., Any]
    certain_counts: Callable[..., Any]


def counters_for(backend: str) -> PairCounters:
    """Return the functions that count pairs for a search with this backend."""
    if backend not in _DEVICES:
        return PairCounters(neighbor_counts.other_scores, neighbor_counts.certain_counts)
    from symrelu.fitted import counts_on_device

    device = _DEVICES[backend]
    counters = counts_on_device.other_scores, counts_on_device.certain_counts
    return PairCounters(*(partial(counter, device=device) for counter in counters))


def _is_available(backend: str) -> bool:
    try:
        operator_class(backend).check_available()
    except (ImportError, ValueError):  # no torch, or no GPU
        return False
    return True
