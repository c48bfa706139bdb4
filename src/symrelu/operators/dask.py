"""M in blocks on the workers of a Dask cluster; factors are NumPy arrays of the driver."""

from __future__ import annotations

from typing import Any

import numpy as np

from symrelu.files.block_folder import write_matrix
from symrelu.files.block_manifest import Totals
from symrelu.kernels.block_grid import root_of
from symrelu.kernels.row_systems import whitening
from symrelu.kernels.tiles import Sums
from symrelu.operators.base import Evaluation
from symrelu.operators.block_data import BlockData, temporary_folder
from symrelu.operators.block_rows import product_part, solve_part, warm_up_rows
from symrelu.operators.block_scores import held_out_part, modularity_part
from symrelu.operators.block_session import BlockSession
from symrelu.operators.block_tasks import Part, residual_part, survey_part, warm_up
from symrelu.operators.cluster import Cluster, closed_on_error
from symrelu.operators.cluster_clients import check_client
from symrelu.operators.host import ThreadedOperator
from symrelu.operators.tiled import evaluation_of

# A matrix in memory is cut into so many panels, unless they would have fewer rows than the second number. The
# digits of a fit depend on it, so it does not depend on the number of workers.
_PANELS = 8
_FEWEST_ROWS = 256


class DaskOperator(ThreadedOperator):
    """A matrix in block folders, compared with X block by block on the workers of a cluster.

    Parameters
    ----------
    session : BlockSession
    **settings
        signature, alpha, zero_weight and at_least of :class:`~symrelu.operators.base.Operator`.
    """

    has_local_matrix = False

    def __init__(self, session: BlockSession, **settings: Any) -> None:
        self._session = session
        with_maxima = session.data.ignore_diagonal or session.data.mask is not None
        grid = session.grid
        surveys = session.over_blocks("survey", survey_part, {}, grid=grid, with_maxima=with_maxima)
        found = {block: totals for survey in surveys for block, totals in survey.totals.items()}
        total = Totals()
        for block in grid.blocks():  # in a fixed order, because the digits depend on it
            total = total.plus(found[block], 1 if block[0] == block[1] else 2)
        self._n_positive = total.entries
        self._maxima = _largest_of_rows(surveys, session) if with_maxima else None
        dtype = session.data.folder.dtype
        super().__init__(n=grid.n, dtype=dtype, norm=total.norm, **settings)

    @classmethod
    def of(
        cls, M: Any, unknown: Any | None, *, client: Any | None = None, rows: int | None = None, **settings: Any
    ) -> DaskOperator:
        """Return the operator of a checked matrix and its unobserved entries, by way of temporary files."""
        cluster = Cluster(client)
        n = M.shape[0]
        rows = max(_FEWEST_ROWS, -(-n // _PANELS)) if rows is None else rows
        with closed_on_error(cluster), temporary_folder() as temporary:
            folder = write_matrix(M, temporary / "matrix", rows=rows)
            mask = None if unknown is None else write_matrix(unknown, temporary / "mask", rows=rows)
        return cls.of_blocks(BlockData(folder, mask, temporary=(temporary,)), cluster, **settings)

    @classmethod
    def of_blocks(cls, data: BlockData, cluster: Cluster, **settings: Any) -> DaskOperator:
        """Return the operator of block folders."""
        session = BlockSession(cluster, data)
        try:
            return cls(session, **settings)
        except BaseException:
            session.close()
            raise

    check_client = staticmethod(check_client)

    def serves(self, client: Any | None) -> bool:
        return self._session.open and self._session.cluster.is_for(client)

    def release(self) -> None:
        self._session.close()

    @property
    def n_positive(self) -> int:
        return self._n_positive

    def matmul(self, V: np.ndarray) -> np.ndarray:
        return self._products("product", V, with_zeros=False)[0]

    def imputed_matmul(self, V: np.ndarray, fill: float) -> np.ndarray:
        # In the order of SupportOperator.imputed_matmul, for the same bits.
        V = np.ascontiguousarray(V, self.dtype)
        product, not_zero = self._products("imputed-product", V, with_zeros=True)
        filled = product + fill * (V.sum(axis=0) - not_zero)
        return filled if self._maxima is None else filled + self._maxima[:, None] * V

    def _products(self, name: str, V: np.ndarray, *, with_zeros: bool) -> tuple[np.ndarray, ...]:
        V = np.ascontiguousarray(V, self.dtype)
        return self._over_rows(name, product_part, V, with_zeros=with_zeros)

    def solve_rows(self, V: np.ndarray, ridge: np.ndarray, *right: np.ndarray) -> tuple[np.ndarray, ...]:
        sides = map(np.ascontiguousarray, right)
        V = np.ascontiguousarray(V)
        return self._over_rows("solve-rows", solve_part, V, *sides, C=whitening(ridge))

    def _over_rows(
        self, name: str, function: Any, V: np.ndarray, *right: np.ndarray, **settings: Any
    ) -> tuple[np.ndarray, ...]:
        """Return what a function gives for the rows of each panel, below each other."""
        grid = self._session.grid
        found = self._session.over_panels(name, function, V, right, grid=grid, **settings)
        return tuple(map(np.concatenate, zip(*(found[i] for i in range(grid.panels)), strict=True)))

    def _evaluate(self, U: np.ndarray, V: np.ndarray | None) -> Evaluation:
        factors = {"U": np.ascontiguousarray(U)}
        if V is not None and V is not U:
            factors["V"] = np.ascontiguousarray(V)
        parts = self._session.over_blocks(
            "residual-product" if V is not None else "loss",
            residual_part,
            factors,
            **({} if "V" in factors else {"V": None}),
            grid=self._session.grid,
            signs=self.signs,
            zero_weight=self.zero_weight,
            at_least=self.at_least,
            with_product=V is not None,
        )
        nodes = {node: sums for part in parts for node, sums in part.sums.items()}
        sums = Sums(*map(float, root_of(nodes, len(self._session.grid.blocks()))))
        product = None if V is None else self._assembled(parts, V.shape[1])
        return evaluation_of(self, product, sums)

    def held_out_squares(self, U: np.ndarray) -> tuple[float, float]:
        """Return the sums of (M - max(0, X))^2 and of M^2 over the masked entries, which the data must keep."""
        settings = {"grid": self._session.grid, "signs": self.signs, "at_least": self.at_least}
        wrong, total = self._sums("held-out-error", held_out_part, {"U": U}, settings)
        return float(wrong), float(total)

    def cluster_weights(self, labels: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the weight inside of clusters, numbered from 0 on, and the sum of degrees of each."""
        settings = {"grid": self._session.grid, "count": int(labels.max()) + 1}
        inside, *degrees = self._sums("modularity", modularity_part, {"labels": labels}, settings)
        return float(inside), np.array(degrees)

    def _sums(self, name: str, function: Any, factors: dict[str, np.ndarray], settings: dict[str, Any]) -> Any:
        parts = self._session.over_blocks(name, function, factors, **settings)
        nodes = {node: value for part in parts for node, value in part.items()}
        return root_of(nodes, len(self._session.grid.blocks()))

    def _assembled(self, parts: list[Part], columns: int) -> np.ndarray:
        """Return the panels of a product below each other, each of them added up along its tree."""
        grid = self._session.grid
        product = np.empty((self.n, columns), self.dtype)
        for i in range(grid.panels):
            nodes = {node: value for part in parts for node, value in part.panels.get(i, {}).items()}
            product[grid.panel(i)] = root_of(nodes, grid.panels)
        return product

    def warm_up(self) -> None:
        for compile_kernels in (warm_up, warm_up_rows):
            self._session.cluster.ask_each(compile_kernels, self.dtype)


def _largest_of_rows(surveys: list[Any], session: BlockSession) -> np.ndarray:
    """Return the largest entry of each row whose diagonal entry is unobserved, else zero."""
    grid, data = session.grid, session.data
    maxima = np.zeros(grid.n, data.folder.dtype)
    for survey in surveys:
        for i, part in survey.maxima.items():
            np.maximum(maxima[grid.panel(i)], part, out=maxima[grid.panel(i)])
    if data.ignore_diagonal or data.mask is None:
        return maxima
    unknown = np.concatenate([data.mask.read((i, i)).diagonal() for i in range(grid.panels)])
    return np.where(unknown, maxima, data.folder.dtype.type(0))
