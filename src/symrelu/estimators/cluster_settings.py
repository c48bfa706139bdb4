"""Settings of a clustering whose defaults depend on the method."""

from __future__ import annotations

from typing import Any

from symrelu.estimators.base import DecompositionEstimator
from symrelu.fit.cluster_methods import METHODS, ClusterMethod, Prepared
from symrelu.validation import check_choice, check_integer, check_number

_OF_METHOD = ("zero_weight", "init", "max_iter", "n_init")


class ClusterSettingsMixin(DecompositionEstimator):
    """Fill in the settings that the user did not give, from the method."""

    method: str
    n_components: int | None
    alpha: float | None
    checkpoint: Any

    def _check_settings(self, settings: dict[str, Any]) -> None:
        methods = self._methods()
        if len(methods) > 1 and not (self.init is None or isinstance(self.init, str)):
            raise ValueError("An array as init is the start of one fit: set method, and n_init=1.")
        if self.checkpoint is not None and methods[0].name != "linkage":
            raise ValueError(
                f"checkpoint must be left out with method='{methods[0].name}', which takes the mean of short "
                "fits. Or pass method='linkage' or 'auto'."
            )
        for method in methods:
            super()._check_settings(settings | self._of(method))

    def _passed_shrinkage(self) -> float | None:
        return None if self.shrinkage is None else check_number("shrinkage", self.shrinkage)

    def _methods(self) -> list[ClusterMethod]:
        """Return the methods to compute, validated."""
        check_choice("method", self.method, ("auto", *METHODS))
        return [method for name, method in METHODS.items() if self.method in ("auto", name)]

    def _of(self, method: ClusterMethod) -> dict[str, Any]:
        """Return the settings whose default depends on the method."""
        given = {name: getattr(self, name) for name in _OF_METHOD}
        values = {name: getattr(method, name) if value is None else value for name, value in given.items()}
        if method.name != "linkage":
            values["checkpoint"] = None
        return values

    def _columns(self, method: ClusterMethod, n_clusters: int, n: int) -> int:
        if self.n_components is not None:
            return check_integer("n_components", self.n_components, 1, n, note=" (the number of items) or None")
        return method.columns(n_clusters, n)

    def _fit_settings(self, method: ClusterMethod, data: Prepared, rank: int) -> tuple[int, dict[str, Any]]:
        """Return the number of fits and the settings of each for what a method fits."""
        own = self._of(method)
        n_init, problem = own.pop("n_init"), data.problem
        settings = self._settings() | own
        if self.alpha is None:
            settings["alpha"] = problem.alpha_of(data.shrinkage if self.shrinkage is None else self.shrinkage)
        return n_init, settings | {"n_negative": self._n_negative_below(rank), "diagonal": problem.diagonal}
