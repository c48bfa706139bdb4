"""Work in parts that fit into scikit-learn's ``working_memory``."""

from __future__ import annotations

from collections.abc import Iterator

import sklearn
from sklearn.utils import gen_batches


def working_memory() -> float:
    """Return how many bytes temporary arrays may take."""
    return float(sklearn.get_config()["working_memory"] * 2**20)


def batches(count: int, bytes_each: int) -> Iterator[slice]:
    """Return slices of ``count`` that fit into the working memory, of one thing at least."""
    return gen_batches(count, max(1, int(working_memory() // bytes_each))) if count else iter(())
