"""Devices of torch, and blocks that are smaller than usual."""

from __future__ import annotations

from contextlib import AbstractContextManager
from unittest import mock

import pytest
import torch

from symrelu.operators import torch_rows

NO_GPU = not torch.cuda.is_available()
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(NO_GPU, reason="torch finds no GPU"))]


def small_blocks(numbers: int) -> AbstractContextManager[object]:
    """Let a block have so many numbers, on any device."""
    return mock.patch.multiple(torch_rows, BLOCK=numbers, BLOCK_ON_DEVICE=numbers)
