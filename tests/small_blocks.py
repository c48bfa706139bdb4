"""Devices of torch, blocks that are smaller than usual, and the largest tensor."""

from __future__ import annotations

from contextlib import AbstractContextManager
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from symrelu.operators import torch_rows

NO_GPU = not torch.cuda.is_available()
DEVICES = ("cpu",) if NO_GPU else ("cpu", "cuda")


def small_blocks(numbers: int) -> AbstractContextManager[object]:
    """Let a block have so many numbers, on any device."""
    return mock.patch.multiple(torch_rows, BLOCK=numbers, BLOCK_ON_DEVICE=numbers)


class Largest(TorchDispatchMode):
    """Remember the size of the largest tensor that an operation made."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (list, tuple)) else [made]:
            if isinstance(tensor, torch.Tensor) and not tensor.is_sparse:
                self.numel = max(self.numel, tensor.numel())
        return made
