"""How much memory a fit needs, counted before it begins: nothing is allocated and nothing is timed.

A fit has phases, and its peak is that of the largest one: M is copied without its unobserved entries, the start
computes eigenvectors, the entries are sorted by tile, and a solver makes its steps. The counts are those of the
arrays in these phases, in bytes; ``tests/fit/test_memory_model.py`` compares them with what fits allocate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symrelu.fit.backends import backend_of
from symrelu.fit.device_memory import on_device
from symrelu.fit.levels import fewest_items
from symrelu.fit.settings import Limits, Model, Run, Start
from symrelu.kernels.pair_lists import most_entries
from symrelu.kernels.streaming import bytes_of_a_desk
from symrelu.kernels.threads import allowed_threads
from symrelu.kernels.tiles import TILE, blocks_of, tile_side
from symrelu.problem import Problem
from symrelu.solvers import LBFGS, Newton
from symrelu.validation import stored

# Arrays of the size of U in a step of a solver that does not declare ``factors_held``.
_HELD_BY_OTHERS = 16

# So many of them do not exist yet, or no longer, while a pass has its tiles. With negative columns there are
# products of U and the signs in addition, and more steps are tried again.
_NOT_IN_A_PASS = 2
_SIGNED = 2

# A start by eigenvectors holds so many float64 arrays of the size of U, or so many vectors for each of its
# columns in addition to those in which ARPACK searches.
_FACTORS_OF_A_START = 6
_VECTORS_OF_A_START = 3

# Bytes for each entry of a list, while rows are scanned again: the old list, the new one in parts and as a
# whole, and what was found with its transpose. 12 to 14 were measured.
_BYTES_OF_A_LISTED_ENTRY = 15

# Numbers for each entry of a list while Newton collects the pairs that have curvature: weights, excesses, and
# the copy of one of the two. In addition there are two int32: its column in the list, and in the pairs.
_NUMBERS_OF_A_CURVED_PAIR = 3

# Bytes of all smaller matrices of a multilevel start, for each entry of M.
_BYTES_OF_COARSER_ENTRIES = 100

_TILED = ("sparse", "dense", "active")


@dataclass(frozen=True)
class Case:
    """What the cost of a fit depends on.

    Attributes
    ----------
    n, rank : int
    entries : int
        Positive entries of M.
    hidden : int
        Unobserved entries, those of an ignored diagonal included.
    dtype : numpy.dtype
        Of M and the factor.
    index_bytes : int
        Bytes of a column number of M; 0 if M is dense.
    backend : str
        Not "auto".
    threads : int
        That a pass may use.
    solver : Solver
    init : str
        The name of a start, or "array".
    n_negative : int or "auto"
        Negative columns; "auto" counts eigenvalues before the start.
    rescaled : bool
        Whether the entries of M are divided by a power of 4.
    packed : bool
        Whether M is packed for this backend already.
    max_iter : int
        Most steps: LBFGS holds no more past steps than it made.
    """

    n: int
    rank: int
    entries: int
    hidden: int
    dtype: np.dtype[Any]
    index_bytes: int
    backend: str
    threads: int
    solver: Any
    init: str
    n_negative: int | str
    rescaled: bool
    packed: bool
    max_iter: int = Limits.max_iter

    @classmethod
    def of(
        cls,
        problem: Problem,
        model: Model,
        start: Start,
        run: Run,
        limits: Limits | None = None,
        dtype: np.dtype[Any] | None = None,
    ) -> Case:
        """Return the case of a fit with validated settings, with the threads that it would use.

        With ``dtype`` it is as if M had that type.
        """
        dtype = problem.dtype if dtype is None else dtype
        backend = backend_of(problem, model, run, dtype)
        return cls(
            n=problem.n,
            rank=model.rank,
            entries=_entries_of(problem),
            hidden=0 if problem.unknown is None else int(problem.unknown.nnz),
            dtype=dtype,
            index_bytes=_index_bytes_of(problem),
            backend=backend,
            threads=allowed_threads(),
            solver=run.solver,
            init=start.init if isinstance(start.init, str) else "array",
            n_negative=model.n_negative,
            rescaled=backend != "dask" and problem.exponent != 0,
            packed=dtype == problem.dtype and backend in problem._packed,
            max_iter=Limits.max_iter if limits is None else limits.max_iter,
        )

    @property
    def factor(self) -> int:
        """Bytes of an array of the size of U."""
        return self.n * self.rank * self.dtype.itemsize

    @property
    def past_steps(self) -> int:
        """Past steps that the solver holds at most; 0 if it is another than LBFGS and Newton."""
        return min(self.solver.memory, self.max_iter) if isinstance(self.solver, LBFGS | Newton) else 0

    @property
    def held(self) -> int:
        """Bytes of the factor and the state of the solver, with the arrays of a step; for Newton, of LBFGS."""
        solver = LBFGS(self.past_steps) if self.past_steps else self.solver
        return int(getattr(solver, "factors_held", _HELD_BY_OTHERS)) * self.factor

    @property
    def held_besides(self) -> int:
        """Bytes that a step may hold besides: those of Newton's own steps, which a fit need not make."""
        if not isinstance(self.solver, Newton):
            return int(getattr(self.solver, "systems_held", 0) * self.rank * self.factor)
        further = self.solver.factors_held - LBFGS(self.solver.memory).factors_held
        return int((further + self.solver.systems_held * self.rank) * self.factor)

    @property
    def by_eigenvectors(self) -> bool:
        """Whether the start, or the number of negative columns, is computed from eigenvectors."""
        return self.imputes or self.init == "spectral"

    @property
    def imputes(self) -> bool:
        """Whether products with M are needed in which the zeros are replaced."""
        return self.n_negative == "auto" or self.init in ("imputed", "multilevel")


