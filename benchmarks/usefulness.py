"""Evaluate clusters, links and features from fitted factors, compared with other methods and controls.

    python benchmarks/usefulness.py [--tasks communities images links features] [--jobs 2] [--output FOLDER]

Communities: clusters of block models, LFR graphs and networks, scored by NMI with the planted or known classes
(Les Miserables: modularity). All methods but Louvain get the number of clusters, except in the rows without it.

Images: NMI with the classes of the digits, ORL, COIL20, YaleB and PIE (all but the digits from SYMRELU_DATA).
Each method gets the number of classes and the same graph of nearest neighbours (UMAP: the samples): the
self-tuning graph, the union of the 10 nearest without weights, and UMAP's connectivities of 15 neighbours. The
eigendecomposition, the linear model and SymHALS have one column per class.

Links: a tenth of the links is hidden, as in LinkPredictor.evaluate: AUC with uniform negatives; AUC, average
precision, Hits@50 and MRR with negatives drawn by degree. Hidden links are zeros of the training graph: no
method knows which pairs will be tested. Methods with a rank or another setting are shown at the setting with
the highest mean AUC, chosen in hindsight; LinkPredictor uses its default settings.

Features: accuracy of logistic regression on the rows of an embedding, with 10 % of the labels.

Each control removes one ingredient: the factor (linkage on M itself), the fit (linkage on the truncated
eigendecomposition), the ReLU (the same fit, in which a zero requires X = 0), the negative column. With --base,
a source tree of symrelu 0.1.0 is compared on the same graphs and splits. Values are stored under
build/benchmarks/usefulness as they are computed, so that an interrupted run resumes. With --output, the tables
are written to a folder as CSV and Markdown, with a figure.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tasks import earlier
from tasks.base import run_jobs
from tasks.clustering import communities, images
from tasks.features import features
from tasks.links import links
from tasks.report import page, summarise, write

TASKS = {task.name: task for task in (communities, images, links, features)}
STORE = Path("build/benchmarks/usefulness/values.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--data", nargs="+", help="only these columns of the tables")
    parser.add_argument("--methods", nargs="+", help="only these rows of the tables")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--base", type=Path, help="source tree of symrelu 0.1.0, for the rows named 0.1.0")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.base:
        os.environ[earlier.VARIABLE] = str(arguments.base.resolve())
    chosen = [TASKS[name] for name in arguments.tasks]
    wanted = [job for task in chosen for job in task.jobs(arguments.data, arguments.methods, arguments.seeds)]
    records = run_jobs(TASKS, wanted, arguments.store, arguments.jobs)
    lines = [line for task in chosen for line in summarise(task, records)]
    print("\n" + page(chosen, lines))
    if arguments.output:
        write(chosen, lines, arguments.output)


if __name__ == "__main__":
    main()
