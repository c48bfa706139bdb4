"""Fits whose objectives after 15 steps are stored: ``tests/data/objectives.json``, written by 0.1.0.

    PYTHONPATH=<a source tree of 0.1.0>/src python tests/golden.py tests/data/objectives.json

Anything here must exist in 0.1.0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from symrelu import AAPB, LBFGS, PALM, Eigen, decompose
from symrelu.datasets import load_digits_graph, make_relu_gram

STEPS = 15
FILE = Path(__file__).parent / "data" / "objectives.json"

_SOLVERS = {
    "LBFGS": LBFGS(),
    "AAPB": AAPB(),
    "AAPB, safeguarded": AAPB(safeguard=True),
    "AAPB, adaptive": AAPB(step_size="adaptive"),
    "Eigen": Eigen(),
    "Eigen, two sweeps": Eigen(sweeps=2),
    "PALM": PALM(),
    "iPALM": PALM(momentum=1.0),
}


def _hidden(n: int) -> Any:
    mask = sparse.random_array((n, n), density=0.1, rng=np.random.default_rng(0)) != 0
    return sparse.csr_array(mask + mask.T, dtype=bool)


def cases() -> dict[str, tuple[Any, int, dict[str, Any]]]:
    """Return matrix, rank and settings by name: solvers, starts, backends, masks, signs, weights."""
    gram, _ = make_relu_gram(120, 6, shift=0.1, random_state=0)
    graph = sparse.csr_array(load_digits_graph()[0][:300, :300])
    mask = _hidden(120)
    table: dict[str, tuple[Any, int, dict[str, Any]]] = {}
    for name, solver in _SOLVERS.items():
        table[f"graph, {name}"] = graph, 5, {"solver": solver}
        table[f"signed, {name}"] = gram, 6, {"solver": solver, "n_negative": 1}
        table[f"everything, {name}"] = (
            gram,
            5,
            {
                "solver": solver,
                "n_negative": 2,
                "mask": mask,
                "diagonal": "ignore",
                "alpha": 0.1,
                "zero_weight": 0.5,
            },
        )
    for init in ("random", "uniform", "spectral", "imputed"):
        table[f"start {init}"] = graph, 6, {"init": init, "n_negative": 1}
    for backend in ("dense", "sparse", "reference"):
        table[f"backend {backend}"] = graph, 4, {"backend": backend, "diagonal": "ignore"}
    table["n_negative auto"] = gram, 6, {"n_negative": "auto"}
    table["tiny"] = gram * 1e-30, 6, {}
    table["huge"] = gram * 1e30, 6, {"solver": AAPB()}
    return table


def objective(M: Any, rank: int, settings: dict[str, Any]) -> float:
    """Return the objective after 15 steps."""
    no_tests = {"tol": 0, "gtol": 0, "ftol": 0}
    return float(
        decompose(M, rank, max_iter=STEPS, random_state=0, **no_tests, **settings).history.objective[-1]
    )


if __name__ == "__main__":
    found = {name: objective(*case) for name, case in cases().items()}
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