def _entries_of(problem: Problem) -> int:
    """Return the number of positive entries of M."""
    manifest = getattr(problem.M, "manifest", None)  # of a block folder, which knows them
    if manifest is not None:
        return int(manifest.off_diagonal.entries + manifest.diagonal.entries)
    return int(np.count_nonzero(stored(problem.M)))


def _index_bytes_of(problem: Problem) -> int:
    return int(getattr(problem.M, "indices", np.empty(0, np.int64)).itemsize) if problem.is_sparse else 0


@dataclass(frozen=True)
class Memory:
    """Bytes that a fit needs in addition to M as it is passed.

    Attributes
    ----------
    matrix : int
        M as it is packed, with what is derived from it.
    factors : int
        The factor and the state of the solver, with the arrays of a step.
    tiles : int
        The tiles of all threads.
    pairs : int
        The longest list that the backend "active" may hold, with what Newton computes on it; 0 for the others.
    levels : int
        The smaller matrices that ``init="multilevel"`` may make; 0 for other starts.
    systems : int
        The matrices of the rows, and further arrays, of Newton in steps of its own; 0 for other solvers. They
        are given up before a pass has its tiles.
    least : int
        The peak of all phases together without a list, smaller matrices and Newton's own steps.
    """

    matrix: int
    factors: int
    tiles: int
    pairs: int
    levels: int
    systems: int
    least: int

    @property
    def total(self) -> int:
        """The peak of all phases together, with the longest list, all smaller matrices and all systems."""
        return max(self.least, self.matrix + self.factors + self.systems) + self.pairs + self.levels

    @property
    def rest(self) -> int:
        """What the peak has in addition to its parts; negative, if not all of these are held at once."""
        parts = self.matrix + self.factors + self.tiles + self.pairs + self.levels + self.systems
        return self.total - parts


def memory_of(case: Case) -> Memory:
    """Return how much memory a fit needs.

    Parameters
    ----------
    case : Case

    Returns
    -------
    memory : Memory
    """
    copied, derived, packed, sorting = _matrix(case)
    copying = _copying(case)
    tiles = _tiles(case)
    held = case.held
    in_a_pass = held + (_SIGNED if case.n_negative else -_NOT_IN_A_PASS) * case.factor
    steps = max(held, in_a_pass + tiles)
    kept = copied + derived
    smaller = case.init == "multilevel" and case.n > fewest_items(case.rank)
    phases = (
        copied + copying,
        kept + _start(case),
        kept + case.factor + max(packed, sorting),
        kept + packed + steps,
    )
    return Memory(
        matrix=kept + packed,
        factors=held,
        tiles=tiles,
        pairs=_pairs(case),
        levels=case.entries * _BYTES_OF_COARSER_ENTRIES if smaller else 0,
        systems=case.held_besides,
        least=max(phases),
    )


