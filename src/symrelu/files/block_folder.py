"""Block folders: a symmetric matrix in files of one block each, for matrices that one machine cannot hold.

A block is an npz file with the arrays ``indptr``, ``indices`` and ``data`` of a csr matrix (a mask has no
``data``). Blocks on the diagonal are stored whole; those above it stand for those below it too.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from symrelu.files.archives import read_npz_bytes, without_objects
from symrelu.files.block_manifest import MANIFEST, NAMES, BlockFile, Manifest, Totals, read_manifest
from symrelu.files.checks import DamagedFile
from symrelu.files.entries import names_of_json, names_to_json, read_sparse
from symrelu.kernels.block_grid import Block, BlockGrid


@dataclass(frozen=True, eq=False)
class BlockFolder:
    """A block folder whose manifest has been read and validated.

    Attributes
    ----------
    path : Path
        Absolute.
    manifest : Manifest
    """

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: str | PathLike[str]) -> BlockFolder:
        """Return the folder, or raise an error that says why it cannot be used.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        folder : BlockFolder
        """
        path = Path(path).absolute()
        return cls(path, read_manifest(path))

    def __repr__(self) -> str:
        grid = self.grid
        return f"BlockFolder({str(self.path)!r}, {grid.n} items, {self.dtype}, {grid.panels} panels)"

    @property
    def grid(self) -> BlockGrid:
        """How the matrix is cut into blocks."""
        return self.manifest.grid

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""
        return self.grid.n, self.grid.n

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        return np.dtype(self.manifest.dtype)

    def names(self) -> np.ndarray | None:
        """Return the names of the items, or None if there are none."""
        record = self.manifest.names
        if record is None:
            return None
        content = verified(self.path / record.file, record)
        try:
            return names_of_json(json.loads(content), self.grid.n)
        except ValueError as error:
            raise DamagedFile(
                f"{self.path / record.file} does not hold the names of the items: {error}"
            ) from error

    def source(self, block: Block) -> tuple[Path, BlockFile] | None:
        """Return the file of a block and its record, or None if the block has no entries."""
        record = self.manifest.blocks.get(block)
        return None if record is None else (self.path / record.file, record)

    def read(self, block: Block) -> Any:
        """Return a block as a csr_array, with its checksum verified."""
        source = self.source(block)
        shape = self.grid.shape(block)
        if source is None:
            return empty_block(shape, self.dtype)
        return block_of_bytes(verified(*source), source[0], shape, self.dtype)

    def fingerprint(self) -> str:
        """Return a hash of the matrix and of its grid."""
        return hashlib.sha256(self.manifest.to_json().encode()).hexdigest()


def is_block_folder(data: Any) -> bool:
    """Return whether data is a block folder, or the path of a folder.

    Parameters
    ----------
    data : object

    Returns
    -------
    folder : bool
    """
    return isinstance(data, BlockFolder) or (isinstance(data, (str, PathLike)) and os.path.isdir(data))


def empty_block(shape: tuple[int, int], dtype: Any) -> Any:
    """Return a block without entries."""
    return sparse.csr_array(shape, dtype=dtype)


def verified(path: Path, record: BlockFile) -> bytes:
    """Return the content of a file of a folder, or raise if it is not what was written."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedFile(
            f"The file {path} of a block folder cannot be read: {error.strerror or error}. Put it back, or "
            "write the folder again."
        ) from error
    if len(content) != record.bytes or hashlib.sha256(content).hexdigest() != record.sha256:
        raise DamagedFile(
            f"The file {path} of a block folder has changed since it was written: its checksum is wrong. Put "
            "back the file, or write the folder again."
        )
    return content


def block_of_bytes(content: bytes, name: Path, shape: tuple[int, int], dtype: Any) -> Any:
    """Return the block in the content of a file as a csr_array with int32 indices."""
    arrays = read_npz_bytes(content, name, "block")
    try:
        block = read_sparse(arrays, shape, "the block")
    except (KeyError, ValueError) as error:
        raise DamagedFile(f"{name} does not hold a block of shape {shape}: {error}") from error
    if block.dtype != dtype:
        raise DamagedFile(f"{name} must hold numbers of type {dtype}, got {block.dtype}.")
    return block


