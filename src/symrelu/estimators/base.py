"""Base class of the estimators: read the input, call :func:`symrelu.decompose`, set fitted attributes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from symrelu.estimators.callbacks import CallbackSupportMixin, StepTasks, fitted_attributes
from symrelu.estimators.folders import folder_problem, is_folder
from symrelu.estimators.naming import NodeNamesMixin
from symrelu.estimators.searches import mark_clone, warn_not_converged, warn_once_in_a_search
from symrelu.fit.averaging import mean_solution
from symrelu.fit.decompose import decompose
from symrelu.fit.settings import TABLE, Limits, Model, Run, Start, pick
from symrelu.fitted.history import Status
from symrelu.fitted.solution import Solution
from symrelu.graphs import Labelled, SelfTuningGraph, as_similarity
from symrelu.graphs.edges import is_edge_table
from symrelu.graphs.tensors import from_torch, is_tensor
from symrelu.plots.choice import PlotMixin
from symrelu.problem import Problem, remember_gpu
from symrelu.validation import (
    check_choice,
    check_integer,
    check_number,
    is_well_formed_sparse,
    random_generator,
    reject_foreign_objects,
    reject_masked_arrays,
    reject_non_matrix,
    reject_text,
    stored,
)

STOPPED_BY_USER = (Status.INTERRUPTED, Status.CALLBACK)  # no further fit is started after these
_RESULTS = ("solution_", "vectors_")  # set by a fit when nothing can fail any more
_STREAM = 3  # random stream: the seeds of further fits must be independent of the start of the first


def whole_or_not_at_all(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``fit`` so that an estimator whose fit fails is as it was before, with all of its earlier fit.

    What is read from the input, such as names, is set before the fit ends, because callbacks need it. Without
    this, it would stay there with the vectors of the earlier fit. A fit that has its result has not failed,
    even if a warning about it is raised.
    """

    @functools.wraps(fit)
    def fit_or_restore(estimator: Any, *arguments: Any, **options: Any) -> Any:
        before = dict(vars(estimator))
        try:
            return fit(estimator, *arguments, **options)
        except BaseException:
            if all(vars(estimator).get(name) is before.get(name) for name in _RESULTS):
                vars(estimator).clear()
                vars(estimator).update(before)
            raise

    return fit_or_restore


