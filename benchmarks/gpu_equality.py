"""Compare fits on torch and on a GPU with the same fits on the CPU.

    python benchmarks/gpu_equality.py [--nodes 5000] [--rank 8] [--steps 15] [--fit-steps 30]
        [--backends cuda torch] [--dtypes float32 float64] [--output FOLDER]

The graph joins random points in the plane to their ten nearest neighbours. Each of four problems (the model of
the paper; with a negative column; this with 5 % of the pairs unobserved; this with the diagonal ignored) is
given in both types to the backends "sparse", "torch" on the CPU, and "cuda" if there is a GPU. What the last
two compute is compared with what the first one does:

primitives   norm of the difference, relative to the norm. Those that depend on a factor are taken at several.
             At a random one half of the zeros are positive, and every pair is visited. At the imputed start of
             a signed model hardly any is, and at "few" four in each row: "cuda" lists them
objective    relative difference of the objectives after some steps from the imputed start, for every solver
             of which the backends offer what it requires; Newton requires ``curvature``, which torch does not
             offer, so that its rows hold no number
final error  relative difference of the relative errors of whole fits from the imputed start; two below the
             tolerance of the fit are equal. "cuda" fits in high precision throughout. Only LBFGS and AAPB, and
             for a few steps: on sixteen cores the fits with torch would take minutes otherwise

FOLDER gets ``equality.json`` with all differences and the versions of device and software, and ``equality.csv``
with the largest difference over the problems, both after each row. Rows of earlier runs stay there, unless they
are computed again or come from another device, other versions or other settings. The exit status is 1 if a
difference of this run is above its bound.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu import environment, with_earlier, write_json, write_table
from large_graphs import graph
from scipy import sparse

from symrelu import __version__, decompose
from symrelu.fit.starts import start
from symrelu.operators import as_operator
from symrelu.solvers import SOLVERS

DTYPES = ("float32", "float64")
BOUNDS = {
    "primitives": {"float32": 1e-5, "float64": 1e-12},
    "objective": {"float32": 1e-4, "float64": 1e-8},
    "final error": {"float32": 1e-2, "float64": 1e-2},
}
FITTED = ("lbfgs", "aapb")
TOL = 1e-3
MASKED = 0.05
FEW = 4  # positive zeros of an average row: "cuda" lists up to n / 512
SUMS = ("loss", "latent_loss", "latent_norm_squared")
KEY = ("check", "of", "problem", "dtype", "backend")
IN_TABLE = ("check", "of", "dtype", "backend", "difference", "bound", "problem")


@dataclass(frozen=True)
class Case:
    """A matrix of one type, with the settings of its model."""

    problem: str
    M: Any
    rank: int
    n_negative: int = 0
    hidden: dict[str, Any] = field(default_factory=dict)  # diagonal and mask

    @property
    def dtype(self) -> str:
        return str(self.M.dtype)

    def operator(self, backend: str) -> Any:
        signature = np.where(np.arange(self.rank) < self.rank - self.n_negative, 1.0, -1.0)
        return as_operator(self.M, signature, backend=backend, **self.hidden)

    def final_error(self, solver: str, backend: str, U0: np.ndarray, steps: int) -> float:
        settings = {"n_negative": self.n_negative, "solver": solver, "backend": backend, **self.hidden}
        if backend == "cuda":
            settings["precision"] = "high"  # with "auto", steps that are not counted come before the others
        with warnings.catch_warnings(action="ignore"):  # a few steps need not converge
            solution = decompose(self.M, self.rank, init=U0, tol=TOL, max_iter=steps, **settings)
        return float(solution.relative_error)


def random_mask(n: int) -> Any:
    """Return a symmetric matrix of bool in which about a share MASKED of the pairs is true."""
    rng = np.random.default_rng(1)
    i, j = rng.integers(n, size=(2, int(MASKED * n * n / 2)))
    half = sparse.coo_array((np.ones(len(i), bool), (i, j)), shape=(n, n)).tocsr()
    return sparse.csr_array(half + half.T, dtype=bool)


def cases(n: int, rank: int, dtypes: list[str]) -> Iterator[Case]:
    """Yield every problem in every type."""
    M, mask = graph("plane", n), random_mask(n)
    for dtype in dtypes:
        data = M.astype(dtype), rank
        yield Case("plain", *data)
        yield Case("signed", *data, 1)
        yield Case("signed, masked", *data, 1, {"mask": mask})
        yield Case("signed, diagonal ignored", *data, 1, {"diagonal": "ignore"})


def with_few_positive(op: Any, U: np.ndarray) -> np.ndarray:
    """Return a factor of a signed model with its negative column shortened until a few zeros are positive."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        many = op.loss(op.asarray(U * np.where(op.signs > 0, 1.0, middle))).active_zeros > FEW * op.n
        low, high = (middle, high) if many else (low, middle)
    return (U * np.where(op.signs > 0, 1.0, high)).astype(U.dtype)


