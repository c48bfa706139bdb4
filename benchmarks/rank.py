"""Test the choices of select_rank: planted ranks of synthetic matrices, and ranks for link prediction.

    python benchmarks/rank.py [--seeds 5] [--jobs 2] [--max-iter STEPS] [--output FOLDER]

Synthetic: the paper's matrices of 500 items and 10 planted columns, with ranks 6 to 14 and again with the ranks
that the default search tries. With the shift p = 0.1 one negative column is needed in addition; the grid
includes it. Digits: the default search on scikit-learn's digits graph, and its seconds. Links: a tenth of the
links of email-Eu-core and polblogs (from SYMRELU_DATA) is held out, and the rest is normalised and fitted with
the settings of LinkPredictor at ranks 2 to 64. "Lost" is the difference in AUC on the held-out links between
the best rank of the grid and the chosen one; select_rank sees only the training graph.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from tasks.links import split
from threadpoolctl import threadpool_limits

from symrelu import LinkPredictor, decompose, select_rank
from symrelu.datasets import load_digits_graph, make_relu_gram
from symrelu.fit.normalised_graph import NormalisedGraph
from symrelu.problem import Problem

PLANTED, SYNTHETIC_RANKS = 10, range(6, 15)
LINK_RANKS = (2, 4, 8, 16, 32, 64)
GRAPHS = ("email-Eu-core", "polblogs")
TASKS = ("synthetic", "digits", "links")
FIELDS = ("problem", "seed", "rank", "n_negative", "wanted", "auc", "best_auc", "lost", "seconds")


def synthetic(n: int, shift: float, seed: int, ranks: Any, **limits: Any) -> dict[str, Any]:
    """Return the choice for one synthetic matrix, among the given ranks or, if None, by the default search."""
    M, _ = make_relu_gram(n, PLANTED, shift=shift, random_state=seed)
    with threadpool_limits(1):  # the jobs run in parallel
        n_negative = [0, 1] if shift else 0
        chosen = select_rank(M, ranks, n_negative=n_negative, random_state=seed, **limits).chosen
    return {
        "problem": f"n={n}, p={shift:g}" + (", searched" if ranks is None else ""),
        "seed": seed,
        "rank": chosen["rank"],
        "n_negative": chosen["n_negative"],
        "wanted": PLANTED + (1 if shift else 0),
    }


def digits(seed: int) -> dict[str, Any]:
    """Return the choice of the default search for the digits graph, and its seconds."""
    M, _ = load_digits_graph()
    start = time.perf_counter()
    chosen = select_rank(M, random_state=seed).chosen
    seconds = time.perf_counter() - start
    record = {"problem": "digits", "seed": seed, "rank": chosen["rank"], "n_negative": chosen["n_negative"]}
    return {**record, "wanted": "", "seconds": seconds}


def links(name: str, seed: int) -> dict[str, Any]:
    """Return the choice for one training graph, and the AUC on held-out links that it loses."""
    train, i, j, truth = split(name, seed)
    # The settings are read from the estimator, so that the comparison follows its defaults.
    default = LinkPredictor()
    graph = NormalisedGraph.of(Problem.of(train, diagonal="ignore"), default.degree_regularization)
    N, roots = graph.problem.M, graph.root_degrees
    fit = {
        "n_negative": default.n_negative,
        "alpha": graph.problem.alpha_of(graph.suggested_shrinkage),
        "zero_weight": default.zero_weight,
        "init": default.init,
        "max_iter": default.max_iter,
        "diagonal": "ignore",
    }
    with threadpool_limits(1):
        chosen = select_rank(N, LINK_RANKS, scoring="auc", random_state=seed, **fit).chosen
        areas = {
            rank: roc_auc_score(
                truth, decompose(N, rank, random_state=seed, **fit).score_pairs(i, j) * roots[i] * roots[j]
            )
            for rank in LINK_RANKS
        }
    auc, best = areas[chosen["rank"]], max(areas.values())
    wanted = max(areas, key=lambda rank: areas[rank])
    record = {"problem": name, "seed": seed, "rank": chosen["rank"], "n_negative": chosen["n_negative"]}
    return {**record, "wanted": wanted, "auc": auc, "best_auc": best, "lost": best - auc}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--max-iter", type=int, help="steps of a fit to a synthetic matrix, if not the default")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    limits = {"max_iter": arguments.max_iter} if arguments.max_iter else {}
    work = []
    for seed in range(arguments.seeds):
        if "synthetic" in arguments.tasks:
            work += [
                delayed(synthetic)(arguments.n, shift, seed, ranks, **limits)
                for shift in (0.0, 0.1)
                for ranks in (SYNTHETIC_RANKS, None)
            ]
        if "digits" in arguments.tasks and seed == 0:
            work.append(delayed(digits)(seed))
        if "links" in arguments.tasks:
            work += [delayed(links)(name, seed) for name in GRAPHS]
    records = []
    print("| problem | seed | chosen rank | negative columns | wanted or best rank | AUC lost | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for record in Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")(work):
        records.append(record)
        lost = f"{record['lost']:.4f}" if "lost" in record else ""
        cells = [record[name] for name in ("problem", "seed", "rank", "n_negative", "wanted")]
        seconds = f"{record['seconds']:.1f}" if "seconds" in record else ""
        print("| " + " | ".join(map(str, [*cells, lost, seconds])) + " |", flush=True)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        records.sort(key=lambda record: (record["problem"], record["seed"]))
        with open(arguments.output / "rank.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(records)


if __name__ == "__main__":
    main()
