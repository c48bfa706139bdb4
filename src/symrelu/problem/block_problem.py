"""The data of a fit in a block folder, which no process holds as a whole."""

from __future__ import annotations

import hashlib
import math
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from symrelu.files.block_folder import BlockFolder, write_matrix
from symrelu.graphs.adapters import aligned_mask
from symrelu.kernels.arpack import largest_eigenvalue
from symrelu.operators import Operator, operator_class
from symrelu.problem.fingerprints import fingerprint
from symrelu.problem.problem import FOLDERS, Problem
from symrelu.validation import NOTHING_OBSERVED, NothingObserved, check_mask, exponent_of, without

_NO_WAY = (
    "This needs M in the memory of one process, but M is a block folder. Pass a matrix, or a part of the items."
)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class BlockProblem(Problem):
    """A block folder with its unobserved entries.

    ``M`` is the :class:`~symrelu.files.block_folder.BlockFolder`. What was checked when it was written is not
    checked again; its files are verified when they are read.

    Attributes
    ----------
    M : BlockFolder
    mask : csr_array or ndarray of bool of shape (n, n), or None
    diagonal : {"fit", "ignore"}
    labels : ndarray of object of shape (n,), or None
    """

    M: BlockFolder

    def __repr__(self) -> str:
        masked = "" if self.mask is None else ", with a mask"
        return f"Problem({self.n} items in blocks, {self.dtype}{masked}, diagonal={self.diagonal!r})"

    @cached_property
    def largest(self) -> float:
        """The largest entry. Masked entries count, because only workers know them; the scale may be lower."""
        manifest = self.M.manifest
        own = 0.0 if self.diagonal == "ignore" else manifest.diagonal.largest
        return max(manifest.off_diagonal.largest, own)

    @cached_property
    def exponent(self) -> int:
        return exponent_of(self.largest)

    @property
    def scaled(self) -> Any:
        raise TypeError(_NO_WAY)

    def block(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise TypeError(_NO_WAY)

    def divided(self, d: np.ndarray) -> Problem:
        raise TypeError(_NO_WAY)

    def positive_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raise TypeError(_NO_WAY)

    def advice_on_distances(self, name: str = "M") -> str | None:
        return None

    @property
    def observed_zeros(self) -> int:
        raise TypeError(_NO_WAY)

    def parameters_per_pair(self, rank: int) -> float:
        manifest = self.M.manifest
        if self.mask is not None:
            count, on_diagonal = self.operator(np.ones(1)).n_positive, 0
        else:
            on_diagonal = 0 if self.diagonal == "ignore" else manifest.diagonal.entries
            count = manifest.off_diagonal.entries + on_diagonal
        return float(self.n * rank / ((count + on_diagonal) / 2))

    @cached_property
    def _largest_eigenvalue(self) -> float:
        op = self.operator(np.ones(1))

        def multiply(v: np.ndarray) -> np.ndarray:
            return op.matmul(v.reshape(self.n, -1).astype(self.dtype)).astype(np.float64)

        product = LinearOperator((self.n, self.n), matvec=multiply, matmat=multiply, dtype=np.float64)
        return largest_eigenvalue(product)

    @cached_property
    def _fingerprints(self) -> dict[str, str | None]:
        own = f"{self.M.fingerprint()} {self.diagonal}".encode()
        return {"mask": fingerprint(self.mask), "matrix": hashlib.sha256(own).hexdigest()}

    def _without(self, mask: Any) -> Any:
        return self.M  # workers remove what is masked when they read a block

    def _pack(self, backend: str, client: Any | None) -> Operator:
        made = self._on_cluster(self.mask, client)
        if not made.norm > 0:
            made.release()
            raise NothingObserved(NOTHING_OBSERVED.format("M"))
        return made

    def _on_cluster(self, mask: Any | None, client: Any | None = None, *, only_masked: bool = False) -> Any:
        """Return the operator of all entries but the masked ones, or of only these."""
        from symrelu.operators.block_data import BlockData
        from symrelu.operators.cluster import Cluster

        kind, cluster = operator_class("dask"), Cluster(client)
        masks, temporary = None, []
        if mask is not None:
            temporary.append(Path(tempfile.mkdtemp(prefix="symrelu-mask-")))
            masks = write_matrix(sparse.csr_array(mask), temporary[0] / "mask", rows=self.M.grid.rows)
        ignored = self.diagonal == "ignore" and not only_masked
        data = BlockData(self.M, masks, ignored, self.exponent, only_masked, tuple(temporary))
        return kind.of_blocks(data, cluster, signature=np.ones(1))

    def held_out_error(self, U: np.ndarray, signature: np.ndarray, mask: Any, *, at_least: bool) -> float:
        """Return the relative error over held-out entries: see :func:`symrelu.metrics.held_out_error`."""
        if mask is None:
            raise TypeError(
                "mask must be a boolean matrix, got None: the error is taken over the masked entries."
            )
        mask = sparse.csr_array(check_mask(aligned_mask(mask, self.labels), self.n))
        if self.unknown is not None:
            mask = without(mask, self.unknown)
        if not mask.nnz:
            raise ValueError("mask must hide at least one observed entry, got none.")
        base = self._on_cluster(mask, only_masked=True)
        try:
            op = base.with_model(signature, at_least=at_least)
            wrong, total = op.held_out_squares(np.ldexp(U, -self.exponent))
        finally:
            base.release()
        return math.sqrt(wrong / total) if total else math.inf

    def modularity(self, labels: np.ndarray) -> float:
        """Return the modularity of clusters numbered from 0 on: see :func:`symrelu.metrics.modularity`."""
        inside, degrees = self.operator(np.ones(1)).cluster_weights(labels)  # type: ignore[attr-defined]
        total = degrees.sum()
        return float(inside / total - np.sum((degrees / total) ** 2)) if total else 0.0


def of_folder(M: Any, mask: Any | None, diagonal: str) -> BlockProblem:
    """Return the problem of a block folder.

    Parameters
    ----------
    M : BlockFolder, str or path-like
    mask : sparse or dense bool matrix of shape (n, n), or None
    diagonal : {"fit", "ignore", "auto"}

    Returns
    -------
    problem : BlockProblem
    """
    folder = M if isinstance(M, BlockFolder) else BlockFolder.open(M)
    if folder.dtype == bool:
        raise TypeError(f"M must hold numbers, but the block folder {folder.path} holds a mask.")
    labels = folder.names()
    mask = check_mask(aligned_mask(mask, labels), folder.grid.n)
    if diagonal == "auto":
        diagonal = "fit" if folder.manifest.diagonal.entries else "ignore"
    made = BlockProblem._from_checked(folder, mask, diagonal, labels)
    assert isinstance(made, BlockProblem)
    return made


FOLDERS.append(of_folder)