class BlockWriter:
    """Write blocks into an unfinished folder, and count what is in them.

    Parameters
    ----------
    folder : Path
    grid : BlockGrid
    dtype : dtype
    """

    def __init__(self, folder: Path, grid: BlockGrid, dtype: Any) -> None:
        self.folder = folder
        self.grid = grid
        self.dtype = np.dtype(dtype)
        self.blocks: dict[Block, BlockFile] = {}
        self.off_diagonal = Totals()
        self.diagonal = Totals()

    def add(self, block: Block, matrix: Any) -> None:
        """Write a block, in canonical form and without stored zeros; one on the diagonal must be symmetric."""
        i, j = block
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        own = (rows == matrix.indices) if i == j else np.zeros(matrix.nnz, bool)
        on, off = Totals.of(matrix.data[own]), Totals.of(matrix.data[~own])
        self.diagonal = self.diagonal.plus(on)
        self.off_diagonal = self.off_diagonal.plus(off, 1 if i == j else 2)
        if not matrix.nnz:
            return
        arrays = {"indptr": matrix.indptr.astype("<i8"), "indices": matrix.indices.astype("<i4")}
        if self.dtype != bool:
            arrays["data"] = matrix.data.astype(self.dtype.newbyteorder("<"), copy=False)
        path = self.folder / f"block-{i}-{j}.npz"
        with _written(path) as file:
            np.savez(file, **without_objects(**arrays))
        self.blocks[block] = _record(path, matrix.nnz, max(on.largest, off.largest))

    def finish(self, units: int = 0, names: Any | None = None) -> None:
        """Write the names and the manifest."""
        of_names = None
        if names is not None:
            path = self.folder / NAMES
            with _written(path) as file:
                file.write(json.dumps(names_to_json(names)).encode())
            of_names = _record(path, self.grid.n)
        manifest = Manifest(
            self.grid, self.dtype.name, units, self.off_diagonal, self.diagonal, self.blocks, of_names
        )
        with _written(self.folder / MANIFEST) as file:
            file.write(manifest.to_json().encode())


@contextmanager
def _written(path: Path) -> Iterator[Any]:
    """Create a file, and see to it that what is written to it is on the disk when the block ends."""
    with open(path, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())  # else a power failure after the rename could leave an empty file


def _record(path: Path, entries: int, largest: float = 0.0) -> BlockFile:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BlockFile(path.name, path.stat().st_size, digest, int(entries), largest)


def check_new_folder(path: str | PathLike[str]) -> Path:
    """Return the absolute path of a folder that can be written, or raise before any work is done."""
    path = Path(path).absolute()
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise FileExistsError(
            f"The output folder {path} exists already. Choose another name, or delete it first."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} of the output does not exist. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The folder {path.parent} of the output cannot be written to.")
    return path


@contextmanager
def unfinished_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """Make a hidden folder next to ``path``, and rename it to ``path`` when the block ends without an error."""
    path = check_new_folder(path)
    temporary = path.parent / f".{path.name}-{secrets.token_hex(8)}.part"
    temporary.mkdir()
    try:
        yield temporary
        os.replace(temporary, path)  # an empty folder at ``path`` is replaced
    except BaseException:  # Ctrl-C too must not leave a temporary folder
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def write_matrix(
    M: Any,
    path: str | PathLike[str],
    *,
    rows: int,
    units: int = 0,
    names: np.ndarray | None = None,
) -> BlockFolder:
    """Write a checked similarity matrix, or a checked mask, to a block folder, one block after the other.

    Parameters
    ----------
    M : csr_array or ndarray of shape (n, n)
    path : str or path-like
    rows : int
        Number of rows of a panel.
    units : int, default=0
        The k for which M / 4^k has entries of order one.
    names : ndarray of object of shape (n,), optional

    Returns
    -------
    folder : BlockFolder
    """
    grid = BlockGrid(M.shape[0], rows)
    with unfinished_folder(path) as folder:
        writer = BlockWriter(folder, grid, M.dtype)
        for i in range(grid.panels):
            panel = sparse.csr_array(M[grid.panel(i)])
            for j in range(i, grid.panels):
                block = sparse.csr_array(panel[:, grid.panel(j)])
                block.sum_duplicates()
                block.eliminate_zeros()
                writer.add((i, j), block)
        writer.finish(units, names)
    return BlockFolder.open(path)
