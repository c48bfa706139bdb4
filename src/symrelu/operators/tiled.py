"""The common part of the dense and the sparse operator: one symmetric pass over the tiles of X."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from symrelu.kernels.streaming import stream
from symrelu.kernels.tiles import Sums, tile_side
from symrelu.operators.base import Evaluation, Operator
from symrelu.operators.host import SupportOperator


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
        if len(U) != self.n or (V is not None and len(V) != self.n):  # compiled code would read beyond the end
            shapes = U.shape if V is None else (U.shape, V.shape)
            raise ValueError(f"The factors must have {self.n} rows, like M, got {shapes}.")
        excess_product, sums = stream(U, self.signed(U), V, self._tiles(), symmetric=True, side=self.side)
        product = None if excess_product is None else np.negative(excess_product, out=excess_product)
        return evaluation_of(self, product, sums)

    def warm_up(self) -> None:
        # A pass without rows is enough: the compiled code depends on types, not on sizes.
        nothing = np.zeros((0, 1), self.dtype)
        stream(nothing, nothing, nothing, self._tiles(), symmetric=True, side=self.side)
        super().warm_up()


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
