"""What the estimators share: reading the input, calling :func:`symrelu.decompose`, telling how it went."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from symrelu.checkpoint import as_checkpoint
from symrelu.decompose import decompose
from symrelu.estimators.callbacks import CallbackSupportMixin, StepTasks, fitted_attributes
from symrelu.graphs import SelfTuningGraph, as_similarity
from symrelu.loop import Limits
from symrelu.progress import check_verbose
from symrelu.solution import Solution, Status
from symrelu.validation import (
    check_choice,
    check_integer,
    random_generator,
    reject_foreign_objects,
    reject_masked_arrays,
)

_STOPPED = (Status.INTERRUPTED, Status.CALLBACK)  # by someone: there is to be no further fit
_STREAM = 3  # of random numbers: the seeds of further fits must not be related to the start of the first


class DecompositionEstimator(CallbackSupportMixin, BaseEstimator):
    """An estimator that fits a factor of a similarity matrix."""

    solution_: Solution
    embedding_: np.ndarray

    affinity: str = "precomputed"
    warm_start: bool = False
    n_init: int = 1
    n_jobs: int | None = None

    _affinities: tuple[str, ...] = ("precomputed", "self_tuning")

    # Ends that need no warning, because they are what the estimator aims at.
    _usual_ends: tuple[Status, ...] = ()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.affinity == "precomputed"
        tags.input_tags.pairwise = precomputed
        tags.input_tags.positive_only = precomputed
        tags.input_tags.sparse = True
        return tags

    def _similarity(self, X: Any) -> Any:
        """Return the similarity matrix that X is, or that is made of it."""
        check_choice("affinity", self.affinity, self._affinities)
        for name in ("node_names_", "_graph", "affinity_matrix_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self._takes_similarities(X):
            X = self._without_names(X)
            return validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_non_negative=True
            )
        reject_foreign_objects(X, "X")
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        self._graph = SelfTuningGraph.of(X)
        self.affinity_matrix_ = self._graph.matrix
        return self.affinity_matrix_

    def _takes_similarities(self, X: Any) -> bool:
        """Whether X is the similarity matrix itself, rather than samples."""
        return self.affinity == "precomputed"

    def _without_names(self, X: Any) -> Any:
        """Return X as a matrix and keep the names of its nodes, where it has some."""
        reject_masked_arrays(X, "X")
        matrix, names = as_similarity(X)
        if names is not None:
            self.node_names_ = names
        if names is None or not isinstance(names[0], str) or not hasattr(X, "columns"):
            return matrix
        # scikit-learn reads the names of the columns off a frame. They are brought into the order of the rows.
        return X if list(X.columns) == list(names) else X.loc[:, names]

    def _check_settings(self, settings: dict[str, Any]) -> None:
        """Raise for settings that would only be refused after a choice of the rank, or by nobody."""
        Limits(**{name: settings[name] for name in ("tol", "gtol", "ftol", "max_iter", "max_time")})
        checkpoint = as_checkpoint(settings.get("checkpoint"))
        check_verbose(settings.get("verbose", 0))
        if check_integer("n_init", self.n_init, 1) > 1:
            if not isinstance(settings["init"], str):
                raise ValueError(
                    "n_init > 1 needs starts that differ: pass the name of one as init, not an array."
                )
            if checkpoint is not None:
                raise ValueError("A checkpoint is of one fit: pass n_init=1, or no checkpoint.")

    def _decompose(self, X: Any, M: Any, rank: int, **settings: Any) -> Solution:
        """Fit a factor of M, keep what all estimators tell of it, and warn if a limit ended the fit.

        X is what ``fit`` got, for the callbacks.
        """
        self._check_settings(settings)
        n_init = self.n_init
        if self.warm_start and hasattr(self, "embedding_"):
            settings["init"], n_init = self._continued(M.shape[0], rank), 1
        told = {name: settings[name] for name in ("alpha", "zero_weight", "diagonal")}
        tasks = StepTasks(self, X, n_init * settings["max_iter"], told)
        callback = tasks.step if self._has_callbacks() else None
        if n_init == 1:
            solution = decompose(M, rank, callback=callback, **settings)
        else:
            solution = self._joined(self._several(n_init, M, rank, settings, callback), M, settings)
        for name, value in fitted_attributes(solution).items():
            setattr(self, name, value)
        self._conclude(solution)
        tasks.end()
        if not solution.converged and solution.status not in self._usual_ends:
            warnings.warn(
                f"{type(self).__name__} stopped before convergence: {solution.status.value} "
                f"(relative error {solution.relative_error:.3g}). {solution.status.advice}",
                ConvergenceWarning,
                stacklevel=4,  # past the decorator of fit
            )
        return solution

    def _conclude(self, solution: Solution) -> None:
        """Make of the factor what else an estimator has, before it is shown to callbacks as fitted."""

    def _continued(self, n: int, rank: int) -> np.ndarray:
        """Return the last factor as a start."""
        if self.embedding_.shape != (n, rank):
            raise ValueError(
                f"warm_start=True goes on from the last factor, of shape {self.embedding_.shape}, but this fit "
                f"needs {(n, rank)}. Set warm_start=False, or fit a clone."
            )
        return self.embedding_

    def _several(
        self, n_init: int, M: Any, rank: int, settings: dict[str, Any], callback: Any | None
    ) -> list[Solution]:
        """Return fits from several seeds; fewer if Ctrl-C or a callback ended one of them."""
        settings = dict(settings)
        random_state = settings.pop("random_state")
        # An integer is the seed of the first fit. A generator gives the seeds of all (a RandomState has no
        # integers()).
        seeds = [random_state] if isinstance(random_state, (int, np.integer)) else []
        drawn = random_generator(random_state, _STREAM).random(n_init - len(seeds))
        seeds += (2**31 * drawn).astype(np.int64).tolist()
        fits = []
        n_jobs = self.n_jobs if callback is None else 1  # callbacks live in this process
        for fit in Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(decompose)(M, rank, random_state=seed, callback=callback, **settings) for seed in seeds
        ):
            fits.append(fit)
            if fit.status in _STOPPED:
                break
        return fits

    def _joined(self, fits: list[Solution], M: Any, settings: dict[str, Any]) -> Solution:
        """Return what is made of several fits: the one of lowest objective."""
        del M, settings  # for estimators that make something else of them
        best, last = min(fits, key=lambda fit: fit.objective), fits[-1].status
        return replace(best, status=last) if last in _STOPPED else best

    def _has_callbacks(self) -> bool:
        return bool(getattr(self, "_skl_callbacks", None))
