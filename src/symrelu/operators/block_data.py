"""A matrix in block folders, and its blocks in the memory of workers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from symrelu.files.block_folder import BlockFolder, block_of_bytes, empty_block, verified
from symrelu.files.block_manifest import BlockFile
from symrelu.kernels.block_grid import Block, BlockGrid
from symrelu.kernels.tiles import PackedEntries, SparseTiles, pack_entries
from symrelu.validation import scaled, within, without


class Source(NamedTuple):
    """Where a block comes from: its file, or its content if workers cannot see the file."""

    path: Path
    record: BlockFile
    content: bytes | None = None

    def read(self) -> bytes:
        """Return the content, verified."""
        return verified(self.path, self.record) if self.content is None else self.content

    def with_content(self) -> Source:
        """Return the source with its content, read and verified."""
        return self._replace(content=self.read())


@dataclass(frozen=True)
class BlockOrder:
    """What a worker must know to load a block.

    Attributes
    ----------
    block : (i, j)
    shape : tuple of two int
    dtype : dtype
    matrix, mask : Source or None
        None if there are no entries.
    ignore_diagonal : bool
    exponent : int
        The entries are divided by 4^exponent.
    only_masked : bool
        Whether the entries under the mask are kept instead of the others, to score a fit that did not see them.
    """

    block: Block
    shape: tuple[int, int]
    dtype: Any
    matrix: Source | None
    mask: Source | None
    ignore_diagonal: bool
    exponent: int
    only_masked: bool = False


class LoadedBlock:
    """A block in the memory of a worker: its observed positive entries, and its unobserved ones.

    Parameters
    ----------
    block : (i, j)
    M : csr_array
    unknown : csr_array of bool
    """

    def __init__(self, block: Block, M: Any, unknown: Any) -> None:
        self.block = block
        self.M = M
        self.unknown = unknown
        self._packed: tuple[int, PackedEntries, PackedEntries] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_packed": None}  # another worker packs the entries itself

    @property
    def symmetric(self) -> bool:
        """Whether the block is on the diagonal."""
        return self.block[0] == self.block[1]

    def tiles(self, side: int, zero_weight: float, at_least: bool) -> SparseTiles:
        """Return the entries sorted by tile, as the data of a pass."""
        # Only the latest tiles are kept: sorting takes less than a pass.
        if self._packed is None or self._packed[0] != side:
            packed = [_pack(matrix, side, self.symmetric) for matrix in (self.M, self.unknown)]
            self._packed = side, packed[0], packed[1]
        return SparseTiles(self._packed[1], self._packed[2], self.M.dtype.type(zero_weight), at_least)


def _pack(matrix: Any, side: int, symmetric: bool) -> PackedEntries:
    entries = matrix.tocoo()
    rows, cols = entries.coords
    return pack_entries(rows, cols, entries.data, matrix.shape, symmetric=symmetric, tile=side)


def load_block(order: BlockOrder) -> LoadedBlock:
    """Read a block from its file.

    Parameters
    ----------
    order : BlockOrder

    Returns
    -------
    block : LoadedBlock
    """
    M, unknown = _read(order.matrix, order.shape, order.dtype), _read(order.mask, order.shape, np.dtype(bool))
    if order.ignore_diagonal and order.block[0] == order.block[1]:
        unknown = sparse.csr_array(unknown + sparse.eye_array(*order.shape, dtype=bool), dtype=bool)
    if order.only_masked:
        M = within(M, unknown)
    elif unknown.nnz:
        M = without(M, unknown)
    return LoadedBlock(order.block, scaled(M, order.exponent), unknown)


def sent_order(order: BlockOrder) -> BlockOrder:
    """Return an order as it is: the task whose result is the content of files, for all tasks that need it.

    Parameters
    ----------
    order : BlockOrder

    Returns
    -------
    order : BlockOrder
    """
    return order


def _read(source: Source | None, shape: tuple[int, int], dtype: Any) -> Any:
    if source is None:
        return empty_block(shape, dtype)
    return block_of_bytes(source.read(), source.path, shape, dtype)


@dataclass(frozen=True, eq=False)
class BlockData:
    """A matrix in block folders, and which of its entries count.

    Attributes
    ----------
    folder : BlockFolder
    mask : BlockFolder or None
        With the same grid; true where an entry is unobserved.
    ignore_diagonal : bool
    exponent : int
        The entries are divided by 4^exponent.
    only_masked : bool
        Whether the entries under the mask are kept instead of the others.
    temporary : tuple of Path
        Folders to delete when the blocks are not needed any more.
    """

    folder: BlockFolder
    mask: BlockFolder | None = None
    ignore_diagonal: bool = False
    exponent: int = 0
    only_masked: bool = False
    temporary: tuple[Path, ...] = ()

    @property
    def grid(self) -> BlockGrid:
        """How the matrix is cut into blocks."""
        return self.folder.grid

    def order(self, block: Block, shipped: bool) -> BlockOrder:
        """Return what a worker must know to load a block; with its content if workers cannot see the files."""
        matrix, mask = (
            None if folder is None or (found := folder.source(block)) is None else Source(*found)
            for folder in (self.folder, self.mask)
        )
        if shipped:
            matrix, mask = (source and source.with_content() for source in (matrix, mask))
        return BlockOrder(
            block,
            self.grid.shape(block),
            self.folder.dtype,
            matrix,
            mask,
            self.ignore_diagonal,
            self.exponent,
            self.only_masked,
        )


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder for :attr:`BlockData.temporary`, and delete it if it is not filled to the end."""
    folder = Path(tempfile.mkdtemp(prefix="symrelu-blocks-"))
    try:
        yield folder
    except BaseException:  # Ctrl-C too must not leave files
        shutil.rmtree(folder, ignore_errors=True)
        raise
