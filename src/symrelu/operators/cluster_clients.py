"""Clients of Dask clusters, and whether their workers have the symrelu of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import symrelu
from symrelu.operators.base import EvaluationFailed
from symrelu.operators.cluster_calls import SYNCHRONOUS

try:
    import distributed
except ImportError as missing:
    raise ImportError("backend='dask' needs dask: pip install 'symrelu[dask]'.") from missing

_CONNECTING = 10.0  # seconds to reach a scheduler

_ADDRESS_ADVICE = "Create a distributed.Client first, or pass it or the address of a scheduler as client."
# Evaluated on a worker by a function of Python itself, because symrelu may be missing there.
VERSION_THERE = "__import__('symrelu').__version__"


class ClusterError(EvaluationFailed):
    """A cluster cannot continue. The best factor so far is in ``solution``, and in the checkpoint."""


def check_client(client: Any) -> None:
    """Raise unless a client is None, the address of a scheduler or a synchronous distributed.Client.

    Parameters
    ----------
    client : object

    Returns
    -------
    None
    """
    if client is not None and not isinstance(client, (str, distributed.Client)):
        raise TypeError(
            "client must be a distributed.Client, the address of a scheduler or None, "
            f"got {type(client).__name__}. {_ADDRESS_ADVICE}"
        )
    # Dask says so of a client whose loop runs in this thread or has ended; from another thread it can be used.
    if isinstance(client, distributed.Client) and client.asynchronous:
        raise ValueError(SYNCHRONOUS)


def client_of(client: Any | None) -> Any:
    """Return a client that was checked, a new one of an address, or the current one.

    Parameters
    ----------
    client : Client, str or None

    Returns
    -------
    client : Client
    """
    if client is None:
        return _current_client()
    return _connected(client) if isinstance(client, str) else client


def _connected(address: str) -> Any:
    try:
        return distributed.Client(address, set_as_default=False, timeout=_CONNECTING)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"No scheduler answers at {address!r} ({error}). Start one (dask scheduler), or pass the right "
            "address."
        ) from error


def _current_client() -> Any:
    try:
        client = distributed.default_client()
    except ValueError as error:
        missing = "backend='dask' needs a cluster, but there is no current client."
        raise ValueError(f"{missing} {_ADDRESS_ADVICE}") from error
    check_client(client)
    return client


def is_gone(answer: Any) -> bool:
    """Return whether what a worker answered is the error that it cannot be reached.

    Not any OSError: that is also the error of a library that cannot be opened there.

    Parameters
    ----------
    answer : object

    Returns
    -------
    gone : bool
    """
    if isinstance(answer, (distributed.comm.CommClosedError, ConnectionError, TimeoutError)):
        return True
    # What Dask makes of the errors of all its attempts to connect, of which none has come with it.
    return type(answer) is OSError and str(answer).startswith("Timed out trying to connect")


def answers_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers of the workers that are still there, or raise the first error of one of them.

    Parameters
    ----------
    found : mapping of str to object
        By the address of a worker: its answer, or the error.

    Returns
    -------
    answers : dict of str to object
    """
    answers = {address: answer for address, answer in found.items() if not is_gone(answer)}
    for address, answer in answers.items():
        if isinstance(answer, BaseException):
            raise ClusterError(
                f"The worker {address} failed: {type(answer).__name__}: {answer}. Repair or remove it, and run "
                "the fit again."
            ) from answer
    return answers


def check_versions(found: Mapping[str, Any]) -> list[str]:
    """Raise if a worker has no symrelu, or another version.

    Parameters
    ----------
    found : mapping of str to object
        By the address of a worker: what it answered to ``VERSION_THERE``, or the error.

    Returns
    -------
    checked : list of str
        The workers that answered; the others are gone.
    """
    checked = []
    for address, version in found.items():
        if is_gone(version):
            continue
        if isinstance(version, BaseException):
            raise ClusterError(
                f"The worker {address} cannot import symrelu ({version}). Install symrelu "
                f"{symrelu.__version__} on all workers."
            )
        _check_version(address, version, symrelu.__version__)
        checked.append(address)
    return checked


def _check_version(address: str, there: str, here: str) -> None:
    if there != here:
        raise ClusterError(
            f"The worker {address} has symrelu {there}, but the fit is run by symrelu {here}. Install the same "
            "version on all workers."
        )


def versioned(function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """Return the call of a function as one that only workers with this version carry out.

    Parameters
    ----------
    function : callable
    *arguments

    Returns
    -------
    call : tuple
        A function, and its arguments.
    """
    return call_same_version, symrelu.__version__, function, *arguments


def call_same_version(version: str, function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a function, on a worker, if symrelu has this version there.

    A worker that has come since the last look may be given a task of a lost one before it is checked.

    Parameters
    ----------
    version : str
    function : callable
    *arguments, **settings
        Passed on to the function.

    Returns
    -------
    result : object
    """
    if version != symrelu.__version__:
        _check_version(distributed.get_worker().address, symrelu.__version__, version)
    return function(*arguments, **settings)
