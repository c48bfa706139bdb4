"""The manifest of a block folder: what is in it, validated when it is read.

A block folder holds a symmetric matrix as files, one for each block on or above the diagonal that has entries,
and ``manifest.json``, which is written last. A folder without a valid manifest is not complete.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symrelu.files.checks import DamagedFile, WrongKind
from symrelu.kernels.block_grid import Block, BlockGrid

FORMAT = "symrelu blocks"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
NAMES = "names.json"
BYTE_ORDER = "little"
INDEX_TYPE = "int32"
DTYPES = ("float32", "float64", "bool")  # bool: a mask
_SAFE_UNITS = 100  # entries between 4^-100 and 4^100 need none: their squares are far from the ends of float64

_KEYS = {
    "format", "version", "shape", "dtype", "byte_order", "index_type", "rows", "norm", "units",
    "off_diagonal", "diagonal", "blocks", "names", "sha256",
}  # fmt: skip


@dataclass(frozen=True)
class Totals:
    """Number, largest and sum of squares of entries; the squares are those of entries / 4^units.

    Squares of very large or very small entries would overflow or underflow. The units are those of the largest.
    """

    entries: int = 0
    largest: float = 0.0
    squares: float = 0.0
    units: int = 0

    @classmethod
    def of(cls, values: np.ndarray) -> Totals:
        """Return the totals of stored entries."""
        doubled = values.astype(np.float64, copy=False)
        largest = float(doubled.max(initial=0.0))
        units = _units_of(largest)
        scaled = np.ldexp(doubled, -2 * units) if units else doubled
        return cls(len(values), largest, float(np.sum(np.square(scaled))), units)

    @property
    def norm(self) -> float:
        """Root of the sum of squares, or the largest number if it is beyond that."""
        try:
            return math.ldexp(math.sqrt(self.squares), 2 * self.units)
        except OverflowError:
            return sys.float_info.max

    def plus(self, other: Totals, times: int = 1) -> Totals:
        """Return the totals with others added, so many times."""
        largest = max(self.largest, other.largest)
        units = _units_of(largest)
        return Totals(
            self.entries + times * other.entries,
            largest,
            self._squares_in(units) + times * other._squares_in(units),
            units,
        )

    def _squares_in(self, units: int) -> float:
        return math.ldexp(self.squares, 4 * (self.units - units))


def _units_of(largest: float) -> int:
    """Return the k for which squares of entries / 4^k neither overflow nor vanish; 0 if none is needed."""
    k = math.frexp(largest)[1] // 2
    return k if abs(k) > _SAFE_UNITS else 0


@dataclass(frozen=True)
class BlockFile:
    """A file of a folder: its name, size and SHA-256, and number and largest of the entries in it."""

    file: str
    bytes: int
    sha256: str
    entries: int
    largest: float = 0.0  # names have none


@dataclass(frozen=True)
class Manifest:
    """What is in a block folder.

    Attributes
    ----------
    grid : BlockGrid
    dtype : str
        float32 or float64; bool for a mask.
    units : int
        The k for which entries / 4^k are of order one; 0 if they need no rescaling.
    off_diagonal, diagonal : Totals
        Of all entries of the matrix, those below the diagonal included.
    blocks : dict of (i, j) to BlockFile
        Blocks without entries have no file.
    names : BlockFile, or None
    """

    grid: BlockGrid
    dtype: str
    units: int
    off_diagonal: Totals
    diagonal: Totals
    blocks: dict[Block, BlockFile]
    names: BlockFile | None = None

    @property
    def norm(self) -> float:
        """Frobenius norm of the matrix."""
        return self.off_diagonal.plus(self.diagonal).norm

    def to_json(self) -> str:
        """Return the text of the file."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "shape": [self.grid.n, self.grid.n],
            "dtype": self.dtype,
            "byte_order": BYTE_ORDER,
            "index_type": INDEX_TYPE,
            "rows": self.grid.rows,
            "norm": self.norm,
            "units": self.units,
            "off_diagonal": asdict(self.off_diagonal),
            "diagonal": asdict(self.diagonal),
            "blocks": [{"row": i, "column": j, **asdict(file)} for (i, j), file in sorted(self.blocks.items())],
            "names": None if self.names is None else asdict(self.names),
        }
        return json.dumps({**content, "sha256": _digest(content)}, indent=1, allow_nan=False)


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a folder, or raise an error that says why it cannot be used."""
    if not folder.is_dir():
        missing = "is a file, not a folder" if folder.exists() else "does not exist"
        raise FileNotFoundError(
            f"{folder} must be a block folder, but it {missing}. Write one: symrelu blocks."
        )
    path = folder / MANIFEST
    if not path.is_file():
        raise WrongKind(
            f"{folder} is a folder, not a file. Of folders, only those that symrelu blocks wrote to the end "
            f"can be read, and this one has no {MANIFEST}. Pass a file, or write it again: symrelu blocks."
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path} is not readable JSON (damaged or truncated?): {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise WrongKind(f"{path} must be the manifest of a block folder ({FORMAT}), but it is something else.")
    version = content.get("version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise WrongKind(
            f"{folder} was written by a newer version of symrelu: its format is {version}, and this one reads "
            f"{FORMAT_VERSION}. Install the newer version."
        )
    try:
        manifest = _checked(content)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise DamagedFile(f"{path} cannot be used (damaged?): {reason}. Write the folder again.") from error
    _check_files(folder, manifest)
    return manifest


def _checked(content: dict[str, Any]) -> Manifest:
    if set(content) != _KEYS or content["version"] != FORMAT_VERSION:
        raise ValueError(f"its entries must be {sorted(_KEYS)} of version {FORMAT_VERSION}")
    claimed = content["sha256"]
    if claimed != _digest({name: value for name, value in content.items() if name != "sha256"}):
        raise ValueError("its checksum is wrong")
    if (content["byte_order"], content["index_type"]) != (BYTE_ORDER, INDEX_TYPE):
        raise ValueError(f"its numbers must be {BYTE_ORDER}-endian, its indices {INDEX_TYPE}")
    n, n_again = content["shape"]
    if content["dtype"] not in DTYPES or n != n_again or n < 1 or content["rows"] < 1:
        raise ValueError("its matrix must be square, of a known type and have rows")
    grid = BlockGrid(int(n), int(content["rows"]))
    blocks = {(int(one.pop("row")), int(one.pop("column"))): BlockFile(**one) for one in content["blocks"]}
    if len(blocks) != len(content["blocks"]) or not all(0 <= i <= j < grid.panels for i, j in blocks):
        raise ValueError("its blocks must be different ones on or above the diagonal")
    names = None if content["names"] is None else BlockFile(**content["names"])
    files = [*blocks.values(), *([] if names is None else [names])]
    if any(Path(one.file).name != one.file for one in files):  # nothing outside of the folder
        raise ValueError("its files must be in the folder itself")
    off, diagonal = Totals(**content["off_diagonal"]), Totals(**content["diagonal"])
    # A block off the diagonal stands for two; those on the diagonal are stored whole.
    if off.entries + diagonal.entries != sum((1 + (i < j)) * one.entries for (i, j), one in blocks.items()):
        raise ValueError("its blocks do not have the entries that it counts")
    if max((one.largest for one in blocks.values()), default=0.0) != max(off.largest, diagonal.largest):
        raise ValueError("its blocks do not have the largest entry that it names")
    return Manifest(grid, content["dtype"], int(content["units"]), off, diagonal, blocks, names)


def _check_files(folder: Path, manifest: Manifest) -> None:
    """Raise if a file is missing or has another size; contents are compared when they are read."""
    for one in [*manifest.blocks.values(), *([] if manifest.names is None else [manifest.names])]:
        path = folder / one.file
        if not path.is_file():
            raise DamagedFile(
                f"{folder} is not complete: its file {one.file} is missing. Write the folder again."
            )
        if path.stat().st_size != one.bytes:
            raise DamagedFile(
                f"{folder} is damaged: its file {one.file} has {path.stat().st_size} bytes, and was written "
                f"with {one.bytes}. Write the folder again."
            )