def _pairs(case: Case) -> int:
    """Return the bytes of the longest list, and of the pairs that have curvature."""
    if case.backend != "active":
        return 0
    curved = 2 * 4 + _NUMBERS_OF_A_CURVED_PAIR * case.dtype.itemsize if isinstance(case.solver, Newton) else 0
    return max(_BYTES_OF_A_LISTED_ENTRY, curved) * most_entries(case.n, case.rank)


def _matrix(case: Case) -> tuple[int, int, int, int]:
    """Return the bytes of the copy of M, of what is derived from it and of its packed entries, and for sorting.

    M that is packed already counts as nothing.
    """
    if case.packed or case.backend == "dask":
        return 0, 0, 0, 0
    n, size, index = case.n, case.dtype.itemsize, case.index_bytes
    if case.backend == "cuda":
        return on_device(case).matrix, 0, 0, 0
    if case.backend == "torch":
        return (n * n if not index else case.entries + case.hidden) * (size + 8 * bool(index)), 0, 0, 0
    if case.backend == "reference":  # with the booleans of the observed and of the ignored entries
        return n * n * (size + 2), 0, 0, 0
    whole = case.backend == "dense"
    copied = 0
    if whole:
        copied = n * n * size if index or case.hidden or case.rescaled else 0
    elif case.hidden:
        copied = case.entries * (size + index)
    elif case.rescaled:
        copied = case.entries * size
    derived = 4 * case.entries if whole or index == 8 else 8 * n  # the columns of the support, or its rows
    if case.imputes or case.backend == "active":
        derived += (case.entries + case.hidden) * (size + 8) + 8 * n
    if whole:
        return copied, derived, 0, 0
    blocks = blocks_of(n, tile_side(n, case.rank))
    packed = _packed(case.entries, blocks, size) + _packed(case.hidden, blocks, 1)
    sorting = max(
        case.entries * _sorted(index, size),
        _packed(case.entries, blocks, size) + case.hidden * _sorted(index, 1),
    )
    return copied, derived, packed, sorting


def _sorted(index: int, size: int) -> int:
    """Return the bytes for each entry while entries are sorted by tile."""
    return 15 * index // 4 + 13 + size


def _packed(entries: int, blocks: int, size: int) -> int:
    """Return the bytes of entries in the tiles on and above the diagonal."""
    return int(entries * (8 + size) * (1 + 1 / blocks) / 2) + 8 * blocks * blocks * bool(entries)


def _copying(case: Case) -> int:
    """Return what the copy of M needs for a while."""
    n, size = case.n, case.dtype.itemsize
    if case.packed:
        return 0
    # The norm is computed in float64, that of a dense M in blocks of rows.
    converted = 8 * (size < 8)
    if case.backend == "dense":
        block = min(n, TILE) * n * (size + converted)
        return block + (n * n * size if case.index_bytes and case.hidden else 0)
    return case.entries * converted if case.backend in _TILED else 0


def _tiles(case: Case) -> int:
    """Return the bytes of the tiles of all threads."""
    if case.backend == "cuda":
        return on_device(case).tiles
    if case.backend == "torch":
        return 4 * 2**19 * case.dtype.itemsize
    if case.backend == "reference":
        return case.n**2 * (7 * case.dtype.itemsize + 25)
    if case.backend == "dask":
        return 3 * case.factor  # what is sent, and what comes back
    side = tile_side(case.n, case.rank)
    workers = min(case.threads, blocks_of(case.n, side))
    return workers * bytes_of_a_desk(min(side, case.n), case.rank, case.dtype.itemsize)


def _start(case: Case) -> int:
    """Return the bytes of the arrays from which a starting factor is computed, which are float64."""
    n, rank = case.n, case.rank
    if not case.by_eigenvectors:
        return 3 * n * rank * 8
    if 2 * rank >= n:  # all eigenvectors, by a dense method
        return 5 * n * n * 8
    searched = max(2 * rank + 1, 20)  # ARPACK
    eigenvectors = 8 * n * max(_FACTORS_OF_A_START * rank, searched + _VECTORS_OF_A_START * rank)
    # Where entries are unobserved, the sum of two sparse matrices is formed first.
    adding = case.entries * (case.dtype.itemsize + 10) if case.imputes and case.hidden else 0
    return max(eigenvectors, adding)
