"""Tables of operators, problems and solvers, and the inputs that hypothesis draws."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from symrelu.fit import loop
from symrelu.fit.observers import HistoryKeeper, callers
from symrelu.fit.settings import Limits
from symrelu.operators import DenseOperator, Evaluation, Operator, ReferenceOperator, SparseOperator
from symrelu.operators.active import ActiveOperator
from symrelu.solvers import AAPB, LBFGS, PALM, Eigen, Newton, State
from symrelu.solvers.base import Numbers

PAPER_EXAMPLE = np.array(
    [[10, 0, 1, 7, 0], [0, 5, 0, 0, 4], [1, 0, 1, 0, 0], [7, 0, 0, 13, 0], [0, 4, 0, 0, 4]], dtype=float
)
PAPER_FACTOR = np.array([[1, -1, 1, -2, 0], [3, -2, 0, 3, -2]], dtype=float).T


@dataclass(frozen=True)
class Problem:
    """A matrix with everything an operator can be told about it."""

    M: np.ndarray
    unknown: np.ndarray  # bool
    signature: np.ndarray
    alpha: float = 0.0
    zero_weight: float = 1.0
    at_least: bool = False

    @property
    def n(self) -> int:
        return len(self.M)

    @property
    def rank(self) -> int:
        return len(self.signature)

    def settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("signature", "alpha", "zero_weight", "at_least")}

    def astype(self, dtype: Any) -> Problem:
        return replace(self, M=self.M.astype(dtype))

    def residual(self, U: np.ndarray) -> np.ndarray:
        """Return W - X by the definition of the latent matrix W."""
        X = (U * self.signature) @ U.T
        on_support = np.maximum(0, self.M - X) if self.at_least else self.M - X
        residual = np.where(self.M > 0, on_support, -self.zero_weight * np.maximum(0, X))
        return np.where(self.unknown, 0, residual)

    def latent(self, U: np.ndarray) -> np.ndarray:
        """Return W, by its definition."""
        X = (U * self.signature) @ U.T
        on_support = np.maximum(self.M, X) if self.at_least else self.M
        on_zeros = np.minimum(0, X) + (1 - self.zero_weight) * np.maximum(0, X)
        return np.where(self.unknown, X, np.where(self.M > 0, on_support, on_zeros))


def reference(problem: Problem) -> Operator:
    return ReferenceOperator(problem.M, ~problem.unknown, **problem.settings())


def dense(problem: Problem, **tile: int) -> Operator:
    unknown = sparse.csr_array(problem.unknown) if problem.unknown.any() else None
    return DenseOperator(np.ascontiguousarray(problem.M), unknown, **problem.settings(), **tile)


def sparse_(problem: Problem, **tile: int) -> Operator:
    unknown = sparse.csr_array(problem.unknown) if problem.unknown.any() else None
    return SparseOperator(sparse.csr_array(problem.M), unknown, **problem.settings(), **tile)


def active(problem: Problem, **settings: Any) -> Operator:
    unknown = sparse.csr_array(problem.unknown) if problem.unknown.any() else None
    return ActiveOperator(sparse.csr_array(problem.M), unknown, **problem.settings(), **settings)


def strict(problem: Problem) -> Operator:
    from strict_operator import StrictOperator

    return StrictOperator(problem.M, ~problem.unknown, **problem.settings())


def torch_(problem: Problem, kind: Any = sparse.csr_array, **tile: Any) -> Operator:
    from symrelu.operators.torch import TorchOperator

    unknown = sparse.csr_array(problem.unknown) if problem.unknown.any() else None
    return TorchOperator(kind(problem.M), unknown, **problem.settings(), **tile)


def cuda(problem: Problem, device: str = "cuda", **settings: Any) -> Operator:
    from symrelu.operators.cuda import CudaOperator

    unknown = sparse.csr_array(problem.unknown) if problem.unknown.any() else None
    return CudaOperator(sparse.csr_array(problem.M), unknown, device=device, **problem.settings(), **settings)


# Tiles of 5 cut a matrix of 40 rows into 36 tiles that threads share, with an odd one at the border.
OPERATORS = {
    "reference": reference,
    "dense": dense,
    "sparse": sparse_,
    "dense in small tiles": lambda problem: dense(problem, tile=5),
    "sparse in small tiles": lambda problem: sparse_(problem, tile=5),
    # So small matrices have a large share of positive zeros: the list must be allowed to hold all of them.
    "active": lambda problem: active(problem, always_lists=True),
    "active in small tiles": lambda problem: active(problem, always_lists=True, tile=5),
}
if find_spec("array_api_strict"):
    OPERATORS["strict"] = strict
# torch is optional, also for the tests: without it, the tables have no lines for it.
TORCH = {
    "torch": torch_,
    "torch in small tiles": lambda problem: torch_(problem, tile=7),
    "torch, dense": lambda problem: torch_(problem, np.asarray, tile=7),
}
# Only on a machine with a GPU. Elsewhere test_cuda.py runs some of the kernels in an interpreter.
CUDA = {
    "cuda": cuda,
    "cuda, listed": lambda problem: cuda(problem, always_lists=True),
    "cuda, dense": lambda problem: torch_(problem, np.asarray, device="cuda"),
}
HAS_TORCH = find_spec("torch") is not None
HAS_CUDA = False
if HAS_TORCH:
    import torch

    OPERATORS |= TORCH
    HAS_CUDA = torch.cuda.is_available()
if HAS_CUDA:
    OPERATORS |= CUDA
# COMPILED: derived from SupportOperator, so their kernels are compiled and they have a ``support``. FOREIGN:
# all others, mostly on other arrays than NumPy's. The reference, with which both are compared, is in neither.
COMPILED = (
    "dense",
    "sparse",
    "dense in small tiles",
    "sparse in small tiles",
    "active",
    "active in small tiles",
)
FOREIGN = tuple(name for name in ("strict", *TORCH, *CUDA) if name in OPERATORS)


def evaluate(op: Operator, U: np.ndarray, V: np.ndarray | None = None) -> Evaluation:
    """Make one pass at host arrays; its product is one too."""
    if V is None:
        return op.loss(op.asarray(U))
    passed = op.residual_product(op.asarray(U), op.asarray(V))
    return replace(passed, product=op.to_numpy(passed.product))


def on_host(op: Operator, state: State) -> State:
    """Return a state with host arrays in place of the operator's."""
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    arrays = {name: value for name, value in values.items() if not isinstance(value, (int, float))}
    return replace(state, **{name: _to_numpy(op, value) for name, value in arrays.items()})


