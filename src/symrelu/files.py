"""Reading matrices and archives, and writing files so that nothing is lost when writing fails.

What a header says of sizes is held against the bytes of the file before any memory is taken for it.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import secrets
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy import io, sparse

from symrelu.kernels.memory import available_memory

_LONGEST_NAME = 255  # on every file system in common use
_CHUNK = 2**20
_READABLE = ".npz (scipy sparse, or one dense array), .npy, .mtx or .mtx.gz"
_SPARSE_PARTS = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
# What a fit of rank 1 by the default solver holds for each row: the pointers of M, U, and 10 past steps.
_BYTES_OF_A_ROW = 200

_BANNER = re.compile(rb"%%MatrixMarket +matrix +(coordinate|array) +([\w-]+) +([\w-]+)\s*", re.IGNORECASE)
_SIZE = re.compile(rb"\d{1,18}")
_NUMBER_BYTES = b"0123456789+-.eEdDnaifNAIF \t\r\n"
_LONGEST_COMMENTS = 2**20
_LONGEST_ENTRY = 200  # in bytes, on average: 17 digits and two indices take 60


def check_output(path: str | PathLike[str]) -> Path:
    """Return the path of a file that can be written, or raise before any work is done for it."""
    if len(os.fsencode(Path(path).name)) > _LONGEST_NAME:
        raise OSError(f"The name of the output {path} is longer than {_LONGEST_NAME} bytes.")
    path = Path(os.path.realpath(path))  # through a symbolic link to the file itself
    if path.is_dir():
        raise IsADirectoryError(f"The output {path} is a folder. Name a file in it.")
    if path.exists() and not path.is_file():
        raise OSError(f"The output {path} exists and is not an ordinary file. Name another one.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"The output folder {path.parent} does not exist. Create it, or name another place."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The output folder {path.parent} cannot be written to.")
    return path


def make_folder(path: str | PathLike[str]) -> Path:
    """Return a folder for outputs, made if it is not there, or raise a sentence."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"The output folder {folder} is a file. Name a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"The output folder {folder} cannot be made: {error.strerror}.") from error
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"The output folder {folder} cannot be written to.")
    return folder


@contextmanager
def write_aside(path: str | PathLike[str], prefix: str = ".symrelu") -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path`` that takes its place when everything has been written.

    Its name begins with ``prefix``, so that what a killed process left behind can be told.
    """
    path = check_output(path)
    temporary = path.parent / f"{prefix}-{secrets.token_hex(8)}.part"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def open_npz(path: str | PathLike[str]) -> Iterator[Any]:
    """Open an npz file without unpickling anything, with an error that names the file."""
    _check_readable(Path(path))
    with open(path, "rb") as file:  # numpy would leave a damaged file open
        with damage_named(path, "npz"):
            content = np.load(file, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise _WrongKind(f"{path} is a single npy array, not an npz archive.")
        with content:
            yield content


@contextmanager
def damage_named(path: str | PathLike[str], kind: str) -> Iterator[None]:
    """Turn whatever a parser says of a damaged file into one error that names the file."""
    try:
        yield
    except (_WrongKind, _Damaged, MemoryError):
        raise
    except Exception as error:  # zlib, zipfile, numpy and scipy each have errors of their own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _Damaged(f"{path} is not a readable {kind} file (damaged or cut short?): {reason}") from error


def read_npz(path: str | PathLike[str], kind: str | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an npz archive, each compared with its checksum. Nothing is unpickled.

    Parameters
    ----------
    path : str or path-like
    kind : str, optional
        What the file should be, if that is never compressed: its arrays then take as much memory as the file
        takes on disk.

    Returns
    -------
    arrays : dict of str to ndarray
    """
    path = Path(path)
    _check_readable(path)
    with open(path, "rb") as file, damage_named(path, "npz"):
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            raise _WrongKind(f"{path} is a single npy array, not an npz archive.")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(path, members, kind)
            if len(members) != _count_at_the_end(file, archive):  # which zipfile does not look at
                raise ValueError("the directory does not list all arrays")
            return {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in members}


