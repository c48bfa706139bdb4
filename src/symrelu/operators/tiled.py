"""The common part of the dense and the sparse operator: one symmetric pass over the tiles of X."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symrelu.kernels.curved_rows import factored_rows, solve_factored
from symrelu.kernels.pair_curvature import compile_curvature, curvature_product, curved_pairs
from symrelu.kernels.pair_lists import PairList, TooManyPairs, most_entries, scan_all
from symrelu.kernels.pair_passes import Entries
from symrelu.kernels.row_references import full_slack, new_references, rounding_of_products
from symrelu.kernels.streaming import stream
from symrelu.kernels.tiles import Sums, tile_side
from symrelu.operators.base import Curvature, Evaluation, Operator
from symrelu.operators.host import SupportOperator, shared_property


class TiledOperator(SupportOperator):
    """An operator that turns one tile of X at a time into its excess, X - W.

    Parameters
    ----------
    tile : int, optional
        Side length of the tiles; by default :func:`~symrelu.kernels.tiles.tile_side` of n and the rank.
    **problem
        Passed on to :class:`~symrelu.operators.host.SupportOperator`.
    """

    def __init__(self, *, tile: int | None = None, **problem: Any) -> None:
        super().__init__(**problem)
        self.tile = tile

    @property
    def side(self) -> int:
        """Side length of the tiles. It depends on the rank, so on the model and not only on the data."""
        return tile_side(self.n, self.rank) if self.tile is None else self.tile

    def _settings_of_tiles(self) -> tuple[Any, bool]:
        """Return the weight of the zeros, and whether X >= M suffices on the support."""
        # The weight in the dtype of M: with a Python float, the kernels would compute in float64.
        return self.dtype.type(self.zero_weight), self.at_least

    @abstractmethod
    def _tiles(self) -> Any:
        """Return M as the data of a pass: see :func:`symrelu.kernels.streaming.stream`."""

    def _evaluate(self, U: np.ndarray, V: np.ndarray | None) -> Evaluation:
        excess_product, sums = stream(U, self.signed(U), V, self._tiles(), symmetric=True, side=self.side)
        product = None if excess_product is None else np.negative(excess_product, out=excess_product)
        return evaluation_of(self, product, sums)

    def curvature(self, U: np.ndarray, reach: float) -> Curvature | None:
        listed = self._near(U, reach)
        return None if listed is None else self._curvature_on(listed, U, reach)

    def _near(self, U: np.ndarray, reach: float) -> PairList | None:
        """Return the zeros whose cosine is above -reach, or None if they are too many."""
        self.evaluations += 1  # all pairs are scanned
        references = new_references(np.ascontiguousarray(U), self.signs)
        try:
            slack = full_slack(reach, self.rank) + rounding_of_products(self.rank, self.dtype)
            return scan_all(references, slack, self._not_zero, most_entries(self.n, self.rank))
        except TooManyPairs:
            return None

    def _curvature_on(self, listed: PairList, U: np.ndarray, reach: float) -> Curvature:
        weight, at_least = self._settings_of_tiles()
        pairs = curved_pairs(
            U, self.signs, self._support_entries, listed, reach, zero_weight=weight, at_least=at_least
        )
        V = U * self.signs

        def row_solver(ridge: float) -> Callable[[np.ndarray], np.ndarray]:
            return partial(solve_factored, factored_rows(pairs, V, ridge))

        return Curvature(partial(curvature_product, pairs, V, self.signs, self.alpha), row_solver)

    @shared_property
    def _support_entries(self) -> Entries:
        """The positive entries of M, by row."""
        return Entries(*self.support, self._support_values())

    @abstractmethod
    def _support_values(self) -> np.ndarray:
        """Return the positive entries of M, in the order of ``support``."""

    def warm_up(self) -> None:
        # A pass without rows is enough: the compiled code depends on types, not on sizes.
        nothing = np.zeros((0, 1), self.dtype)
        stream(nothing, nothing, nothing, self._tiles(), symmetric=True, side=self.side)
        super().warm_up()

    def warm_up_curvature(self) -> None:
        compile_curvature(self.dtype)


def evaluation_of(op: Operator, product: Any | None, sums: Sums) -> Evaluation:
    """Return the results of a pass from its sums over all pairs."""
    w = op.zero_weight
    latent_loss = (sums.fit + w * sums.positive) / 2
    loss = (sums.error + sums.positive) / 2
    if not math.isfinite(sums.free):  # NaN in a row without observed entries must show
        latent_loss = loss = math.nan
    return Evaluation(
        product=product,
        latent_loss=latent_loss,
        loss=loss,
        # W is M on the support, min(0, X) + (1 - w) max(0, X) on the zeros, X where any X is right.
        latent_norm_squared=op.norm**2 + sums.negative + (1 - w) ** 2 * sums.positive + sums.free,
        active_zeros=sums.active,
        alignment=sums.inner - w * sums.positive,
    )