def primitives(op: Any, factors: dict[str, np.ndarray], V: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yield what the operator computes, on the host, with a name."""
    right = op.asarray(V)
    yield "matmul", op.to_numpy(op.matmul(right))
    yield "imputed_matmul", op.to_numpy(op.imputed_matmul(right, -1.0))
    for name, factor in factors.items():
        U = op.asarray(factor)
        passed = op.residual_product(U, right)
        yield f"residual_product, {name}", op.to_numpy(passed.product)
        for each in SUMS:
            yield f"{each}, {name}", getattr(passed, each)
        yield f"inner, {name}", op.inner(U, U)
        gram = op.gram(U)
        yield f"gram, {name}", op.to_numpy(gram)
        # About as large as what the support of an average row adds: not all that the rows have in common.
        ridge = op.n_positive / op.n**2 * (op.to_numpy(gram) + np.trace(op.to_numpy(gram)) * np.eye(op.rank))
        for k, solution in enumerate(op.solve_rows(U, op.asarray(ridge), right, U)):
            yield f"solve_rows {k + 1}, {name}", op.to_numpy(solution)


def objective(op: Any, solver: Any, U0: np.ndarray, steps: int) -> float:
    """Return the objective after some steps."""
    state = solver.init(op, op.asarray(U0))
    for _ in range(steps):
        state = solver.step(op, state)
    return float(state.objective)


def relative(found: Any, expected: Any) -> float:
    """Return the norm of the difference, relative to that of what is expected."""
    difference = np.asarray(found, float) - np.asarray(expected, float)
    return float(np.linalg.norm(difference) / np.linalg.norm(expected))


class Comparison:
    """What the backends compute in one case, next to what "sparse" does."""

    def __init__(self, case: Case, backends: list[str], options: argparse.Namespace) -> None:
        self.case, self.backends, self.options = case, backends, options
        self.operators = {backend: case.operator(backend) for backend in ("sparse", *backends)}
        first, dtype = self.operators["sparse"], case.M.dtype
        self.starts = {
            init: first.to_numpy(start(first, init, 0)).astype(dtype) for init in ("random", "imputed")
        }
        self.factors = dict(self.starts)
        if case.n_negative:
            self.factors["few"] = with_few_positive(first, self.starts["imputed"])

    def row(
        self, check: str, of: str, backend: str, values: tuple[Any, Any] | None, equal: bool = False
    ) -> Any:
        """Return a row of the table; ``values`` are those of the backend and of "sparse", if there are any."""
        bound = BOUNDS[check][self.case.dtype]
        difference: Any = relative(*values) if values else "not offered"
        names = {"problem": self.case.problem, "dtype": self.case.dtype, "backend": backend}
        row = {"check": check, "of": of, **names, "difference": difference, "bound": bound}
        if values and np.ndim(values[0]) == 0:
            row |= {"value": values[0], "of sparse": values[1]}
        # Not "above the bound": NaN must not pass.
        return row | {"kept": values is None or equal or difference <= bound}

    def rows(self) -> Iterator[Any]:
        yield from self.of_primitives()
        for name in SOLVERS:
            yield from self.of_objectives(name)
        for name in FITTED:
            yield from self.of_final_errors(name)

    def of_primitives(self) -> Iterator[Any]:
        V = np.random.default_rng(2).standard_normal((self.case.M.shape[0], self.case.rank))
        found = {backend: dict(primitives(op, self.factors, V)) for backend, op in self.operators.items()}
        for backend in self.backends:
            for name, expected in found["sparse"].items():
                yield self.row("primitives", name, backend, (found[backend][name], expected))

    def of_objectives(self, name: str) -> Iterator[Any]:
        solver, expected = SOLVERS[name](), None
        for backend in self.backends:
            op = self.operators[backend]
            if not all(op.offers(each) for each in solver.requires):
                yield self.row("objective", name, backend, None)
                continue
            settings = solver, self.starts["imputed"], self.options.steps
            if expected is None:
                expected = objective(self.operators["sparse"], *settings)
            yield self.row("objective", name, backend, (objective(op, *settings), expected))

    def of_final_errors(self, name: str) -> Iterator[Any]:
        settings = self.starts["imputed"], self.options.fit_steps
        expected = self.case.final_error(name, "sparse", *settings)
        for backend in self.backends:
            found = self.case.final_error(name, backend, *settings)
            equal = max(found, expected) <= TOL
            yield self.row("final error", name, backend, (found, expected), equal)


def largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the row of the problem with the largest difference, for each check, type and backend."""
    worst: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("check", "of", "dtype", "backend"))
        if key not in worst or size(row) > size(worst[key]):
            worst[key] = row
    return list(worst.values())


