"""Read the files of published data: MATLAB files with ``fea`` and ``gnd``, and compact npz files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse
from scipy.io.matlab import MatReadError

from symrelu.datasets.sources import Source, checked_sha256
from symrelu.files import open_npz


def read(path: Path, source: Source) -> tuple[Any, np.ndarray]:
    """Return the data of a file as float64 and its labels, or raise if it is not the expected set.

    Without labels in the file, all of them are 0, which stands for a node without a label.
    """
    data, labels = _read_npz(path, source) if path.suffix == ".npz" else _read_mat(path)
    _check_contents(path, source, data, labels)
    data = sparse.csr_array(data) if sparse.issparse(data) else np.asarray(data)
    return data.astype(np.float64), labels.astype(np.int64)


def _read_mat(path: Path) -> tuple[Any, np.ndarray]:
    try:
        content = io.loadmat(path, variable_names=["fea", "gnd"], spmatrix=False)
        data, labels = content["fea"], content["gnd"]
    except (MatReadError, ValueError, OSError, LookupError, NotImplementedError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as a MATLAB file with fea and gnd: {error}.") from error
    return data, np.asarray(labels).ravel()


def _read_npz(path: Path, source: Source) -> tuple[Any, np.ndarray]:
    checked_sha256(path, source)
    with open_npz(path) as content:
        if "indptr" in content:
            parts = (content["data"].astype(np.float64), content["indices"], content["indptr"])
            data: Any = sparse.csr_array(parts, shape=tuple(content["shape"]))
        else:
            data = content["fea"].astype(np.float64)
            # Pixels are stored as integers; dividing by the scale gives the values of the original file.
            data = data / float(content["scale"]) if "scale" in content else data
        return data, content["gnd"] if source.classes else np.zeros(data.shape[0], np.int64)


def _check_contents(path: Path, source: Source, data: Any, labels: np.ndarray) -> None:
    """Raise unless the shape and the number of classes are those of the set."""
    # Graphs mark nodes without a label by 0, which is not a class.
    classes = len(np.unique(labels[labels > 0]))
    if data.shape != source.shape or len(labels) != source.shape[0] or classes != source.classes:
        raise ValueError(
            f"{path} is not {source.name}: expected {source.shape[0]} x {source.shape[1]} with "
            f"{source.classes} classes, got {' x '.join(map(str, data.shape))} with {classes}."
        )
