"""Load the data sets of the paper, and some graphs, from a data directory.

The files are not part of the package: most are for research use only. They are read from the folder passed as
``data_home``, or from the folder named by the environment variable ``SYMRELU_DATA``. Two formats are supported:
the original MATLAB files with the variables ``fea`` and ``gnd``, and compact npz files whose SHA-256 must match
the one listed in ``datasets/sources.py``.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from symrelu.datasets.readers import read
from symrelu.datasets.sources import GRAPHS, SAMPLES, checked_sha256, locate
from symrelu.validation import check_choice


class Dataset(NamedTuple):
    """Samples with labels.

    Attributes
    ----------
    data : ndarray or csr_array of shape (n_samples, n_features)
        Raw samples, as float64.
    target : ndarray of shape (n_samples,)
        Class of each sample, counted from 0.
    name : str
        Name to print. It says so if the set is not the original one.
    """

    data: Any
    target: np.ndarray
    name: str


class GraphDataset(NamedTuple):
    """A graph, with labels if it has any.

    Estimators and :func:`symrelu.decompose` accept it in place of ``M``.

    Attributes
    ----------
    M : csr_array of shape (n_nodes, n_nodes)
        Symmetric adjacency matrix of zeros and ones, zero diagonal.
    target : ndarray of shape (n_nodes,), or None
        Class of each node, counted from 0; -1 if it has no label. None if no node has one.
    name : str
    """

    M: Any
    target: np.ndarray | None
    name: str


class DatasetFile(NamedTuple):
    """The file of a data set.

    Attributes
    ----------
    name : str
        Name to print. It says so if the set is not the original one.
    path : Path
    n_samples : int
    sha256 : str
        SHA-256 of the file that was found.
    """

    name: str
    path: Path
    n_samples: int
    sha256: str


def load_orl(data_home: str | PathLike[str] | None = None, *, source: str = "files") -> Dataset:
    """Load the ORL faces: 400 images of 64 x 64 pixels, 40 people.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds the file. Defaults to the folder named by ``SYMRELU_DATA``.
    source : {"files", "olivetti"}, default="files"
        "olivetti" takes the same photographs from scikit-learn, which downloads them if necessary.

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


def load_graph(name: str, data_home: str | PathLike[str] | None = None) -> GraphDataset:
    """Load one of the small graphs.

    Parameters
    ----------
    name : {"cora", "pubmed", "polblogs", "email-Eu-core", "celegans", "usair", "ecoli", "ppi"}
        The last four have no labels.
    data_home : path, optional
        Folder that holds the file. Defaults to the folder named by ``SYMRELU_DATA``.

    Returns
    -------
    dataset : GraphDataset
    """
    source, path = locate(GRAPHS[check_choice("name", name, tuple(GRAPHS))], data_home)
    M, labels = read(path, source)
    # The files number the classes from 1 and write 0 for a node without a label, which becomes -1.
    return GraphDataset(M, labels - 1 if source.classes else None, source.name)


def load_dataset(name: str, data_home: str | PathLike[str] | None = None) -> Dataset:
    """Load one of the six sets of samples by its name in the paper, as the loaders below do."""
    source, path = locate(SAMPLES[check_choice("name", name, tuple(SAMPLES))], data_home)
    data, labels = read(path, source)
    # The files count classes from 1, as MATLAB does.
    _, target = np.unique(labels, return_inverse=True)
    return Dataset(data, target, source.name)


def find_dataset(name: str, data_home: str | PathLike[str] | None = None) -> DatasetFile:
    """Find the file that :func:`load_dataset` or :func:`load_graph` would read, without reading it.

    Parameters
    ----------
    name : {"ORL", "YaleB", "COIL20", "COIL100", "PIE", "TDT2"} or a name that :func:`load_graph` accepts
    data_home : path, optional
        Folder that holds the file. Defaults to the folder named by ``SYMRELU_DATA``.

    Returns
    -------
    found : DatasetFile
    """
    known = SAMPLES | GRAPHS
    source, path = locate(known[check_choice("name", name, tuple(known))], data_home)
    return DatasetFile(source.name, path, source.shape[0], checked_sha256(path, source))


class _Loader(Protocol):
    """What type checkers see of the loaders below."""

    def __call__(self, data_home: str | PathLike[str] | None = None) -> Dataset: ...


_DOCSTRING = """Load {contents}.

{remark}Parameters
----------
data_home : path, optional
    Folder that holds the file. Defaults to the folder named by ``SYMRELU_DATA``.

Returns
-------
dataset : Dataset
"""


def _loader(name: str, contents: str, remark: str = "") -> _Loader:
    """Return the function ``load_<name>`` that loads one of the sets of samples."""

    def load(data_home: str | PathLike[str] | None = None) -> Dataset:
        return load_dataset(name, data_home)

    # help(), Sphinx and pickle find a function by these attributes, and must not see the inner name.
    load.__name__ = load.__qualname__ = f"load_{name.lower()}"
    load.__doc__ = _DOCSTRING.format(contents=contents, remark=remark and f"{remark}\n\n")
    return load


load_yaleb = _loader("YaleB", "the cropped Extended Yale B faces: 2414 images of 32 x 32 pixels, 38 people")
load_coil20 = _loader("COIL20", "COIL-20: 1440 images of 32 x 32 pixels, 20 objects")
load_coil100 = _loader(
    "COIL100",
    "COIL-100: 7200 images of 32 x 32 pixels, 100 objects, or a reconstruction with 7178 of them",
    remark="The original MATLAB file is preferred; ``name`` says which of the two was found.",
)
load_pie = _loader("PIE", "CMU PIE, pose 27: 2856 images of 32 x 32 pixels, 68 people")
load_tdt2 = _loader(
    "TDT2", "TDT2: raw counts of 36771 terms in 9394 documents, the 30 largest classes, as a sparse matrix"
)
