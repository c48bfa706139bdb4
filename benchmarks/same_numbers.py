"""Check that this code gives the same numbers as another commit, bit for bit or up to a tolerance.

    git worktree add ../before 324cf23
    python benchmarks/same_numbers.py --base ../before [--tolerance 1e-9]

Both trees run about sixty fits, each tree in its own process on one thread: solvers, operators, starts, masks,
signatures, dtypes, scales, estimators, selection, baselines and cells of the reproduction. A change that should
not affect results must show no difference here. One that changes the order of sums may change the last digits:
the largest difference of each case is shown, relative to the largest number of its kind. Cases that a later
commit changed on purpose are listed with the reason; they are run and shown, but do not count as failures.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

# Case -> why its numbers differ from those of 324cf23.
_ROWS = "new rows now minimise their objective exactly, without an additional ridge"
CHANGED_ON_PURPOSE = {"SymReLU": _ROWS, "SymReLU, three starts": _ROWS, "SymReLU on samples": _ROWS}

Numbers = dict[str, Any]


@lru_cache(maxsize=1)
def data() -> SimpleNamespace:
    """Return the matrices of the cases."""
    from symrelu import metrics
    from symrelu.datasets import load_digits_graph, make_relu_gram

    return SimpleNamespace(
        digits=sparse.csr_array(load_digits_graph()[0])[:300, :300],
        gram=make_relu_gram(120, 5, shift=0.1, random_state=0)[0],
        large=make_relu_gram(900, 6, shift=0.05, random_state=1)[0],
        hidden=metrics.random_mask(300, 0.1, random_state=0),
        start=np.random.default_rng(0).standard_normal((300, 6)),
    )


def fit(M: Any = None, rank: int = 6, **settings: Any) -> Callable[[], Numbers]:
    """Return a fit of a matrix, by default of the digits."""
    from symrelu import decompose

    M = data().digits if M is None else M
    settings = {"random_state": 0, "max_iter": 25, **settings}
    return lambda: of_solution(decompose(M, rank, **settings))


Cases = dict[str, Callable[[], Numbers]]


def cases() -> Cases:
    """Return the fits by name. They may use only names of 0.1.0, because the base tree has no others."""
    return {**cases_of_solvers(), **cases_of_settings(), **cases_of_estimators(), **cases_of_baselines()}


def cases_of_solvers() -> Cases:
    """Return a fit by each solver, without and with a negative column."""
    from symrelu import AAPB, LBFGS, PALM, Eigen

    solvers = {
        "LBFGS": LBFGS(),
        "LBFGS, memory 3": LBFGS(memory=3),
        "AAPB": AAPB(),
        "AAPB, step 10": AAPB(step_size=10),
        "APB": AAPB(momentum=0.0),
        "AAPB, safeguarded": AAPB(safeguard=True),
        "AAPB, adaptive": AAPB(step_size="adaptive"),
        "Eigen": Eigen(),
        "Eigen, three sweeps": Eigen(momentum=0.5, sweeps=3),
        "PALM": PALM(),
        "iPALM": PALM(momentum=1.0),
    }
    plain = {f"solver {name}": fit(solver=solver) for name, solver in solvers.items()}
    signed = {
        f"signed, {name}": fit(data().gram, n_negative=1, solver=solver) for name, solver in solvers.items()
    }
    return plain | signed


def cases_of_settings() -> Cases:
    """Return fits with other operators, starts, models and sizes."""
    from symrelu import AAPB, Eigen
    from symrelu.datasets import make_relu_gram

    digits, gram, large, hidden = data().digits, data().gram, data().large, data().hidden
    table = {
        f"{backend}, {dtype}": fit(digits.astype(dtype), backend=backend)
        for backend in ("dense", "sparse", "reference")
        for dtype in ("float32", "float64")
    }
    table |= {f"start {init}": fit(init=init) for init in ("random", "uniform", "spectral", "imputed")}
    table |= {
        "start array": fit(init=data().start, solver=AAPB()),
        "mask": fit(mask=hidden),
        "dense mask": fit(digits.toarray(), mask=hidden.toarray(), solver=Eigen()),
        "diagonal ignored": fit(diagonal="ignore", n_negative=1),
        "mask and diagonal": fit(gram, 5, mask=hidden[:120, :120], diagonal="ignore", n_negative=1),
        "n_negative auto": fit(gram, n_negative="auto"),
        "three negative": fit(gram, n_negative=3, init="random"),
        "alpha": fit(alpha=0.1),
        "zero_weight": fit(zero_weight=0.1, alpha=0.2, diagonal="ignore"),
        "tiny": fit(gram * 1e-30),
        "huge, float32": fit((gram * 1e20).astype(np.float32)),
        "several tiles": fit(large, 7, n_negative=1),
        "several tiles, sparse": fit(sparse.csr_array(large), 7, solver=AAPB()),
        "high rank": fit(gram, 100),
        "to the end": fit(gram, 6, n_negative=1, max_iter=500),
        "cell r=10": fit(
            make_relu_gram(500, 10, random_state=0)[0], 10, solver=AAPB(step_size=10), init="uniform"
        ),
        "cell r=70": fit(make_relu_gram(500, 10, shift=0.1, random_state=0)[0], 70, solver=AAPB(step_size=10)),
    }
    return table


def cases_of_estimators() -> Cases:
    """Return fits by estimators and by the selection of the rank."""
    from symrelu import LinkPredictor, SymReLU, SymReLUClustering, select_rank

    digits, gram, hidden, start = data().digits, data().gram, data().hidden, data().start
    paper = {"n_negative": 0, "diagonal": "fit"}  # the defaults of 0.1.0, with which this is compared
    return {
        "SymReLU": lambda: of_estimator(
            SymReLU(6, **paper, random_state=0, max_iter=60, gtol=1e-4).fit(digits), digits[:40]
        ),
        "SymReLU, three starts": lambda: of_estimator(
            SymReLU(4, **paper, n_init=3, random_state=0, gtol=1e-3, ftol=1e-3).fit(gram), gram[:20]
        ),
        "SymReLU on samples": lambda: of_estimator(
            SymReLU(4, **paper, affinity="self_tuning", random_state=0, gtol=1e-3, ftol=1e-3).fit(start),
            start[:20],
        ),
        "clustering": lambda: {"labels": SymReLUClustering(5, random_state=0).fit(digits).labels_},
        "links": lambda: of_links(LinkPredictor(8, random_state=0).fit(digits > 0)),
        "select_rank": lambda: of_selection(
            select_rank(gram, [2, 5, 6], n_negative=[0, 1], n_repeats=2, max_iter=30, random_state=0)
        ),
        "select_rank, auc": lambda: of_selection(
            select_rank(digits, [4, 8], n_repeats=2, scoring="auc", max_iter=20, random_state=0, mask=hidden)
        ),
    }


def cases_of_baselines() -> Cases:
    """Return fits by other methods."""
    from symrelu import baselines

    digits, gram = data().digits, data().gram
    return {
        "SymHALS": lambda: of_solution(
            baselines.symmetric_nmf(digits, 5, baselines.SymHALS(), max_iter=30, random_state=0)
        ),
        "SymANLS": lambda: of_solution(
            baselines.symmetric_nmf(digits, 5, baselines.SymANLS(), max_iter=10, random_state=0)
        ),
        "truncated_eigen": lambda: of_solution(baselines.truncated_eigen(gram, 5)),
        "3B-NMD": lambda: of_solution(baselines.three_block_nmd(gram, 5, max_iter=20, random_state=0)),
    }


def of_solution(solution: Any) -> Numbers:
    # Times differ between any two runs.
    history = {f"history.{k}": v for k, v in solution.history.as_dict().items() if k != "seconds"}
    names = ("U", "signature", "relative_error", "objective", "norm", "n_iter", "n_evaluations")
    return {**{name: getattr(solution, name) for name in names}, "status": solution.status.name, **history}


def of_estimator(model: Any, rows: Any) -> Numbers:
    return {**of_solution(model.solution_), "transform": model.transform(rows), "score": model.score(rows)}


def of_links(model: Any) -> Numbers:
    pairs, scores = model.top_links(20)
    return {**of_solution(model.solution_), "pairs": pairs, "scores": scores}


def of_selection(selection: Any) -> Numbers:
    return {"scores": [row["scores"] for row in selection.table], "chosen": str(selection.chosen["rank"])}


def run_cases(folder: Path) -> None:
    """Write the numbers of each case to a separate file."""
    from threadpoolctl import threadpool_limits

    import symrelu

    # Comparing a tree with itself would always succeed.
    if not Path(symrelu.__file__).is_relative_to(os.environ["PYTHONPATH"]):
        raise SystemExit(f"symrelu was imported from {symrelu.__file__}, not from {os.environ['PYTHONPATH']}.")
    # With several threads, BLAS may add up in another order, which changes the last digits.
    with threadpool_limits(limits=1):
        for k, (name, case) in enumerate(cases().items()):
            np.savez(folder / f"{k}.npz", name=np.array(name), **{n: np.asarray(v) for n, v in case().items()})


def run_tree(tree: Path, folder: Path) -> None:
    """Run the cases with the package of one source tree."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve() / "src")}
    command = [sys.executable, "-W", "ignore", __file__, "--write", str(folder)]
    subprocess.run(command, env=environment, check=True)


