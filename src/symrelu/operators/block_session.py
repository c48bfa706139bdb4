"""The blocks of a matrix on the workers of a cluster, for the time of some fits."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from symrelu.files.block_manifest import MANIFEST
from symrelu.kernels.block_grid import Block, panels_of
from symrelu.operators.block_data import BlockData, load_block, sent_order
from symrelu.operators.block_rows import load_rows
from symrelu.operators.cluster import Cluster, Placed

_RECENTLY = 1.0  # seconds for which the workers are taken to be the same, unless something fails
_LOST = ("error", "cancelled", "lost")  # states of futures


class BlockSession:
    """Where each block is, and rounds of tasks over all blocks.

    The futures of blocks are results of tasks that read files: if a worker is lost, its blocks are read by
    another.

    Parameters
    ----------
    cluster : Cluster
    data : BlockData
    """

    def __init__(self, cluster: Cluster, data: BlockData) -> None:
        self.cluster = cluster
        self.data = data
        self.grid = data.grid
        self._slots: list[str] = []  # the worker of each share
        self._threads: dict[str, int] = {}
        self._shares: list[list[Block]] = []
        self._blocks: dict[Block, Placed] = {}
        self._rows: dict[int, Placed] = {}
        self._sent: dict[Block, Placed] = {}  # contents of files, if they are shipped
        self._shipped = False
        self._seeing: set[str] = set()  # workers that see the files
        self._finalizer = weakref.finalize(self, _clean_up, cluster, data.temporary)

    @property
    def open(self) -> bool:
        """Whether the session can be used."""
        return self._finalizer.alive

    def close(self) -> None:
        """Release the blocks, and delete temporary folders."""
        self._blocks.clear()
        self._rows.clear()
        self._sent.clear()
        self._finalizer()

    def over_blocks(
        self, name: str, function: Callable[..., Any], factors: Mapping[str, np.ndarray], **settings: Any
    ) -> list[Any]:
        """Call a function of the blocks of each worker and of the panels of factors that these need.

        Parameters
        ----------
        name : str
            Of the tasks, for the dashboard.
        function : callable
            Takes the blocks, a mapping of panels for each factor, and the settings.
        factors : mapping of str to ndarray of shape (n, columns)
        **settings
            Passed on to the function.

        Returns
        -------
        results : list
            One for each worker that has blocks.
        """
        self._assign()
        shares = [share for share in self._shares if share]

        def make(numbers: Sequence[int], attempt: int) -> dict[int, Placed]:
            if attempt:
                self._assign(keep_shares=True)
            sent = self._send(factors)
            futures = {}
            for k in numbers:
                worker = self._worker_of(k)
                panels = {key: {i: parts[i] for i in panels_of(shares[k])} for key, parts in sent.items()}
                blocks = [self._blocks[block][1] for block in shares[k]]
                futures[k] = self.cluster.submit(
                    name, function, blocks, worker=worker, threads=self._threads[worker], **panels, **settings
                )
            return futures

        return self.cluster.run_round(make, len(shares))

    def over_panels(
        self,
        name: str,
        function: Callable[..., Any],
        V: np.ndarray,
        right: Sequence[np.ndarray],
        **settings: Any,
    ) -> dict[int, Any]:
        """Call a function of the rows of panels, of all of V and of the same panels of other factors.

        Parameters
        ----------
        name : str
        function : callable
        V : ndarray of shape (n, columns)
        right : sequence of ndarray of shape (n, columns)
        **settings
            Passed on to the function.

        Returns
        -------
        results : dict of int to object
            By panel.
        """
        self._assign()
        count = min(len(self._slots), self.grid.panels)
        shares = [part.tolist() for part in np.array_split(np.arange(self.grid.panels), count)]

        def make(numbers: Sequence[int], attempt: int) -> dict[int, Placed]:
            if attempt:
                self._assign(keep_shares=True)
            sent = self._send({"V": V, **{str(m): one for m, one in enumerate(right)}})
            futures = {}
            for k in numbers:
                worker = self._worker_of(k)
                sides = [{i: sent[str(m)][i] for i in shares[k]} for m in range(len(right))]
                rows = [self._rows_of(i, worker) for i in shares[k]]
                futures[k] = self.cluster.submit(
                    name,
                    function,
                    rows,
                    dict(enumerate(sent["V"])),
                    *sides,
                    worker=worker,
                    threads=self._threads[worker],
                    **settings,
                )
            return futures

        found: dict[int, Any] = {}
        for part in self.cluster.run_round(make, count):
            found |= part
        return found

    def _send(self, factors: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
        """Return a future for each panel of each factor."""
        grid = self.grid
        arrays = [A[grid.panel(i)] for A in factors.values() for i in range(grid.panels)]
        sent = self.cluster.scatter(arrays) if arrays else []
        return {name: sent[k * grid.panels : (k + 1) * grid.panels] for k, name in enumerate(factors)}

    def _worker_of(self, share: int) -> str:
        return self._slots[share % len(self._slots)]

    def _assign(self, *, keep_shares: bool = False) -> None:
        """Look which workers are there, and move blocks if these are others than before.

        The shares of a round that has begun are kept: those of lost workers go to others.
        """
        workers = self.cluster.workers(recently=0.0 if keep_shares else _RECENTLY)
        self._threads = workers
        lost = [k for k, worker in enumerate(self._slots) if worker not in workers]
        new = [worker for worker in workers if worker not in self._slots]
        for k, worker in zip(lost, new, strict=False):  # a worker in place of another: nothing else moves
            self._slots[k] = worker
        if not self._slots or (not keep_shares and sorted(self._slots) != list(workers)):
            self._slots = list(workers)
            self._shares = self.grid.shares(len(workers), [float(count) for count in workers.values()])
        elif len(lost) > len(new):
            there = [worker for worker in self._slots if worker in workers]
            for place, k in enumerate(lost[len(new) :]):
                self._slots[k] = there[place % len(there)]
        self._place_blocks()

    def _place_blocks(self) -> None:
        """Let each worker read the blocks of its share that it does not have, and forget lost ones."""
        shares = [share for share in self._shares if share]
        for k, share in enumerate(shares):
            worker = self._worker_of(k)
            for block in share:
                if not _is_there(self._blocks.get(block), worker):
                    order = self._order(block, worker)
                    self._blocks[block] = self.cluster.submit("load-block", load_block, order, worker=worker)

    def _rows_of(self, panel: int, worker: str) -> Any:
        if not _is_there(self._rows.get(panel), worker):
            blocks = [(min(panel, j), max(panel, j)) for j in range(self.grid.panels)]
            orders = [self._order(block, worker) for block in blocks]
            self._rows[panel] = self.cluster.submit("load-rows", load_rows, panel, orders, worker=worker)
        return self._rows[panel][1]

    def _order(self, block: Block, worker: str) -> Any:
        """Return what a task must know to load a block; with contents a future, as three tasks load a block."""
        if not self._is_shipped():
            return self.data.order(block, shipped=False)
        found = self._sent.get(block)
        if found is None or found[1].status in _LOST:
            order = self.data.order(block, shipped=True)
            found = self._sent[block] = self.cluster.submit("send-block", sent_order, order, worker=worker)
        return found[1]

    def _is_shipped(self) -> bool:
        """Return whether some worker cannot see the files, so that their content must be sent."""
        if not self._shipped and set(self._threads) - self._seeing:  # those that have come must be asked too
            folders = [one for one in (self.data.folder, self.data.mask) if one is not None]
            paths = [str(folder.path / MANIFEST) for folder in folders]
            answers = self.cluster.ask_each(eval, f"all(map(__import__('os').path.isfile, {paths!r}))")
            self._shipped = not all(answer is True for answer in answers.values())
            self._seeing.update(answers)
        return self._shipped


def _is_there(found: Placed | None, worker: str) -> bool:
    """Return whether something was given to this worker, and not lost."""
    return found is not None and found[0] == worker and found[1].status not in _LOST


def _clean_up(cluster: Cluster, folders: Sequence[Path]) -> None:
    cluster.close()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
