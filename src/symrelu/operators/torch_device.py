"""Which torch device a caller asked for."""

from __future__ import annotations

from typing import Any

from symrelu.operators.cuda import check_cuda  # explains what is missing

import torch  # isort: skip


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
