"""SavedModelMixin: a fitted estimator in an npz file of arrays and JSON, without pickle, validated on load."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.callbacks import fitted_attributes
from symrelu.files import check_names, read_header, read_npz, without_objects, write_atomically
from symrelu.files.entries import names_of_json, names_to_json, read_floats, read_sparse, sparse_entries
from symrelu.fitted.archive import arrays_of, solution_fields
from symrelu.fitted.fit_summary import FitSummary
from symrelu.fitted.history import Status
from symrelu.fitted.models import SymmetricReLU
from symrelu.fitted.solution import Solution
from symrelu.graphs import SelfTuningGraph
from symrelu.problem import RowIndex
from symrelu.solvers import SOLVERS
from symrelu.validation import check_choice, check_integer, check_number

FORMAT_VERSION = 1
_HEADER = "model"  # the entry of an archive that holds the header
_PLAIN = (str, bool, int, float, type(None))
# A checkpoint belongs to one fit, and the file of it may be gone when the model is loaded.
_LEFT_OUT = ("checkpoint",)


class SavedModelMixin:
    """Methods ``save`` and ``load`` for estimators whose result is a Solution."""

    # Parts of the file in addition to the solution (see _PARTS), and whether a file must have them.
    _saved_parts: ClassVar[dict[str, bool]] = {}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model and the names of its nodes to an npz file (arrays and JSON, no pickle).

        Names must be strings, integers or tuples of these; others raise an error before anything is written.
        Parameters that are arrays, generators or solvers of other libraries are not in the file, nor is
        ``checkpoint``: they have their defaults in the loaded estimator.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        header = json.dumps(_header_of(self))
        arrays = {_HEADER: np.array(header), **arrays_of(self.solution_)}  # type: ignore[attr-defined]
        for part in self._saved_parts:
            if hasattr(self, _PARTS[part].attribute):
                arrays |= {f"{part}.{name}": array for name, array in _PARTS[part].entries(self).items()}
        with write_atomically(path) as file:
            np.savez(file, **without_objects(**arrays))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return a fitted estimator from a file that :meth:`save` wrote.

        The file is validated on load: it takes no more memory than its size on disk, and the error names what
        is wrong with it. Scores behind a choice (``selection_``) are not in the file.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        model : estimator
        """
        arrays = read_npz(path, cls.__name__)
        try:
            return _loaded(cls, arrays)
        except (TypeError, ValueError) as error:
            reason = str(error).rstrip(".")
            raise ValueError(f"{path} cannot be read as a saved {cls.__name__}: {reason}.") from error


class Part(NamedTuple):
    """How some attributes of an estimator are stored.

    ``attribute`` is one that an estimator has if it has the part, ``entries`` returns the arrays of the part,
    and ``restore`` sets the attributes from them.
    """

    attribute: str
    entries: Callable[[Any], dict[str, np.ndarray]]
    restore: Callable[[Any, dict[str, np.ndarray]], None]


def _header_of(estimator: Any) -> dict[str, Any]:
    header = {
        "format": f"symrelu.{type(estimator).__name__}",
        "version": FORMAT_VERSION,
        "parameters": _parameters_to_json(estimator.get_params(deep=False)),
        "n_features_in": estimator.n_features_in_,
    }
    if hasattr(estimator, "node_names_"):
        header["names"] = names_to_json(estimator.node_names_)
    if hasattr(estimator, "feature_names_in_"):
        header["feature_names"] = [str(name) for name in estimator.feature_names_in_]
    return header


def _parameters_to_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that JSON can hold, a solver of this library as its name and settings."""
    stored: dict[str, Any] = {}
    names = {kind: name for name, kind in SOLVERS.items()}
    for name, value in parameters.items():
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) in names:
            stored[name] = {"solver": names[type(value)], "settings": asdict(value)}
        elif isinstance(value, _PLAIN) and name not in _LEFT_OUT:
            stored[name] = value
    return stored


def _loaded(cls: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the estimator in an archive, or raise an error that the caller completes."""
    if "solution" not in arrays:
        raise ValueError("it has no entry 'solution'")
    of_solution = {name: a for name, a in arrays.items() if name != _HEADER and "." not in name}
    solution = Solution(**solution_fields(of_solution))
    if not isinstance(solution.model, SymmetricReLU):
        raise ValueError(f"its model is {type(solution.model).__name__} ({solution.model.formula})")
    header = _checked_header(cls, arrays) if _HEADER in arrays else _header_for(cls, solution)
    model = cls(**_parameters_of_json(cls, header["parameters"]))
    n = len(solution.U)
    model.n_features_in_ = check_integer("n_features_in", header["n_features_in"], 1)
    if "names" in header:
        model.node_names_ = names_of_json(header["names"], n)
    if "feature_names" in header:
        model.feature_names_in_ = _feature_names(header["feature_names"], model.n_features_in_)
    for name, value in fitted_attributes(solution).items():
        setattr(model, name, value)
    _restore_parts(model, arrays)
    if (model.affinity == "self_tuning") != hasattr(model, "_graph"):
        raise ValueError(f"it does not have the parts of a model with affinity={model.affinity!r:.80}")
    if not hasattr(model, "_graph") and model.n_features_in_ != n:
        raise ValueError(f"its n_features_in is {model.n_features_in_}, but it has {n} items")
    model.stop_reason_ = model._stop_reason(solution)
    return model


