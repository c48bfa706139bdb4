"""The data sets of the paper, and some graphs, read from a data directory.

The files are not part of the package: most are for research use only. They are looked for in the folder given
as ``data_home``, or in the one that the environment variable ``SYMRELU_DATA`` names. Two forms are read: the
original MATLAB files with the variables ``fea`` and ``gnd``, and compact npz files, which must have the SHA-256
listed here.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import io, sparse
from scipy.io.matlab import MatReadError

from symrelu.files import open_npz
from symrelu.validation import check_choice

VARIABLE = "SYMRELU_DATA"
_CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/data.html"


class Dataset(NamedTuple):
    """Samples with labels.

    Attributes
    ----------
    data : ndarray or csr_array of shape (n_samples, n_features)
        Raw samples, as float64.
    target : ndarray of shape (n_samples,)
        Class of each sample, from 0.
    name : str
        What to print: it says so where a set is not the original one.
    """

    data: Any
    target: np.ndarray
    name: str


class GraphDataset(NamedTuple):
    """A graph with labels.

    Attributes
    ----------
    M : csr_array of shape (n_nodes, n_nodes)
        Symmetric adjacency matrix of zeros and ones, zero diagonal.
    target : ndarray of shape (n_nodes,)
        Class of each node, from 0; -1 where it is not known.
    name : str
    """

    M: Any
    target: np.ndarray
    name: str


class DatasetFile(NamedTuple):
    """Where a set was found.

    Attributes
    ----------
    name : str
        What to print: it says so where a set is not the original one.
    path : Path
    n_samples : int
    sha256 : str
        Of the file as it is.
    """

    name: str
    path: Path
    n_samples: int
    sha256: str


@dataclass(frozen=True)
class _Source:
    """Where a set is found, and what it must be."""

    name: str
    npz: str
    sha256: str
    shape: tuple[int, int]
    classes: int
    mat: tuple[str, ...] = ()
    page: str = _CAI

    @property
    def files(self) -> tuple[str, ...]:
        """Names the file may have; there is no npz file without a known SHA-256."""
        return (*self.mat, self.npz) if self.sha256 else self.mat


# The paper's name of a set -> its sources, the preferred one first.
_SOURCES: dict[str, tuple[_Source, ...]] = {
    "ORL": (
        _Source(
            "ORL",
            "ORL.npz",
            "423f6885a690217c34813f430f4b3de977804e6e54381106d0d9629f2fed805d",
            (400, 4096),
            40,
            ("ORL_64x64.mat", "ORL64.mat"),
        ),
    ),
    "YaleB": (
        _Source(
            "YaleB",
            "YaleB.npz",
            "fe9aceb9e3772aaa4a0562633c66e834000b6172d6d24da75308bfbed7b41c64",
            (2414, 1024),
            38,
            ("YaleB_32x32.mat", "YaleB.mat"),
        ),
    ),
    "COIL20": (
        _Source(
            "COIL20",
            "COIL20.npz",
            "620ddd72c6cb1dde4371a73383cbe6a56d947e32ce9d75bea7cdd943100486d7",
            (1440, 1024),
            20,
            ("COIL20.mat",),
        ),
    ),
    "COIL100": (
        _Source("COIL100", "COIL100.npz", "", (7200, 1024), 100, ("COIL100.mat",)),
        _Source(
            "COIL100 (reconstruction, 7178 of 7200 images)",
            "COIL100_7178.npz",
            "34437e17aa322e87c56cae10baf764d668ce336a1b1a66cdffc5bf7faeae9e10",
            (7178, 1024),
            100,
        ),
    ),
    "PIE": (
        _Source(
            "PIE",
            "PIE.npz",
            "5e48d41a398a53b2513ae6ab1bbb979e984018c715d79d50101e51d0249d9009",
            (2856, 1024),
            68,
            ("PIE_pose27.mat", "PIE.mat"),
        ),
    ),
    "TDT2": (
        _Source(
            "TDT2",
            "TDT2.npz",
            "6af06655482296a038b60c706619385bc7902079b66d956e528a957b23b14e6a",
            (9394, 36771),
            30,
            ("TDT2.mat",),
        ),
    ),
}
_PLANETOID = "https://github.com/kimiyoung/planetoid"
_GRAPHS = {
    "cora": _Source(
        "cora",
        "graph_cora.npz",
        "e6de8d875b90a57996694e26d8055dc9ae844e4ff6bb25ad6eff0d39794e1ee2",
        (2708, 2708),
        7,
        page=_PLANETOID,
    ),
    "pubmed": _Source(
        "pubmed",
        "graph_pubmed.npz",
        "b232a94ca74089461e8929b24e8d7fd2eb8dc78263a322ba102979f180558012",
        (19717, 19717),
        3,
        page=_PLANETOID,
    ),
    "polblogs": _Source(
        "polblogs",
        "graph_polblogs.npz",
        "5b73f5202a5173f0c772dc8275fcad7104dd83bc0180578e60834eb890843601",
        (1490, 1490),
        2,
        page="https://github.com/danielzuegner/nettack",
    ),
    "email-Eu-core": _Source(
        "email-Eu-core",
        "graph_email_eu_core.npz",
        "f96b8384206f50c622a5b397b7c5cefa2e501c82235ea940774f389a9d8c8e6b",
        (1005, 1005),
        42,
        page="https://snap.stanford.edu/data/email-Eu-core.html",
    ),
}


def load_orl(data_home: str | PathLike[str] | None = None, *, source: str = "files") -> Dataset:
    """Load the ORL faces: 400 images of 64 x 64 pixels, 40 people.

    Parameters
    ----------
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.
    source : {"files", "olivetti"}, default="files"
        "olivetti" takes the same photographs from scikit-learn, which may download them.

    Returns
    -------
    dataset : Dataset
    """
    check_choice("source", source, ("files", "olivetti"))
    if source == "files":
        return load_dataset("ORL", data_home)
    from sklearn.datasets import fetch_olivetti_faces

    faces = fetch_olivetti_faces()
    return Dataset(faces.data.astype(np.float64), faces.target, "ORL (Olivetti faces of scikit-learn)")


def load_yaleb(data_home: str | PathLike[str] | None = None) -> Dataset:
    """Load the cropped Extended Yale B faces: 2414 images of 32 x 32 pixels, 38 people.

    Parameters
    ----------
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.

    Returns
    -------
    dataset : Dataset
    """
    return load_dataset("YaleB", data_home)


def load_coil20(data_home: str | PathLike[str] | None = None) -> Dataset:
    """Load COIL-20: 1440 images of 32 x 32 pixels, 20 objects.

    Parameters
    ----------
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.

    Returns
    -------
    dataset : Dataset
    """
    return load_dataset("COIL20", data_home)


def load_coil100(data_home: str | PathLike[str] | None = None) -> Dataset:
    """Load COIL-100: 7200 images of 32 x 32 pixels, 100 objects, or a reconstruction with 7178 of them.

    The original MATLAB file is preferred; ``name`` says which of the two was found.

    Parameters
    ----------
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.

    Returns
    -------
    dataset : Dataset
    """
    return load_dataset("COIL100", data_home)


def load_pie(data_home: str | PathLike[str] | None = None) -> Dataset:
    """Load CMU PIE, pose 27: 2856 images of 32 x 32 pixels, 68 people.

    Parameters
    ----------
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.

    Returns
    -------
    dataset : Dataset
    """
    return load_dataset("PIE", data_home)


def load_tdt2(data_home: str | PathLike[str] | None = None) -> Dataset:
    """Load TDT2: raw counts of 36771 terms in 9394 documents, the 30 largest classes, as a sparse matrix.

    Parameters
    ----------
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.

    Returns
    -------
    dataset : Dataset
    """
    return load_dataset("TDT2", data_home)


def load_graph(name: str, data_home: str | PathLike[str] | None = None) -> GraphDataset:
    """Load one of the small graphs.

    Parameters
    ----------
    name : {"cora", "pubmed", "polblogs", "email-Eu-core"}
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.

    Returns
    -------
    dataset : GraphDataset
    """
    source = _GRAPHS[check_choice("name", name, tuple(_GRAPHS))]
    source, path = _locate((source,), data_home)
    # Some nodes of these graphs have no label: their class is 0 in the file, and not counted.
    data, labels = _read_npz(path, source)
    return GraphDataset(data, labels - 1, source.name)


def load_dataset(name: str, data_home: str | PathLike[str] | None = None) -> Dataset:
    """Load one of the six sets by the paper's name of it.

    Parameters
    ----------
    name : {"ORL", "YaleB", "COIL20", "COIL100", "PIE", "TDT2"}
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.

    Returns
    -------
    dataset : Dataset
    """
    source, path = _locate(_SOURCES[check_choice("name", name, tuple(_SOURCES))], data_home)
    read = _read_npz if path.suffix == ".npz" else _read_mat
    data, labels = read(path, source)
    _, target = np.unique(labels, return_inverse=True)
    return Dataset(data, target, source.name)


def find_dataset(name: str, data_home: str | PathLike[str] | None = None) -> DatasetFile:
    """Find the file that :func:`load_dataset` or :func:`load_graph` would read, without reading it.

    Parameters
    ----------
    name : {"ORL", "YaleB", "COIL20", "COIL100", "PIE", "TDT2", "cora", "pubmed", "polblogs", "email-Eu-core"}
    data_home : path, optional
        Folder with the file; by default the one in ``SYMRELU_DATA``.

    Returns
    -------
    found : DatasetFile
    """
    check_choice("name", name, (*_SOURCES, *_GRAPHS))
    sources = (_GRAPHS[name],) if name in _GRAPHS else _SOURCES[name]
    source, path = _locate(sources, data_home)
    return DatasetFile(source.name, path, source.shape[0], _sha256(path, source))


def _locate(sources: tuple[_Source, ...], data_home: str | PathLike[str] | None) -> tuple[_Source, Path]:
    """Return the first file that is there; MATLAB files come before npz files."""
    folder = _folder(data_home, sources)
    for source in sources:
        for name in source.files:
            if (folder / name).exists():
                return source, folder / name
    raise _missing(sources, folder)


def _folder(data_home: str | PathLike[str] | None, sources: tuple[_Source, ...]) -> Path:
    given = data_home if data_home is not None else os.environ.get(VARIABLE)
    if not given:
        raise FileNotFoundError(
            f"{sources[0].name} needs a data directory: pass data_home=, or set the environment variable "
            f"{VARIABLE} to the folder that holds {_files(sources)}. It is published at {sources[0].page}."
        )
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"The data directory {folder} does not exist.")
    return folder


def _files(sources: tuple[_Source, ...]) -> str:
    return " or ".join(name for source in sources for name in source.files)


def _missing(sources: tuple[_Source, ...], folder: Path) -> FileNotFoundError:
    return FileNotFoundError(
        f"{sources[0].name} was not found: put {_files(sources)} into {folder}. "
        f"It is published at {sources[0].page}."
    )


def _read_mat(path: Path, source: _Source) -> tuple[Any, np.ndarray]:
    try:
        content = io.loadmat(path, variable_names=["fea", "gnd"], spmatrix=False)
        data, labels = content["fea"], content["gnd"]
    except (MatReadError, ValueError, OSError, KeyError, NotImplementedError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as a MATLAB file with fea and gnd: {error}.") from error
    return _checked(path, source, data, np.asarray(labels).ravel())


def _sha256(path: Path, source: _Source) -> str:
    """Return the SHA-256 of a file; that of an npz file must be the known one."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if path.suffix == ".npz" and digest != source.sha256:
        raise ValueError(
            f"{path} is not the file it should be: its SHA-256 is {digest}, expected {source.sha256}. "
            "Copy it again."
        )
    return digest


def _read_npz(path: Path, source: _Source) -> tuple[Any, np.ndarray]:
    _sha256(path, source)
    with open_npz(path) as content:
        if "indptr" in content:
            parts = (content["data"].astype(np.float64), content["indices"], content["indptr"])
            data: Any = sparse.csr_array(parts, shape=tuple(content["shape"]))
        else:
            data = content["fea"].astype(np.float64)
            data = data / float(content["scale"]) if "scale" in content else data
        return _checked(path, source, data, content["gnd"])


def _checked(path: Path, source: _Source, data: Any, labels: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return float64 data, or raise if they are not the set they should be."""
    classes = len(np.unique(labels[labels > 0]))
    if data.shape != source.shape or len(labels) != source.shape[0] or classes != source.classes:
        raise ValueError(
            f"{path} is not {source.name}: expected {source.shape[0]} x {source.shape[1]} with "
            f"{source.classes} classes, got {' x '.join(map(str, data.shape))} with {classes}."
        )
    data = sparse.csr_array(data) if sparse.issparse(data) else np.asarray(data)
    return data.astype(np.float64), labels.astype(np.int64)
