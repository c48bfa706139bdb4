"""The data sets of the paper, and some graphs, read from a data directory.

The files are not part of the package: most are for research use only. They are looked for in the folder given
as ``data_home``, or in the one that the environment variable ``SYMRELU_DATA`` names. Two forms are read: the
original MATLAB files with the variables ``fea`` and ``gnd``, and compact npz files, which must have the SHA-256
listed in ``datasets/sources.py``.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

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
    source, path = locate(GRAPHS[check_choice("name", name, tuple(GRAPHS))], data_home)
    M, labels = read(path, source)
    # Some nodes of these graphs have no label: their class is 0 in the file, and not counted.
    return GraphDataset(M, labels - 1, source.name)


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
    source, path = locate(SAMPLES[check_choice("name", name, tuple(SAMPLES))], data_home)
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
    known = SAMPLES | GRAPHS
    source, path = locate(known[check_choice("name", name, tuple(known))], data_home)
    return DatasetFile(source.name, path, source.shape[0], checked_sha256(path, source))