def _to_numpy(op: Operator, value: Any) -> Any:
    if isinstance(value, Numbers):
        return value
    return tuple(map(op.to_numpy, value)) if isinstance(value, tuple) else op.to_numpy(value)


def iterates(solver: Any, op: Operator, U0: np.ndarray, steps: int) -> list[State]:
    """Return the states of so many steps from a host array, on the host."""
    states = [solver.init(op, op.asarray(U0))]
    for _ in range(steps):
        states.append(solver.step(op, states[-1]))  # each follows from the last
    return [on_host(op, state) for state in states]


SOLVERS = {
    "AAPB": AAPB(),
    "AAPB, step 10": AAPB(step_size=10),
    "APB": AAPB(momentum=0.0),
    "AAPB, safeguarded": AAPB(safeguard=True),
    "AAPB, adaptive": AAPB(step_size="adaptive"),
    "APB, adaptive": AAPB(step_size="adaptive", momentum=0.0),
    "Eigen": Eigen(),
    "Eigen, three sweeps": Eigen(momentum=0.5, sweeps=3),
    "Eigen, no momentum": Eigen(momentum=0.0),
    "LBFGS": LBFGS(),
    "Newton": Newton(switch=10.0),  # so small matrices have large errors, which it leaves to LBFGS otherwise
    "PALM": PALM(),
    "iPALM": PALM(momentum=1.0),
}
MONOTONE = {
    "APB",
    "APB, adaptive",
    "Eigen",
    "Eigen, three sweeps",
    "Eigen, no momentum",
    "LBFGS",
    "Newton",
    "PALM",
}


def runs_on(solver: str, name: str) -> bool:
    """Return whether a solver of the table runs on an operator of the table."""
    return not (solver == "Newton" and name in TORCH | CUDA)  # torch does not offer the curvature


def random_problem(
    seed: int,
    n: int = 30,
    rank: int = 4,
    *,
    density: float = 0.3,
    n_negative: int = 0,
    masked: float = 0.0,
    ignore_diagonal: bool = False,
    alpha: float = 0.0,
    zero_weight: float = 1.0,
    at_least: bool = False,
) -> Problem:
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((n, rank + 2))
    gram = factor @ factor.T + 0.3 * np.triu(rng.standard_normal((n, n)))
    gram = np.triu(gram) + np.triu(gram, 1).T
    M = np.maximum(0, gram - np.quantile(gram, 1 - density))
    M[0, 0] = 1.0
    unknown = rng.random((n, n)) < masked
    unknown = np.triu(unknown) | np.triu(unknown).T
    unknown |= np.eye(n, dtype=bool) & ignore_diagonal
    signature = np.where(np.arange(rank) < rank - n_negative, 1.0, -1.0)
    return Problem(M, unknown, signature, alpha, zero_weight, at_least)