def _check_members(path: Path, members: list[zipfile.ZipInfo], kind: str | None) -> None:
    """Raise unless the directory of an archive lists arrays that the file can hold."""
    names = [info.filename for info in members]
    if len(set(names)) < len(names) or not all(name.endswith(".npy") for name in names):
        raise ValueError(f"an npz archive holds arrays of different names, got {names}")
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED:
            if kind is not None:
                raise _WrongKind(f"{path} is compressed, and no {kind} is: it holds something else.")
        elif info.compress_size != info.file_size:
            raise ValueError(f"the directory has two sizes of {info.filename}")
    if sum(info.compress_size for info in members) > path.stat().st_size:
        raise ValueError("the arrays in the directory are larger than the file")
    _check_room(path, sum(info.file_size for info in members))


def _count_at_the_end(file: IO[bytes], archive: zipfile.ZipFile) -> int:
    """Return how many members the last record of an archive tells of (at most 65535: it has two bytes)."""
    file.seek(-len(archive.comment) - 12, os.SEEK_END)
    return int.from_bytes(file.read(2), "little")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        array = _read_array(member, info.file_size)
        if member.read(1):  # reading on to the end compares the checksum
            raise ValueError(f"{info.filename} is longer than its array")
        return array


def _read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Read an array in npy format from a file that should have ``size`` bytes."""
    version = npy.read_magic(file)
    if version != (1, 0):  # the later ones are for structured arrays, and their headers may have gigabytes
        raise ValueError(f"an array in npy version {version} holds something else than numbers")
    shape, fortran_order, dtype = npy.read_array_header_1_0(file)
    if dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape} and type {dtype} cannot be loaded")
    declared, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared != held:
        raise ValueError(f"an array of shape {shape} and type {dtype} takes {declared} bytes, got {held}")
    content = bytearray()  # grows with what is read: what a compressed file holds is not known before
    while len(content) < held:
        chunk = file.read(min(_CHUNK, held - len(content)))
        if not chunk:
            raise ValueError(f"an array ends after {len(content)} of {held} bytes")
        content += chunk
    return np.ndarray(shape, dtype, content, order="F" if fortran_order else "C")


def read_header(arrays: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    """Return the names and values that the entry ``name`` of an archive holds as JSON."""
    text = arrays[name]
    if text.dtype.kind != "U" or text.ndim:
        raise ValueError(f"its entry {name!r} is not a text")
    try:
        header = json.loads(str(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its entry {name!r} is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise ValueError(f"its entry {name!r} holds a {type(header).__name__}, not names and values")
    return header


def check_names(owner: str, names: Iterable[str], required: set[str], optional: Iterable[str] = ()) -> None:
    """Raise unless all required names are there, and none that is not known."""
    missing, unknown = required.difference(names), set(names).difference(required, optional)
    if missing:
        raise ValueError(f"{owner} has no {', '.join(map(repr, sorted(missing)))}")
    if unknown:
        raise ValueError(f"{owner} has an unknown {', '.join(map(repr, sorted(unknown)))}")


def _check_room(path: Path, needed: int, owner: str = "its arrays") -> None:
    """Raise if a file needs more memory than there is."""
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{path} must fit into memory, but {owner} need {_size(needed)}, and {_size(available)} are "
            "available. Take a part of the data, or a machine with more memory."
        )


def _size(count: int) -> str:
    """Return a number of bytes for people."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def read_matrix(path: str | PathLike[str]) -> Any:
    """Read a matrix from a .npz (scipy sparse, or one dense array), .npy, .mtx or .mtx.gz file.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    M : sparse array or ndarray
        Two-dimensional, its entries as they are in the file: :func:`symrelu.decompose` checks them.
    """
    path = Path(path)
    _check_readable(path)
    suffixes = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    readers = {".npz": _read_npz, ".npy": _read_npy, ".mtx": _read_mtx, ".mtx.gz": _read_mtx}
    if suffixes not in readers:
        raise ValueError(f"{path} must be one of {_READABLE}; the ending {path.suffix!r} is not known.")
    with damage_named(path, suffixes.lstrip(".")):
        matrix = readers[suffixes](path)
        if matrix.ndim != 2:
            raise _WrongKind(f"{path} must hold a matrix, got an array of shape {matrix.shape}.")
        return matrix


