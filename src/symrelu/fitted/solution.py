"""What a fit returns: how it went, why it stopped, and the fitted model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from symrelu.files import write_atomically
from symrelu.fitted.archive import arrays_of, read_solution
from symrelu.fitted.history import History, Status
from symrelu.fitted.models import FittedModel, OneFactor
from symrelu.fitted.queries import ModelQueriesMixin

_OF_SOME_MODELS = ("transform", "score", "canonicalize", "V")


@dataclass(frozen=True, eq=False, repr=False)
class Solution(ModelQueriesMixin):
    """How a fit went, and the model that came out of it.

    Attributes
    ----------
    model : FittedModel
        The fitted model: :class:`~symrelu.fitted.SymmetricReLU` from :func:`symrelu.decompose` and the
        estimators, :class:`~symrelu.fitted.TwoFactor` from 3B-NMD, :class:`~symrelu.fitted.Linear` from the
        other baselines.
    status : Status
        Why the fit stopped; ``status.value`` is the cause and ``status.advice`` what to try.
    n_iter, n_evaluations : int
        Steps, and passes over the pairs, that were made.
    relative_error : float
        ||M - max(0, X)|| / ||M|| at U, over the observed entries; ||M - X|| / ||M|| of a model without a ReLU.
    norm : float
        ||M|| over the observed entries.
    objective : float
        1/2 ||R(U)||^2 + alpha/2 ||U||^2 at U; of a baseline, its own objective.
    history : History
        What happened at each iteration.
    solver : str
        The solver, as it prints.
    diagonal : {"fit", "ignore"}
        Whether the diagonal of M was data or unknown.

    Notes
    -----
    The solution answers for its model: what every model has is listed below, and what only some have is there
    exactly where the model has it, so that ``hasattr`` tells.

    ``transform(M_new, mask=None)``, ``score(M_new, mask=None)``
        Rows of new items, and how well the model explains them: of a ``SymmetricReLU``, see
        :meth:`symrelu.fitted.SymmetricReLU.transform` and :meth:`symrelu.fitted.SymmetricReLU.score`.
    ``canonicalize()``
        The solution whose factor depends on X alone: of a ``SymmetricReLU`` and a ``Linear``, see
        :meth:`symrelu.fitted.OneFactor.canonicalize`. The objective follows ||U||.
    ``V``
        The right factor of a ``TwoFactor``.

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

    @classmethod
    def of(
        cls, outcome: Any, model: FittedModel, *, history: History, solver: str, diagonal: str = "fit"
    ) -> Solution:
        """Return the solution of a fit that ended with these numbers and this model.

        Parameters
        ----------
        outcome : Solution, or whatever has its numbers
            Its ``status``, ``n_iter``, ``n_evaluations``, ``relative_error``, ``norm`` and ``objective`` are
            taken.
        model : FittedModel
        history : History
        solver : str
        diagonal : {"fit", "ignore"}, default="fit"
        """
        return cls(
            model=model,
            status=outcome.status,
            n_iter=outcome.n_iter,
            n_evaluations=outcome.n_evaluations,
            relative_error=outcome.relative_error,
            norm=outcome.norm,
            objective=outcome.objective,
            history=history,
            solver=solver,
            diagonal=diagonal,
        )

    @property
    def converged(self) -> bool:
        """Whether a stopping test was met."""
        return self.status.converged

    @property
    def half_squared_error(self) -> float:
        """relative_error^2 / 2: what the paper's table of real data shows."""
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
        """Tikhonov weight of the fit; 0 in a model that has none."""
        return getattr(self.model, "alpha", 0.0)

    @property
    def zero_weight(self) -> float:
        """Weight of the zeros of M; 1 in a model that has none."""
        return getattr(self.model, "zero_weight", 1.0)

    @property
    def _model(self) -> FittedModel:
        return self.model

    if TYPE_CHECKING:  # what only some models have

        def transform(self, M_new: Any, mask: Any | None = None) -> np.ndarray: ...

        def score(self, M_new: Any, mask: Any | None = None) -> float: ...

        def canonicalize(self) -> Solution: ...

        @property
        def V(self) -> np.ndarray: ...
    else:

        def __getattr__(self, name: str) -> Any:
            """Return what only some models have, or raise a sentence where this one does not have it."""
            if name not in _OF_SOME_MODELS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if not hasattr(self.model, name):
                raise AttributeError(
                    f"This solution is of the model {type(self.model).__name__} ({self.model.formula}), "
                    f"which has no {name}."
                )
            return self._canonicalized if name == "canonicalize" else getattr(self.model, name)

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *(name for name in _OF_SOME_MODELS if hasattr(self.model, name))}

    def __repr__(self) -> str:
        return (
            f"Solution(n={len(self.U)}, rank={self.rank}, n_negative={self.n_negative}, "
            f"relative_error={self.relative_error:.4g}, n_iter={self.n_iter}, status={self.status.name})"
        )

    def _canonicalized(self) -> Solution:
        """Return the solution whose factor depends on X alone, so that runs can be compared.

        See :meth:`symrelu.fitted.OneFactor.canonicalize`. The objective follows ||U||, which falls.
        """
        assert isinstance(self.model, OneFactor)
        model = self.model.canonicalize()
        if self.alpha == 0 or not np.isfinite(self.objective):
            return replace(self, model=model)
        root = np.sqrt(self.alpha / 2)  # within the objective: its square is finite
        before, after = (np.sum((root * A.astype(np.float64)) ** 2) for A in (self.U, model.U))
        return replace(self, model=model, objective=float(self.objective + (after - before)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the solution to an npz file (arrays and JSON, no pickle).

        The file is written atomically: what was there before is lost only to a complete new file.
        """
        with write_atomically(path) as file:
            np.savez(file, allow_pickle=False, **arrays_of(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Solution:
        """Read what :meth:`save` wrote, in this release or an earlier one; anything else is refused.

        The file is validated before it is believed: it takes no more memory than its size on disk, and what it
        holds has to be the Solution of a fit. The error names the file and what is wrong with it.
        """
        return cls(**read_solution(path))