PROBLEMS = {
    "plain": random_problem(0),
    "dense data": random_problem(1, density=1.0),
    "alpha": random_problem(2, alpha=0.3),
    "mask": random_problem(3, masked=0.2),
    "diagonal ignored": random_problem(4, ignore_diagonal=True),
    "signed": random_problem(5, n_negative=1),
    "zeros weighted": random_problem(6, zero_weight=0.2),
    "everything": random_problem(7, n_negative=2, masked=0.1, ignore_diagonal=True, alpha=0.1, zero_weight=0.5),
    "at least": random_problem(8, at_least=True),
    "everything, at least": random_problem(
        9, n_negative=2, masked=0.1, ignore_diagonal=True, alpha=0.1, zero_weight=0.5, at_least=True
    ),
}


@st.composite
def problems(draw: Any, max_n: int = 24, max_rank: int = 6, scales: Any = None) -> Problem:
    """Draw a problem of any density, mask, diagonal policy, signature, weights, support and scale."""
    n = draw(st.integers(1, max_n))
    rank = draw(st.integers(1, min(n, max_rank)))
    problem = random_problem(
        draw(st.integers(0, 2**32 - 1)),
        n,
        rank,
        density=draw(st.floats(0.0, 1.0)),
        n_negative=draw(st.integers(0, rank)),
        masked=draw(st.sampled_from([0.0, 0.1, 0.6, 1.0])),
        ignore_diagonal=draw(st.booleans()),
        alpha=draw(st.sampled_from([0.0, 0.5])),
        zero_weight=draw(st.sampled_from([1.0, 0.5, 0.01])),
        at_least=draw(st.booleans()),
    )
    scale = draw(scales) if scales is not None else 4.0 ** draw(st.integers(-6, 6))
    return replace(problem, M=problem.M * scale, alpha=problem.alpha * scale)


def factor(problem: Problem, seed: int = 0, columns: int | None = None) -> np.ndarray:
    """Return a random factor, or V of that many columns, of the size that suits the problem."""
    rng = np.random.default_rng([seed, problem.n])
    U = rng.standard_normal((problem.n, columns or problem.rank))
    return (U * np.sqrt(problem.M.max() / (columns or problem.rank))).astype(problem.M.dtype)


def start(problem: Problem, seed: int = 0) -> np.ndarray:
    """Return a random factor with ||U U^T|| = ||M||, as a fit starts from."""
    U = np.random.default_rng(seed).standard_normal((problem.n, problem.rank))
    return U * np.sqrt(np.linalg.norm(problem.M) / np.linalg.norm(U.T @ U))


def refusal(read: Any, path: Any) -> str | None:
    """Return the message with which ``read`` refuses a file, or None if it takes it."""
    try:
        read(path)
    except ValueError as error:
        return str(error)
    return None


def run(op: Operator, solver: Any, U0: Any, limits: Limits, callback: Any = None, **settings: Any) -> Any:
    """Run the loop with a history and a callback, and return its outcome with the history."""
    history = HistoryKeeper()
    outcome = loop.run(op, solver, U0, limits, observers=[history, *callers(callback)], **settings)
    return SimpleNamespace(**vars(outcome), history=history.history(), converged=outcome.status.converged)


def damaged(content, flips, cuts):
    """Yield a file with one bit flipped, and cut short, at places that are the same in each run."""
    rng = np.random.default_rng(0)
    for bit in rng.choice(8 * len(content), flips, replace=False):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        yield bytes(flipped)
    for length in rng.choice(len(content), cuts, replace=False):
        yield content[:length]


def solved(op, V, ridge, right):
    """Return the solutions for right-hand sides of shape (n, rank, columns), in that shape."""
    columns = (op.asarray(np.ascontiguousarray(right[:, :, k])) for k in range(right.shape[2]))
    solutions = op.solve_rows(op.asarray(V), op.asarray(ridge), *columns)
    return np.stack([op.to_numpy(solution) for solution in solutions], axis=2)