def size(row: dict[str, Any]) -> tuple[bool, float]:
    """Return by what rows are ordered: a broken bound comes before all others."""
    difference = row["difference"]
    return not row["kept"], difference if isinstance(difference, float) else 0.0


class Results:
    """The rows so far, printed and written one by one: a run that is cut off leaves what it has."""

    def __init__(self, options: argparse.Namespace, has_gpu: bool) -> None:
        versions = environment() if has_gpu else {"device": "none", "torch": torch.__version__}
        settings = {name: getattr(options, name) for name in ("nodes", "rank", "steps", "fit_steps")}
        self.environment = versions | {"symrelu": __version__} | settings
        self.output, self.begin = options.output, time.perf_counter()
        self.rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        print(f"{time.perf_counter() - self.begin:6.1f} s", row, flush=True)
        if self.output:
            path = self.output / "equality.json"
            rows = with_earlier(path, self.rows, KEY, self.environment)
            write_json(path, {"environment": self.environment, "rows": rows})
            write_table(path.with_suffix(".csv"), largest(rows), IN_TABLE)


def main() -> None:
    has_gpu = torch.cuda.is_available()
    offered = ["cuda", "torch"] if has_gpu else ["torch"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--steps", type=int, default=15, help="after which objectives are compared")
    parser.add_argument("--fit-steps", type=int, default=30, help="most steps of a whole fit")
    parser.add_argument("--backends", nargs="+", choices=offered, default=offered)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--output", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    results = Results(options, has_gpu)
    for case in cases(options.nodes, options.rank, options.dtypes):
        for row in Comparison(case, options.backends, options).rows():
            results.add(row)
    rows = results.rows
    broken = [row for row in rows if not row["kept"]]
    if broken:
        total = sum(isinstance(row["difference"], float) for row in rows)
        print(f"{len(broken)} of {total} differences are above their bounds:", *broken, sep="\n")
        raise SystemExit(1)
    print("All differences are within their bounds.")


if __name__ == "__main__":
    main()