def compare(before: Path, after: Path, tolerance: float) -> tuple[str, float, str]:
    """Return the name of a case, the largest relative difference, and which numbers exceed the tolerance."""
    with np.load(before) as old, np.load(after) as new:
        distances = {
            key: distance(old[key], new[key]) if key in new.files else math.inf
            for key in old.files
            if key != "name"
        }
        beyond = [f"{key} by {size:.1g}" for key, size in distances.items() if size > tolerance]
        return str(old["name"]), max(distances.values()), ", ".join(beyond)


def distance(old: np.ndarray, new: np.ndarray) -> float:
    """Return the largest difference relative to the largest number; infinite if they cannot be compared."""
    if np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
        return 0.0
    if old.shape != new.shape or old.dtype.kind not in "fiu":
        return math.inf
    size = np.abs(old).max(initial=0) or 1
    return float(np.abs(old.astype(float) - new).max() / size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="source tree to compare with")
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative difference that is allowed")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        run_cases(arguments.write)
        return
    if arguments.base is None:
        parser.error("--base must name the source tree to compare with")
    here = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before", Path(folder) / "after"
        run_tree(arguments.base, before)
        run_tree(here, after)
        paths = sorted(before.iterdir(), key=lambda path: int(path.stem))
        rows = [compare(path, after / path.name, arguments.tolerance) for path in paths]
    unexpected = 0
    for name, largest, beyond in rows:
        reason = CHANGED_ON_PURPOSE.get(name, "")
        unexpected += bool(beyond) and not reason
        remark = f"  (on purpose: {reason})" if beyond and reason else ""
        print(f"{name:28} {'equal' if largest == 0 else f'{largest:.1g}':>8}  {beyond}{remark}")
    equal = sum(largest == 0 for _, largest, _ in rows)
    print(f"\n{len(rows)} cases, {equal} equal bit for bit, {unexpected} unexpected")
    sys.exit(1 if unexpected else 0)


if __name__ == "__main__":
    main()
