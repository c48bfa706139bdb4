"""The data of a fit in a block folder, which no process holds as a whole."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from symrelu.files.block_folder import BlockFolder, write_matrix
from symrelu.graphs.adapters import aligned_mask
from symrelu.kernels.arpack import largest_eigenvalue
from symrelu.kernels.block_grid import Block
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
        """The largest observed entry."""
        manifest, found = self.M.manifest, 0.0
        if self.mask is None:
            own = 0.0 if self.diagonal == "ignore" else manifest.diagonal.largest
            return max(manifest.off_diagonal.largest, own)
        # Blocks are read one at a time, until none of the others can have a larger entry: mostly a single one.
        for block, record in sorted(manifest.blocks.items(), key=lambda item: -item[1].largest):
            if record.largest <= found:
                break
            found = max(found, float(self._observed(block).data.max(initial=0.0)))
        return found

    def _observed(self, block: Block) -> Any:
        """Return the observed entries of a block, read in this process."""
        M, grid = self.M.read(block), self.M.grid
        if self.unknown is None:
            return M
        return without(M, sparse.csr_array(self.unknown[grid.panel(block[0])][:, grid.panel(block[1])]))

    @cached_property
    def _entries_on_diagonal(self) -> int:
        """Number of observed positive entries on the diagonal."""
        if self.mask is None:
            return 0 if self.diagonal == "ignore" else self.M.manifest.diagonal.entries
        panels = range(self.M.grid.panels)
        return sum(int(np.count_nonzero(self._observed((i, i)).diagonal())) for i in panels)

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
        on_diagonal = self._entries_on_diagonal
        if self.mask is None:
            count = self.M.manifest.off_diagonal.entries + on_diagonal
        else:
            count = self.operator(np.ones(1)).n_positive
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

    def hide(self, mask_or_i: Any, j: Any | None = None) -> Problem:
        hidden = super().hide(mask_or_i, j)
        vars(hidden)["_clients"] = self._clients
        return hidden

    def _without(self, mask: Any) -> Any:
        return self.M  # workers remove what is masked when they read a block

    @cached_property
    def _clients(self) -> list[Any]:
        """The client that is used if none is given; shared with problems of the same folder."""
        return []

    def use_client(self, client: Any | None) -> None:
        """Use this client from now on where none is given, also for scores; None changes nothing.

        Parameters
        ----------
        client : Client, str or None

        Returns
        -------
        None
        """
        if client is not None:
            self._clients[:] = [client]

    def _pack(self, backend: str, client: Any | None) -> Operator:
        self.use_client(client)
        made = self._on_cluster(self.mask, client)
        if not made.norm > 0:
            made.release()
            raise NothingObserved(NOTHING_OBSERVED.format("M"))
        return made

    def _on_cluster(self, mask: Any | None, client: Any | None = None, *, only_masked: bool = False) -> Any:
        """Return the operator of all entries but the masked ones, or of only these."""
        from symrelu.operators.block_data import BlockData, temporary_folder
        from symrelu.operators.cluster import Cluster, closed_on_error

        kind = operator_class("dask")
        cluster = Cluster(self._clients[-1] if client is None and self._clients else client)
        ignored = self.diagonal == "ignore" and not only_masked
        if mask is None:
            data = BlockData(self.M, None, ignored, self.exponent)
        else:
            with closed_on_error(cluster), temporary_folder() as folder:
                masks = write_matrix(sparse.csr_array(mask), folder / "mask", rows=self.M.grid.rows)
                data = BlockData(self.M, masks, ignored, self.exponent, only_masked, (folder,))
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
    made = BlockProblem._from_checked(folder, mask, "fit" if diagonal == "auto" else diagonal, labels)
    assert isinstance(made, BlockProblem)
    if diagonal == "auto" and not made._entries_on_diagonal:
        return of_folder(folder, mask, "ignore")
    return made


FOLDERS.append(of_folder)
