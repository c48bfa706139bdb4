"""torch for computations that do not depend on what the process has set: no gradients, and full float32."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, cast

_REQUIRED = (
    "backend='torch' and backend='cuda' need {}: pip install 'symrelu[torch]', or 'symrelu[cuda]' where there "
    "is an NVIDIA GPU."
)

try:
    import torch
except ImportError as missing:
    raise ImportError(_REQUIRED.format("torch")) from missing

try:
    namespace: Any = import_module("array_api_compat.torch")
except ImportError:
    try:  # scikit-learn 1.7 and newer has a copy
        namespace = import_module("sklearn.externals.array_api_compat.torch")
    except ImportError as missing:
        raise ImportError(_REQUIRED.format("array-api-compat, or scikit-learn 1.7 or newer")) from missing

Method = TypeVar("Method", bound=Callable[..., Any])

_FULL = "highest"
_OF_ONE = "fp32_precision"  # name of the setting of one library


def undisturbed(method: Method) -> Method:
    """Let a function multiply float32 in full, and record no gradients.

    Otherwise tensors that require gradients would make torch record every pass.
    """

    @wraps(method)
    def call(*arguments: Any, **settings: Any) -> Any:
        with torch.no_grad(), full_float32():
            return method(*arguments, **settings)

    return cast("Method", call)


@contextmanager
def full_float32() -> Iterator[None]:
    """Multiply matrices of float32 in float32 inside a block, whatever shorter type the process allows.

    TF32 has 11 bits: with it, the order of close scores would be random, and a row system useless. The setting
    is that of the process, so other threads that multiply meanwhile are slower.
    """
    _users.enter()
    try:
        yield
    finally:
        _users.leave()


class _Users:
    """The blocks that are running, in all threads: the last one to end restores what the first one found."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._found: _Precision | None = None

    def enter(self) -> None:
        with self._lock:
            if not self._count:
                self._found = _Precision.of_process()
                torch.set_float32_matmul_precision(_FULL)  # sets those of the libraries too
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count and self._found is not None:
                self._found.restore()


_users = _Users()


class _Precision(NamedTuple):
    """The setting for all libraries, and that of each of them, which recent releases have besides."""

    common: str
    separate: tuple[str, ...]

    @classmethod
    def of_process(cls) -> _Precision:
        separate = tuple(getattr(library, _OF_ONE) for library in _libraries())
        try:
            return cls(torch.get_float32_matmul_precision(), separate)
        except RuntimeError:  # they disagree, and the ones of the libraries count
            return cls(_FULL, separate)

    def restore(self) -> None:
        torch.set_float32_matmul_precision(self.common)
        for library, precision in zip(_libraries(), self.separate, strict=True):
            setattr(library, _OF_ONE, precision)


def _libraries() -> list[Any]:
    backends = (getattr(torch.backends, name) for name in ("cuda", "mkldnn"))
    return [backend.matmul for backend in backends if hasattr(getattr(backend, "matmul", None), _OF_ONE)]
