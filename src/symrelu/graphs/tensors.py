"""Convert torch tensors.

torch is not imported: whoever passes a tensor has imported it already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symrelu.graphs.edges import Labelled, comes_from


def is_tensor(data: Any) -> bool:
    """Return whether an object is a torch tensor."""
    return comes_from(data, "torch", "Tensor")


def from_torch(tensor: Any) -> Labelled:
    """Return the matrix of a torch tensor.

    Parameters
    ----------
    tensor : torch.Tensor of shape (n, n)
        Dense, or sparse in any layout; a sparse tensor stays sparse. It is detached from its gradient, and
        copied to the CPU if it is on another device.

    Returns
    -------
    labelled : Labelled
        A csr_array, or an ndarray that shares the memory of a dense tensor on the CPU. There are no labels.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from symrelu.graphs import from_torch
    >>> from_torch(torch.eye(2).to_sparse()).matrix.toarray()  # doctest: +SKIP
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if not is_tensor(tensor):
        raise TypeError(f"tensor must be a torch tensor, got {type(tensor).__name__}.")
    layout = str(tensor.layout).removeprefix("torch.")
    if layout == "strided":
        return Labelled(_tensor_values(tensor), None)
    if not layout.startswith("sparse"):
        raise TypeError(f"tensor must be dense or sparse, got the layout {layout}. Pass tensor.to_dense().")
    if tensor.sparse_dim() != 2 or tensor.ndim != 2:
        raise ValueError(
            f"tensor must be a matrix with two sparse dimensions, got shape {tuple(tensor.shape)} "
            f"with {tensor.sparse_dim()} sparse and {tensor.dense_dim()} dense dimensions."
        )
    if layout == "sparse_csr":
        parts = (tensor.values(), tensor.col_indices(), tensor.crow_indices())
        return Labelled(sparse.csr_array(tuple(map(_tensor_values, parts)), shape=tuple(tensor.shape)), None)
    # Coalescing adds up repeated indices, which torch allows in its coo layout.
    tensor = tensor.to_sparse_coo().coalesce()
    entries = (_tensor_values(tensor.values()), tuple(_tensor_values(tensor.indices())))
    return Labelled(sparse.csr_array(entries, shape=tuple(tensor.shape)), None)


def _tensor_values(tensor: Any) -> np.ndarray:
    try:
        return tensor.numpy(force=True)  # detaches, and copies from the GPU
    except TypeError as error:
        raise TypeError(
            f"tensor must have a dtype that NumPy supports, got {tensor.dtype}. Pass tensor.float()."
        ) from error