def _checked_header(cls: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    header = read_header(arrays, _HEADER)
    saved, wanted = header.get("format"), f"symrelu.{cls.__name__}"
    if saved != wanted:
        raise ValueError(f"it holds a {str(saved).removeprefix('symrelu.')!r:.80}")
    if header.get("version") != FORMAT_VERSION:
        raise ValueError(f"its version is {header.get('version')!r}, this release reads {FORMAT_VERSION}")
    required = {"format", "version", "parameters", "n_features_in"}
    check_names("its header", header, required, {"names", "feature_names"})
    return header


def _header_for(cls: Any, solution: Solution) -> dict[str, Any]:
    """Return the header of a file that is only a Solution, as :func:`symrelu.decompose` gives it."""
    settings = ("n_negative", "diagonal", "zero_weight", "support")
    parameters = {"n_components": solution.rank} | {name: getattr(solution, name) for name in settings}
    known = {name: value for name, value in parameters.items() if name in cls().get_params()}
    return {"parameters": known, "n_features_in": len(solution.U)}


def _parameters_of_json(cls: Any, stored: Any) -> dict[str, Any]:
    """Return parameters for the constructor; like there, their values are checked by the next fit."""
    if not isinstance(stored, dict):
        raise ValueError("its parameters must be a JSON object")
    check_names("its list of parameters", stored, set(), cls().get_params())
    return {name: _parameter(name, value) for name, value in stored.items()}


def _parameter(name: str, value: Any) -> Any:
    if name == "solver" and isinstance(value, dict):
        check_names("its solver", value, {"solver", "settings"})
        return SOLVERS[check_choice("solver", value["solver"], tuple(SOLVERS))](**value["settings"])
    if not isinstance(value, _PLAIN):
        raise ValueError(f"its parameter {name} must be a number, a word or null, got {value!r:.80}")
    return value


def _feature_names(stored: Any, n: int) -> np.ndarray:
    if not isinstance(stored, list) or len(stored) != n or not all(isinstance(name, str) for name in stored):
        raise ValueError(f"its header must have a name for each of its {n} features")
    return np.array(stored, dtype=object)


def _restore_parts(model: Any, arrays: dict[str, np.ndarray]) -> None:
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name in arrays:
        part, dot, entry = name.partition(".")
        if dot:
            parts.setdefault(part, {})[entry] = arrays[name]
    required = {part for part, always in model._saved_parts.items() if always}
    check_names("it", parts, required, model._saved_parts)
    for part, entries in parts.items():
        _PARTS[part].restore(model, entries)


def _restore_rows(model: Any, entries: dict[str, np.ndarray]) -> None:
    model._row_index = RowIndex.of_entries(entries, len(model.embedding_))


def _restore_graph(model: Any, entries: dict[str, np.ndarray]) -> None:
    model._graph = SelfTuningGraph.of_entries(entries, len(model.embedding_), model.n_features_in_)
    model.affinity_matrix_ = model._graph.matrix


def _link_entries(model: Any) -> dict[str, np.ndarray]:
    # Seeds that are generators cannot be stored.
    fits = [(_seed(fit.seed), fit.n_iter, fit.status.name, fit.relative_error) for fit in model.fits_]
    return {
        "root_degrees": model.root_degrees_,
        "smoothing": np.array(model.smoothing_, np.float64),
        "shrinkage": np.array(model.shrinkage_, np.float64),
        "fits": np.array(json.dumps({"fits": fits})),
        **sparse_entries(model.known_),
    }


def _seed(seed: Any) -> int | None:
    return int(seed) if isinstance(seed, (int, np.integer)) else None


def _restore_links(model: Any, entries: dict[str, np.ndarray]) -> None:
    names = {"root_degrees", "smoothing", "shrinkage", "fits", "indptr", "indices"}
    check_names("its part 'links'", entries, names)
    n = len(model.embedding_)
    model.root_degrees_ = read_floats(entries, "root_degrees", (n,))
    if (model.root_degrees_ < 0).any():
        raise ValueError("its root_degrees must not be negative")
    model.smoothing_ = check_number(
        "smoothing", float(read_floats(entries, "smoothing", ())), low_included=False
    )
    model.shrinkage_ = check_number("shrinkage", float(read_floats(entries, "shrinkage", ())))
    model.known_ = read_sparse(entries, (n, n), "its links")
    stored = read_header(entries, "fits").get("fits")
    if not isinstance(stored, list) or not stored:
        raise ValueError("its fits must be a list")
    model.fits_ = tuple(map(_summary, stored))


def _summary(stored: Any) -> FitSummary:
    if not isinstance(stored, list) or len(stored) != 4:
        raise ValueError(f"a fit must have a seed, n_iter, a status and a relative error, got {stored!r:.80}")
    seed, n_iter, status, error = stored
    return FitSummary(
        None if seed is None else check_integer("seed", seed, 0),
        check_integer("n_iter", n_iter, 0),
        Status[check_choice("status", status, tuple(Status.__members__))],
        check_number("relative_error", error),
    )


_PARTS = {
    "row_index": Part("_row_index", lambda model: model._row_index.entries(), _restore_rows),
    "graph": Part("_graph", lambda model: model._graph.entries(), _restore_graph),
    "links": Part("known_", _link_entries, _restore_links),
}
