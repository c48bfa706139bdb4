"""Which torch device a caller asked for, and products on it that are not rounded to shorter numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from symrelu.operators.cuda import check_cuda  # explains what is missing

import torch  # isort: skip

_FULL = "highest"
_OF_ONE = "fp32_precision"  # name of the setting of one library


def checked_device(device: Any) -> Any:
    """Return a torch device, or raise if it cannot be used.

    Parameters
    ----------
    device : str or torch.device

    Returns
    -------
    device : torch.device
    """
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be 'cuda', 'cpu' or another device of torch, got {device!r}.") from error
    if found.type == "cuda":
        check_cuda(f"device={str(device)!r}", "device='cpu'")
        count = torch.cuda.device_count()
        if found.index is not None and found.index >= count:
            raise ValueError(f"device={str(device)!r} is not one of the {count} GPUs, 'cuda:0' is the first.")
    return found


@contextmanager
def full_float32() -> Iterator[None]:
    """Multiply matrices of float32 in float32 inside a block, whatever shorter type the process allows.

    TF32 has 11 bits: with it, the order of close scores would be random. The setting is that of the process,
    so other threads that multiply meanwhile are slower.
    """
    # Recent releases have a setting for each library, besides the one for all.
    backends = (getattr(torch.backends, name) for name in ("cuda", "mkldnn"))
    libraries = [backend.matmul for backend in backends if hasattr(getattr(backend, "matmul", None), _OF_ONE)]
    separate = [getattr(library, _OF_ONE) for library in libraries]
    try:
        common = torch.get_float32_matmul_precision()
    except RuntimeError:  # they disagree, and the ones of the libraries count
        common = _FULL
    torch.set_float32_matmul_precision(_FULL)  # sets those of the libraries too
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(common)
        for library, precision in zip(libraries, separate, strict=True):
            setattr(library, _OF_ONE, precision)
