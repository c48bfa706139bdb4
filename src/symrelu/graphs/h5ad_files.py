"""Read graphs from h5ad files, through anndata in a process of its own.

The HDF5 library ends the whole process on some damaged files, or takes all memory (seen with h5py 3.16: 2 of
2000 files with changed bytes). In another process that is an error of the file. Most of the time goes into the
import of anndata, which this process is spared.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from scipy import sparse

from symrelu.files.checks import (
    DamagedFile,
    WrongKind,
    check_indices,
    check_room,
    naming_damaged_file,
    naming_missing_library,
)
from symrelu.graphs.annotated import from_anndata
from symrelu.graphs.edges import Labelled, as_labels
from symrelu.kernels.memory import limit_to_available_memory

# Isolated (-I), so that a file json.py in the working folder is not imported; the path is that of this process.
_PROGRAM = (
    "import json, sys; request = json.loads(sys.stdin.read()); sys.path[:] = request.pop('sys_path'); "
    "from symrelu.graphs.h5ad_files import answer; answer(**request)"
)
_READY = b"ready\n"
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_PLACES = (0, 512, 1024, 2048)  # a file may begin with something else
_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (WrongKind, DamagedFile, ValueError, TypeError, MemoryError, ImportError)
}


def read_h5ad(path: Path, key: str | None) -> Labelled:
    """Read a graph of the observations from an .h5ad file.

    Parameters
    ----------
    path : Path
    key : str, optional
        As for :func:`from_anndata`.

    Returns
    -------
    labelled : Labelled
    """
    with naming_missing_library("anndata", "anndata", ".h5ad"):
        if find_spec("anndata") is None:
            raise ImportError
    _check_signature(path)  # before a process is started for nothing
    if not sys.executable or getattr(sys, "frozen", False):  # inside another program there is no interpreter
        return _read(path, key)
    request = {"path": str(path), "key": key, "sys_path": list(map(str, sys.path))}
    with TemporaryFile() as errors, _child(json.dumps(request), errors) as child:
        assert child.stdout is not None
        if child.stdout.readline() != _READY:
            raise ChildProcessError(
                f"{path} must be read by another Python process, but that one {_end_of(child.wait())} before "
                f"it opened the file: {_last_line(errors)}. Mend the installation of Python or anndata."
            )
        try:
            return _receive(path, child.stdout)
        except EOFError:
            raise DamagedFile(
                f"{path} is not a readable h5ad file (damaged or truncated?): the HDF5 library "
                f"{_end_of(child.wait())} while reading it."
            ) from None


def _check_signature(path: Path) -> None:
    with open(path, "rb") as file:
        for place in _PLACES:
            file.seek(place)
            if file.read(len(_SIGNATURE)) == _SIGNATURE:
                return
    raise DamagedFile(
        f"{path} is not a readable h5ad file (damaged or truncated?): it has no signature of HDF5."
    )


@contextmanager
def _child(request: str, errors: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that answers a request, and end it if its answer is not wanted any more."""
    command = [sys.executable, "-I", "-c", _PROGRAM]
    # HDF5 prints what it finds in a damaged file: that is not shown.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as child:
        try:
            assert child.stdin is not None
            with suppress(BrokenPipeError), child.stdin as requests:  # it may have ended already
                requests.write(request.encode())
            yield child
        except BaseException:
            child.kill()
            raise


def _end_of(code: int) -> str:
    try:
        return f"crashed ({signal.Signals(-code).name})"
    except ValueError:
        return f"ended with code {code}"


def _last_line(errors: IO[bytes]) -> str:
    """Return the last line that a process has printed, which names the error after a traceback."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    return next((line.strip().rstrip(".") for line in reversed(lines) if line.strip()), "it printed nothing")


def answer(path: str, key: str | None) -> None:
    """Read a file, and write the graph or the error to stdout, for the process that asked.

    The first line says that all is imported: if the process ends after it, the file is to blame.
    """
    output = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is no part of the answer
    arrays: list[np.ndarray] = []
    with suppress(ImportError):
        import_module("anndata")  # libraries reserve memory that they may never use
    output.write(_READY)
    output.flush()
    try:
        limit_to_available_memory()
        matrix, labels = _read(Path(path), key)
        assert labels is not None  # observations have names
        arrays = [matrix.data, matrix.indices, matrix.indptr] if sparse.issparse(matrix) else [matrix]
        arrays = [np.ascontiguousarray(array) for array in arrays]
        kinds = [(array.dtype.str, array.shape) for array in arrays]
        header = {"shape": matrix.shape, "names": [str(name) for name in labels], "arrays": kinds}
    except Exception as error:  # the process that asked raises it
        kind = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS), "DamagedFile")
        header = {"error": kind, "message": str(error)}
    output.write(json.dumps(header).encode() + b"\n")
    for array in arrays:
        output.write(array.reshape(-1).view(np.uint8).data)
    output.flush()


def _receive(path: Path, answer: IO[bytes]) -> Labelled:
    """Return the graph that another process has read, or raise its error; raise EOFError if there is none."""
    line = answer.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    header = json.loads(line)
    if "error" in header:
        raise _ERRORS[header["error"]](header["message"])
    # The other process still holds them: for a moment they are in memory twice.
    needed = sum(math.prod(shape) * np.dtype(kind).itemsize for kind, shape in header["arrays"])
    check_room(path, needed, "the arrays of its graph")
    arrays = [_receive_array(answer, kind, shape) for kind, shape in header["arrays"]]
    shape = tuple(header["shape"])
    matrix = arrays[0] if len(arrays) == 1 else sparse.csr_array(tuple(arrays), shape=shape)
    return Labelled(matrix, as_labels(header["names"]))


def _receive_array(answer: IO[bytes], kind: str, shape: list[int]) -> np.ndarray:
    array = np.empty(shape, kind)
    content = array.reshape(-1).view(np.uint8).data
    if array.size and answer.readinto(content) < len(content):  # type: ignore[attr-defined]
        raise EOFError
    return array


def _read(path: Path, key: str | None) -> Labelled:
    with naming_missing_library("anndata", "anndata", ".h5ad"):
        anndata, h5py = import_module("anndata"), import_module("h5py")  # anndata requires h5py
    with naming_damaged_file(path, "h5ad"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are not unique, an error below
        with h5py.File(path, "r") as file:
            check_room(path, _stored_bytes(h5py, file), "its tables")
        # Backed, so that the matrix of samples x features stays in the file.
        adata = anndata.read_h5ad(path, backed="r")
    with closing(adata.file):
        with naming_damaged_file(path, "h5ad"):
            for graph in filter(sparse.issparse, adata.obsp.values()):
                check_indices(graph)
        labelled = from_anndata(adata, key)
    _check_names(path, labelled.labels)
    return labelled


def _check_names(path: Path, names: Any) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    raise WrongKind(
        f"{path} must have a different name for each observation, but {twice!r} occurs twice. "
        "Call adata.obs_names_make_unique() and write it again."
    )


def _stored_bytes(h5py: Any, file: Any) -> int:
    """Return the size of all data sets in an HDF5 file, except the matrix of samples x features."""
    sizes = []

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not (name == "X" or name.startswith("X/")):
            sizes.append(int(item.size or 0) * item.dtype.itemsize)

    file.visititems(add)
    return sum(sizes)
