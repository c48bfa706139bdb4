"""Which machine answers the queries of a model: this one, or the torch device that its backend names."""

from __future__ import annotations

from typing import Any

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


def _is_available(backend: str) -> bool:
    try:
        operator_class(backend).check_available()
    except (ImportError, ValueError):  # no torch, or no GPU
        return False
    return True