class _WrongKind(ValueError):
    """A file that can be read but holds something else."""


class _Damaged(ValueError):
    """A file that cannot be read, as has been said."""


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if not path.is_file():
        raise OSError(f"{path} is not an ordinary file. Copy its content to one.")


def _read_npy(path: Path) -> np.ndarray:
    if zipfile.is_zipfile(path):
        raise _WrongKind(f"{path} is an npz archive with the ending .npy. Rename it.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _check_room(path, size)
        return _read_array(file, size)


def _read_npz(path: Path) -> Any:
    arrays = read_npz(path)
    if "shape" in arrays and ("format" in arrays or {"data", "indices", "indptr"} <= set(arrays)):
        return _sparse_array(path, arrays)
    if "solution" in arrays:
        raise _WrongKind(f"{path} is a saved Solution, not a matrix. Read it with Solution.load.")
    if len(arrays) != 1:
        raise _WrongKind(
            f"{path} must hold one dense array or a scipy sparse matrix, got the arrays {list(arrays)}."
        )
    return arrays.popitem()[1]


def _sparse_array(path: Path, arrays: dict[str, np.ndarray]) -> Any:
    """Return a sparse array from the parts that ``scipy.sparse.save_npz`` writes; csr if no format is named."""
    kind = arrays["format"].item() if "format" in arrays else "csr"
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind not in _SPARSE_PARTS:
        raise ValueError(f"the sparse format must be one of {', '.join(_SPARSE_PARTS)}, got {kind!r}")
    data, shape = arrays["data"], arrays["shape"]
    indices = [arrays[name] for name in _SPARSE_PARTS[kind]]
    if shape.shape != (2,) or any(index.dtype.kind not in "iu" for index in (shape, *indices)):
        raise ValueError("a sparse matrix has a shape of two integers, and indices that are integers")
    if kind == "bsr" and (data.ndim != 3 or 0 in data.shape[1:]):
        raise ValueError(f"the blocks of a bsr matrix have rows and columns, got data of shape {data.shape}")
    rows, columns = (int(size) for size in shape)
    _check_rows(path, rows, columns)
    parts = (data, tuple(indices)) if kind == "coo" else (data, *indices)
    matrix = getattr(sparse, f"{kind}_array")(parts, shape=(rows, columns))
    if kind == "dia" and not np.array_equal(matrix.offsets, indices[0]):
        raise ValueError("the offsets of its diagonals are too large")
    if kind in ("csr", "csc", "bsr"):  # coo looks at its indices by itself
        matrix.check_format(full_check=True)  # compiled code would follow them anywhere
    return matrix


def _check_rows(path: Path, rows: int, columns: int) -> None:
    """Raise if a sparse matrix is too large for any fit: rows without entries take no place in a file."""
    _check_room(path, _BYTES_OF_A_ROW * max(rows, columns), f"fits of a {rows} x {columns} matrix")


@dataclass(frozen=True)
class _MatrixMarket:
    """What the first lines of a MatrixMarket file say."""

    sparse: bool
    rows: int
    columns: int
    entries: int  # lines that have to follow
    memory: int  # bytes that scipy's reader takes
    lines: int  # that this took

    @property
    def longest(self) -> int:
        """How many bytes the file can have, blanks and comments included."""
        return _LONGEST_COMMENTS + _LONGEST_ENTRY * self.entries

    def check_length(self, length: int) -> None:
        """Raise if there are more bytes than the entries can fill."""
        if length > self.longest:
            raise ValueError(
                f"{_size(length)} of text are more than the {self.entries} entries of its header can take"
            )


def _read_mtx(path: Path) -> Any:
    """Read MatrixMarket, with a look at the text first: scipy's reader crashes on some damaged files.

    Seen with scipy 1.17: bytes that are no text, and a last line that ends in a blank without a line feed.
    And it takes the memory for all entries of the header before it reads one.
    """
    with _open_text(path) as file:
        header = _mtx_header(file)
        _check_room(path, header.memory, f"the {header.entries} entries of its header")
        if header.sparse:
            _check_rows(path, header.rows, header.columns)
        header.check_length(_text_length(path))
        _check_entries(file, header)
    with _open_text(path) as file:
        return io.mmread(_EndingInLineFeed(file), spmatrix=False)


def _open_text(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")


def _text_length(path: Path) -> int:
    """Return how long the text is; of a gz file what its end says, which is not always all of it."""
    size = path.stat().st_size
    if path.suffix != ".gz":
        return size
    with open(path, "rb") as file:
        file.seek(-min(4, size), os.SEEK_END)
        return int.from_bytes(file.read(), "little")


def _mtx_header(file: IO[bytes]) -> _MatrixMarket:
    """Read the first lines, up to the one with the sizes."""
    banner = _BANNER.fullmatch(file.readline(_CHUNK))
    if not banner:
        raise ValueError("the first line is not that of a MatrixMarket file")
    kind, field, symmetry = (word.decode().lower() for word in banner.groups())
    line, lines = b"%", 1
    while line.startswith(b"%") or line.isspace():
        line, lines = file.readline(_CHUNK), lines + 1
        if file.tell() > _LONGEST_COMMENTS:
            raise ValueError(f"the sizes of the matrix do not come within the first {_size(_LONGEST_COMMENTS)}")
    sizes = line.split()
    if len(sizes) != (3 if kind == "coordinate" else 2) or not all(map(_SIZE.fullmatch, sizes)):
        raise ValueError(f"line {lines} must hold the sizes of the matrix, got {line[:80].decode('latin-1')!r}")
    rows, columns, *stored = map(int, sizes)
    value_bytes = 16 if field == "complex" else 8
    if kind == "array":
        below = rows * (rows - 1) // 2
        entries = {"general": rows * columns, "skew-symmetric": below}.get(symmetry, below + rows)
        return _MatrixMarket(False, rows, columns, entries, rows * columns * value_bytes, lines)
    (entries,) = stored
    if entries > rows * columns:
        raise ValueError(f"a {rows} x {columns} matrix cannot have {entries} entries")
    copies = 1 if symmetry == "general" else 2
    return _MatrixMarket(True, rows, columns, entries, copies * entries * (16 + value_bytes), lines)


def _check_entries(file: IO[bytes], header: _MatrixMarket) -> None:
    """Raise unless the rest of a file has a line of numbers for each entry, and little besides."""
    lines, entries, last = header.lines, 0, b"\n"
    while chunk := file.read(_CHUNK):
        header.check_length(file.tell())
        foreign = chunk.translate(None, _NUMBER_BYTES)[:1]
        if foreign:
            line = lines + chunk[: chunk.index(foreign)].count(b"\n") + 1
            raise ValueError(f"line {line} holds something else than numbers")
        lines += chunk.count(b"\n")
        dense = last + chunk.translate(None, b" \t\r")
        filled = np.frombuffer(dense, np.uint8) != ord("\n")
        entries += int(np.count_nonzero(filled[1:] & ~filled[:-1]))  # beginnings of lines that are not empty
        last = dense[-1:]
        if entries > header.entries:
            break
    if entries != header.entries:
        came = f"there are {'more' if entries > header.entries else entries}"
        raise ValueError(f"the header tells of {header.entries} entries, but {came}")


class _EndingInLineFeed:
    """A file to read whose last line is complete."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.ended = False

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes."""
        content = self.file.read(size)
        if content or self.ended:
            return content
        self.ended = True
        return b"\n"
