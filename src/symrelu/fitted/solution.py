"""The result of a fit: the fitted model, the history, and why the fit stopped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from symrelu.files import without_objects, write_atomically
from symrelu.fitted.archive import arrays_of, read_solution
from symrelu.fitted.history import History, Status, advice_after, stop_reason
from symrelu.fitted.models import FittedModel, OneFactor
from symrelu.fitted.queries import ModelQueriesMixin
from symrelu.plots.cards import card
from symrelu.plots.choice import PlotMixin

# Attributes that only some models have, forwarded by Solution.__getattr__.
_MODEL_SPECIFIC = ("transform", "score", "canonicalize", "V")

# What a solution takes over from the outcome of the loop.
_FROM_OUTCOME = ("status", "n_iter", "n_evaluations", "relative_error", "norm", "objective", "level")


@dataclass(frozen=True, eq=False, repr=False)
class Solution(PlotMixin, ModelQueriesMixin):
    """The result of a fit: the fitted model, and how the fit went.

    Attributes
    ----------
    model : FittedModel
        The fitted model: :class:`~symrelu.fitted.SymmetricReLU` from :func:`symrelu.decompose` and the
        estimators, :class:`~symrelu.fitted.TwoFactor` from 3B-NMD, :class:`~symrelu.fitted.Logistic` from LPCA,
        :class:`~symrelu.fitted.Linear` from the other baselines.
    status : Status
        Why the fit stopped; ``status.value`` is the cause and ``status.advice`` what to try next.
    n_iter, n_evaluations : int
        Number of steps, and of passes over the pairs.
    relative_error : float
        ||M - max(0, X)|| / ||M|| over the observed entries; a model without a ReLU has its own
        reconstruction in place of max(0, X).
    norm : float
        ||M|| over the observed entries.
    objective : float
        1/2 ||R(U)||^2 + alpha/2 ||U||^2 at U; a baseline reports its own objective.
    history : History
        The errors, times and counts of each iteration.
    solver : str
        The ``repr`` of the solver.
    diagonal : {"fit", "ignore"}
        Whether the diagonal of M was fitted or treated as unobserved.
    level : int
        0 if M itself was fitted. If a fit with ``init="multilevel"`` was stopped before that, the level at
        which it stopped: U was then fitted to a smaller matrix, and only scaled to M. After a second Ctrl-C,
        or a failure, it may not be scaled, and the errors and the history are those of the smaller matrix.

    Notes
    -----
    The solution forwards queries to its model. In addition to the methods that all models have, it has those of
    its own model; ``hasattr`` shows whether one is available:

    ``transform(M_new, mask=None)``, ``score(M_new, mask=None)``
        Rows of new items, and how well the model explains them (``SymmetricReLU`` only). See
        :meth:`symrelu.fitted.SymmetricReLU.transform` and :meth:`symrelu.fitted.SymmetricReLU.score`.
    ``canonicalize()``
        The solution whose factor depends only on X (``SymmetricReLU`` and ``Linear``). See
        :meth:`symrelu.fitted.OneFactor.canonicalize`. The objective changes with ||U||.
    ``V``
        The right factor (``TwoFactor`` and ``Logistic``).

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu import decompose
    >>> from symrelu.baselines import truncated_eigen
    >>> M = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    >>> solution = decompose(M, 3, random_state=0)
    >>> solution.model
    SymmetricReLU(n=3, rank=3, n_negative=0)
    >>> solution.transform(M[:2]).shape
    (2, 3)
    >>> hasattr(truncated_eigen(M, 3), "transform")
    False
    """

    model: FittedModel
    status: Status
    n_iter: int
    n_evaluations: int
    relative_error: float
    norm: float
    objective: float
    history: History
    solver: str
    diagonal: str = "fit"
    level: int = 0

    _pictures: ClassVar = ("convergence", "map", "spectrum", "link_scores")

    @classmethod
    def of(
        cls, outcome: Any, model: FittedModel, *, history: History, solver: str, diagonal: str = "fit"
    ) -> Solution:
        """Return the solution with the numbers of an outcome and this model.

        Parameters
        ----------
        outcome : Outcome or Solution
            The numbers and the status are copied from it.
        model : FittedModel
        history : History
        solver : str
        diagonal : {"fit", "ignore"}, default="fit"
        """
        return cls(
            model=model,
            **{name: getattr(outcome, name) for name in _FROM_OUTCOME},
            history=history,
            solver=solver,
            diagonal=diagonal,
        )

    @property
    def converged(self) -> bool:
        """Whether the fit met a convergence test."""
        return self.status.converged

    @property
    def stop_reason(self) -> str:
        """Why the fit stopped: ``status.value``, and whether that was before M itself was fitted."""
        return stop_reason(self.status, self.level)

    @property
    def advice(self) -> str:
        """What to try next: ``status.advice``, unless M itself was not fitted."""
        return advice_after(self.status, self.level)

    @property
    def half_squared_error(self) -> float:
        """relative_error^2 / 2, the measure in the paper's table of real data."""
        return self.relative_error**2 / 2

    @property
    def U(self) -> np.ndarray:
        """The factor, of shape (n, rank)."""
        return self.model.U

    @property
    def signature(self) -> np.ndarray:
        """Signs of the columns, +1 or -1."""
        return self.model.signature

    @property
    def rank(self) -> int:
        """Number of columns of U."""
        return self.model.rank

    @property
    def n_negative(self) -> int:
        """Number of columns that enter X with a minus sign."""
        return self.model.n_negative

    @property
    def alpha(self) -> float:
        """Tikhonov weight of the fit; 0 for a model without one."""
        return getattr(self.model, "alpha", 0.0)

    @property
    def zero_weight(self) -> float:
        """Weight of the zeros of M; 1 for a model without one."""
        return getattr(self.model, "zero_weight", 1.0)

    @property
    def support(self) -> str:
        """ "equal" if X = M is required where M > 0, "at_least" if X >= M suffices there."""
        return getattr(self.model, "support", "equal")

    @property
    def _model(self) -> FittedModel:
        return self.model

    if TYPE_CHECKING:  # methods of some models only, which __getattr__ finds at run time

        def transform(self, M_new: Any, mask: Any | None = None) -> np.ndarray: ...

        def score(self, M_new: Any, mask: Any | None = None) -> float: ...

        def canonicalize(self) -> Solution: ...

        @property
        def V(self) -> np.ndarray: ...
    else:

        def __getattr__(self, name: str) -> Any:
            """Return a method that only some models have, or raise an error that names the model."""
            # First, since pickle and copy look up other names before self.model exists.
            if name not in _MODEL_SPECIFIC:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if not hasattr(self.model, name):
                raise AttributeError(
                    f"The model of this solution is {type(self.model).__name__} ({self.model.formula}), "
                    f"which has no {name}."
                )
            return self._canonicalized if name == "canonicalize" else getattr(self.model, name)

    def __dir__(self) -> Iterable[str]:  # so that tab completion shows the methods of the model
        return {*super().__dir__(), *(name for name in _MODEL_SPECIFIC if hasattr(self.model, name))}

    def __repr__(self) -> str:
        level = f", level={self.level}" if self.level else ""
        return (
            f"Solution(n={len(self.U)}, rank={self.rank}, n_negative={self.n_negative}, "
            f"relative_error={self.relative_error:.4g}, n_iter={self.n_iter}, status={self.status.name}{level})"
        )

    def _repr_html_(self) -> str:
        """The card that notebooks show."""
        plural = "" if self.n_evaluations == 1 else "s"
        rows = [
            ("model", f"{self.model.formula}, {type(self.model).__name__}"),
            ("items", len(self.U)),
            ("rank", f"{self.rank}, of it {self.n_negative} negative" if self.n_negative else self.rank),
            ("relative error", f"{self.relative_error:.4g}"),
            ("steps", f"{self.n_iter} ({self.n_evaluations} evaluation{plural})"),
            ("solver", self.solver),
        ]
        end = f"{'Converged' if self.converged else 'Not converged'}: {self.stop_reason}. {self.advice}"
        return card("Solution", rows, curve=self.history._curve(), note=end)

    def _canonicalized(self) -> Solution:
        """Return the solution whose factor depends only on X, so that runs can be compared.

        See :meth:`symrelu.fitted.OneFactor.canonicalize`. The objective decreases with ||U||.
        """
        assert isinstance(self.model, OneFactor)
        model = self.model.canonicalize()
        # Of the objective, only the penalty depends on the choice among the factors of X.
        if self.alpha == 0 or not np.isfinite(self.objective):
            return replace(self, model=model)
        root = np.sqrt(self.alpha / 2)  # taken into the square, which is part of the finite objective
        before, after = (np.sum((root * A.astype(np.float64)) ** 2) for A in (self.U, model.U))
        return replace(self, model=model, objective=float(self.objective + (after - before)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the solution to an npz file (arrays and JSON, no pickle).

        The file is written atomically: an existing file is replaced only by a complete new one.
        """
        with write_atomically(path) as file:
            np.savez(file, **without_objects(**arrays_of(self)))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Solution:
        """Read a file that :meth:`save` wrote, in this release or an earlier one; raise on any other file.

        The file is validated on load: it takes no more memory than its size on disk, and its content must be
        the Solution of a fit. The error names the file and what is wrong with it.
        """
        return cls(**read_solution(path))