class DecompositionEstimator(CallbackSupportMixin, NodeNamesMixin, PlotMixin, BaseEstimator):
    """An estimator that fits a factor of a similarity matrix."""

    solution_: Solution
    embedding_: np.ndarray
    stop_reason_: str

    n_negative: int | str
    backend: str
    # Defaults for estimators that do not have these parameters.
    affinity: str = "precomputed"
    shrinkage: Any = 0.0
    warm_start: bool = False
    n_init: Any = 1
    n_jobs: int | None = None

    _pictures: ClassVar[tuple[str, ...]] = ("map", "spectrum", "convergence")
    _affinities: tuple[str, ...] = ("precomputed", "self_tuning")

    # Whether several fits are averaged: the mean predicts better than the fit with the lowest objective.
    _takes_the_mean: bool = False

    _takes_folders: bool = False  # whether a matrix that is not in memory can be fitted

    # Statuses that give no ConvergenceWarning, because the estimator does not aim at convergence.
    _expected_stops: tuple[Status, ...] = ()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.affinity == "precomputed"
        tags.input_tags.pairwise = precomputed  # cross-validation then splits rows and columns together
        tags.input_tags.positive_only = precomputed
        tags.input_tags.sparse = True
        return tags

    def __sklearn_clone__(self) -> Any:
        return mark_clone(super().__sklearn_clone__())

    def _problem(self, X: Any, mask: Any | None, diagonal: str) -> Problem:
        """Return the similarities that X holds, or that are computed from its samples, as a Problem."""
        self._check_settings(self._settings())
        check_choice("affinity", self.affinity, self._affinities)
        for name in ("node_names_", "_cached_names", "_graph", "_row_index", "affinity_matrix_"):
            self.__dict__.pop(name, None)  # left by an earlier fit
        if is_folder(X):
            return folder_problem(self, X, mask, diagonal)
        reject_text(X, "X")
        reject_masked_arrays(X, "X")
        if isinstance(X, Problem):
            raise TypeError(
                "X must be a matrix or a graph, got a Problem. Pass fit(problem.M, mask=problem.mask) and set "
                "diagonal on the estimator, or pass the Problem to symrelu.decompose."
            )
        similarities = self._similarities(X)
        if similarities is None:
            names = X.index.to_numpy(dtype=object) if hasattr(X, "columns") else None
            return Problem.of(Labelled(self._build_graph(X), names), mask, diagonal)
        matrix = self._check_similarities(X, *similarities)
        problem = Problem.of(Labelled(matrix, similarities.labels), mask, diagonal, name="X")
        remember_gpu(problem, X)
        advice = problem.advice_on_distances("X")
        problem.skip_advice_on_distances()
        if advice is not None:
            warn_once_in_a_search(self, advice, UserWarning, cause="distances", stacklevel=5)
        self._keep_rows(matrix, problem)
        return problem

    def _keep_rows(self, matrix: Any, problem: Problem) -> None:
        """Keep what is needed to recognise the rows of a precomputed matrix, for estimators that do."""

    def _build_graph(self, X: Any) -> Any:
        """Return the self-tuning graph of the samples X, and keep it for ``transform``."""
        reject_foreign_objects(X, "X")
        X = self._check_matrix(X, X, reset=True, finite=True)
        self._graph = SelfTuningGraph.of(X)
        self.affinity_matrix_ = self._graph.matrix
        return self.affinity_matrix_

    def _similarities(self, X: Any) -> Labelled | None:
        """Return the similarities in X with the names of the nodes, or None if X holds samples."""
        return self._read_similarities(X) if self.affinity == "precomputed" else None

    def _read_similarities(self, X: Any) -> Labelled:
        if _is_frame(X):
            self._check_square(X.shape)
        return as_similarity(X)

    def _check_similarities(self, X: Any, matrix: Any, names: np.ndarray | None) -> Any:
        """Return the matrix in X, which must be square, and keep the names of its nodes."""
        if names is not None:
            self.node_names_ = names
        named = matrix
        if names is not None and _is_frame(X) and isinstance(names[0], str):
            # scikit-learn takes feature_names_in_ from the columns, which must be in the order of the rows.
            named = X if list(X.columns) == list(names) else X.loc[:, names]
        matrix = self._check_matrix(matrix, named, reset=True)
        self._check_square(matrix.shape, matrix)
        self._check_n_items(matrix.shape[0])
        return matrix

    def _check_n_items(self, n: int) -> None:
        """Raise if there are too few items, for estimators that need more than one."""

    def _check_matrix(self, X: Any, named: Any, *, reset: bool, finite: bool = False) -> Any:
        """Return X as a matrix by the rules of scikit-learn; :class:`Problem` validates its values.

        ``named`` is X as the user passed it, possibly with column names.
        """
        reject_foreign_objects(X, "X")
        reject_non_matrix(X, "X")
        if not is_well_formed_sparse(X, "X") or finite:
            X = self._check_array(X, finite)
        if not reset and X.shape[1] != self.n_features_in_:
            # scikit-learn's estimator checks expect an error on NaN before one on the shape.
            self._check_array(X, finite=True)
        validate_data(self, named, reset=reset, skip_check_array=True)
        return X

    def _read_new_rows(self, X: Any, *, finite: bool = False) -> Any:
        """Return the input of ``transform`` as a matrix, with its columns in the order of the fitted items."""
        # If the fitted names are strings from a DataFrame, scikit-learn compares them itself.
        if hasattr(self, "node_names_") and not hasattr(self, "feature_names_in_") and hasattr(X, "columns"):
            X = self._in_order(X).to_numpy()
        matrix = from_torch(X).matrix if is_tensor(X) else X
        return self._check_matrix(matrix, X, reset=False, finite=finite)

    def _in_order(self, frame: Any, name: str = "X") -> Any:
        """Return a DataFrame with its columns in the order of the fitted items; raise if the names differ."""
        names, columns = list(self.node_names_), list(frame.columns)
        if columns == names:
            return frame
        strangers = set(names) ^ set(columns)
        if strangers or len(columns) != len(names):
            example = next(iter(strangers), "one of them twice")
            raise ValueError(
                f"{name} must have a column for each of the {len(names)} fitted items, got {len(columns)} "
                f"columns; the names differ, for example in {example!r}."
            )
        return frame.loc[:, names]

    def _check_array(self, X: Any, finite: bool) -> Any:
        try:
            return check_array(
                X,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=finite,
                estimator=self,
                input_name="X",
            )
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"X must hold numbers, but {error}. Convert such columns or leave them out; for a list of "
                "edges with names, pass symrelu.graphs.from_edges(X)."
            ) from error

    def _check_square(self, shape: tuple[int, ...], matrix: Any = 0.0) -> None:
        if len(shape) != 2 or shape[0] == shape[1] or 0 in shape:
            return
        gaps = "" if np.isfinite(stored(matrix)).all() else ", with NaN or infinity in it"
        samples = (
            f"pass {type(self).__name__}(affinity='self_tuning')"
            if "affinity" in self.get_params(deep=False)
            else "build a graph first: symrelu.graphs.self_tuning_graph(X)"
        )
        raise ValueError(
            f"X must be square (similarities of n items with each other), got shape {tuple(shape)}{gaps}. "
            f"For samples x features, {samples}; for a list of edges, pass symrelu.graphs.from_edges(X)."
        )

    def _settings(self) -> dict[str, Any]:
        """Return the parameters of the estimator that are settings of :func:`symrelu.decompose`."""
        return {name: value for name, value in self.get_params(deep=False).items() if name in TABLE}

    def _settings_for(self, problem: Problem, shrinkage: float | None = None) -> dict[str, Any]:
        """Return the settings for a problem, in which ``shrinkage`` has become ``alpha``.

        An estimator whose default depends on the data passes the value that it chose.
        """
        settings = self._settings()
        if settings["alpha"] is None:
            settings["alpha"] = problem.alpha_of(self.shrinkage if shrinkage is None else shrinkage)
        return settings

    def _passed_shrinkage(self) -> float | None:
        """Return ``shrinkage``, or None if it has its default; raise if it is invalid."""
        return check_number("shrinkage", self.shrinkage) or None

    def _check_settings(self, settings: dict[str, Any]) -> None:
        """Raise on invalid settings before any work."""
        settings = dict(settings)
        shrinkage = self._passed_shrinkage()
        if settings.get("alpha") is None:
            settings = {name: value for name, value in settings.items() if name != "alpha"}
        elif shrinkage is not None:
            raise ValueError(
                f"alpha and shrinkage set the same penalty, got alpha={settings['alpha']!r} and "
                f"shrinkage={shrinkage:g}. Pass shrinkage alone."
            )
        Model(rank=1, **pick(Model, settings))
        Start(**pick(Start, settings))
        Limits(**pick(Limits, settings))
        if not isinstance(settings.get("client"), str | None):
            raise TypeError(
                "client must be the address of a scheduler, because a client cannot be cloned, or None for the "
                f"current client, got {type(settings['client']).__name__}. Pass client.scheduler.address."
            )
        how = Run(**pick(Run, settings))
        if check_integer("n_init", settings.pop("n_init", self.n_init), 1) > 1:
            if not isinstance(settings["init"], str):
                raise ValueError(
                    "n_init > 1 requires different starts: pass the name of a start as init, not an array."
                )
            if how.checkpoint is not None:
                raise ValueError("A checkpoint belongs to one fit: pass n_init=1, or no checkpoint.")

    def _n_negative_below(self, rank: int) -> int | str:
        """Return ``n_negative``, lowered where needed so that one of ``rank`` columns stays positive."""
        if isinstance(self.n_negative, str):
            return self.n_negative  # "auto", which decompose resolves
        return min(check_integer("n_negative", self.n_negative, 0), rank - 1)

    def _decompose(self, X: Any, problem: Problem, rank: int, **settings: Any) -> None:
        """Fit a factor, set the fitted attributes, and warn the caller of ``fit`` if it did not converge.

        The warning comes at the end, so that the estimator is fitted even if warnings are errors. X is the
        argument of ``fit``, which the callbacks receive.
        """
        n_init = self.n_init
        settings["diagonal"] = problem.diagonal
        if self.warm_start and hasattr(self, "embedding_"):
            settings["init"], n_init = self._warm_start_factor(problem.n, rank), 1
            if settings["n_negative"] == "auto":  # the factor has its signs already
                settings["n_negative"] = self.solution_.n_negative
        tasks = StepTasks(self, X, n_init * settings["max_iter"])
        self._finish(self._solve(problem, rank, n_init, settings, tasks), tasks, stacklevel=6)

    def _solve(
        self, problem: Problem, rank: int, n_init: int, settings: dict[str, Any], tasks: StepTasks
    ) -> Solution:
        """Return the fit from one seed, or what :meth:`_combine_fits` makes of the fits from several."""
        tasks.settings = settings
        callback = tasks.step if self._has_callbacks() else None
        if n_init == 1:
            solution = decompose(problem, rank, callback=callback, **settings)
            self._keep_fits([solution], [settings["random_state"]])
            return solution
        seeds = _seeds(settings.pop("random_state"), n_init)
        fits = self._fit_several(seeds, problem, rank, settings, callback)
        self._keep_fits(fits, seeds)
        return self._combine_fits(fits, problem)

    def _finish(self, solution: Solution, tasks: StepTasks, *, stacklevel: int) -> None:
        """Set the fitted attributes, end the callback tasks, and warn if the fit did not converge."""
        for name, value in fitted_attributes(solution).items():
            setattr(self, name, value)
        self.stop_reason_ = self._stop_reason(solution)
        tasks.end()
        if not solution.converged and solution.status not in self._expected_stops:
            warn_not_converged(self, solution, stacklevel=stacklevel)

    def _keep_fits(self, fits: list[Solution], seeds: list[Any]) -> None:
        """Keep what is known of the single fits, for estimators that report it."""

    def _stop_reason(self, solution: Solution) -> str:
        """Return why the fit stopped."""
        return solution.stop_reason

    def _warm_start_factor(self, n: int, rank: int) -> np.ndarray:
        """Return the factor of the last fit as the start of this one."""
        if self.solution_.status is Status.VANISHED:
            raise ValueError(
                "warm_start=True cannot continue from a factor that became zero. Set warm_start=False."
            )
        if self.embedding_.shape != (n, rank):
            raise ValueError(
                f"warm_start=True continues from the last factor, of shape {self.embedding_.shape}, but this "
                f"fit needs {(n, rank)}. Set warm_start=False, or fit a clone."
            )
        return self.embedding_

    def _fit_several(
        self, seeds: list[Any], problem: Problem, rank: int, settings: dict[str, Any], callback: Any | None
    ) -> list[Solution]:
        """Return a fit for each seed, or fewer if Ctrl-C or a callback stopped one of them."""
        fits = []
        n_jobs = self.n_jobs if callback is None else 1  # callbacks must run in this process
        for fit in Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(decompose)(problem, rank, random_state=seed, callback=callback, **settings)
            for seed in seeds
        ):
            fits.append(fit)
            if fit.status in STOPPED_BY_USER:
                break
        return fits

    def _combine_fits(self, fits: list[Solution], problem: Problem) -> Solution:
        """Return the mean of the fits, or the one with the lowest objective."""
        if self._takes_the_mean:
            unusual = max(fits, key=lambda fit: (not fit.converged, fit.status not in self._expected_stops))
            return replace(mean_solution(fits, problem, self.backend), status=unusual.status)
        best, last = min(fits, key=lambda fit: fit.objective), fits[-1].status
        # A stop requested by the user is reported, even if an earlier fit was better.
        return replace(best, status=last) if last in STOPPED_BY_USER else best

    def _has_callbacks(self) -> bool:
        return bool(getattr(self, "_skl_callbacks", None))


def _seeds(random_state: Any, count: int) -> list[Any]:
    """Return the seeds of several fits."""
    # An integer is the seed of the first fit, which is then the same as with n_init=1. Otherwise all seeds are
    # drawn, by random(), since a RandomState has no integers().
    seeds = [random_state] if isinstance(random_state, (int, np.integer)) else []
    drawn = random_generator(random_state, _STREAM).random(count - len(seeds))
    return seeds + (2**31 * drawn).astype(np.int64).tolist()


def _is_frame(X: Any) -> bool:
    """Whether X is a table of items rather than of edges."""
    return hasattr(X, "columns") and not is_edge_table(X)
