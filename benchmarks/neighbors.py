"""Test how many neighbours of each node an embedding gives back, and how few columns give all of them back.

    python benchmarks/neighbors.py [--tasks recall exact] [--data cora digits] [--ranks 8 16 32] [--seeds 1]
                                   [--methods eigsh UMAP] [--max-time 1500] [--fit-time 300]
                                   [--output FOLDER]

Recall: a node with d neighbours has as many guesses, the d other nodes with the best scores. The recall of a
node is the share of its neighbours among them, and the table shows the mean over all nodes that have a
neighbour; the records also hold the mean over links, and the share of nodes whose recall is 1. All nodes are
counted, none is sampled. A node is never its own neighbour. If several nodes share the score of the last guess,
the recall is its expected value for guesses drawn from them at random, so the order of the nodes does not
matter. Scores are entries of X, or minus the distance (Laplacian eigenmaps, UMAP). LPCA has two factors: with
r / 2 columns in each it has as many numbers as the other methods, with r columns twice as many. A star marks
fits that --fit-time stopped.

Exact: the number of columns that NeighborEmbedding finds for a graph, the wrong pairs of its certificate,
seconds, and the numbers of the embedding per link.

Data: the digits, and from SYMRELU_DATA eight graphs and the self-tuning graphs of the paper's six sets of
samples. The latter are weighted; LPCA is given their links without the weights. Results are stored under
build/benchmarks/neighbors as they are computed, so that an interrupted run resumes. With --output, the tables
and all records are written to a folder as Markdown and JSON.

This measures neither compression (a list of links takes less memory), nor the quality of the embeddings as
features, nor the prediction of links that were not in the data.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.manifold import SpectralEmbedding

from symrelu import NeighborEmbedding, SymReLU, decompose
from symrelu.baselines import SymHALS, logistic_pca, symmetric_nmf, truncated_eigen
from symrelu.datasets import load_digits_graph, load_graph
from symrelu.datasets.published import load_dataset
from symrelu.experiments.environment import describe_environment
from symrelu.graphs import self_tuning_graph
from symrelu.kernels.memory import batches

STORE = Path("build/benchmarks/neighbors/records.jsonl")
RANKS = (8, 16, 32)
PUBLISHED = ("celegans", "usair", "ecoli", "ppi", "email-Eu-core", "polblogs", "cora", "pubmed")
SAMPLES = ("ORL", "COIL20", "YaleB", "PIE", "COIL100", "TDT2")
DATA = ("digits", *PUBLISHED, *SAMPLES)


# Embeddings: scores(rows) returns the scores of all nodes for each node of some rows.


class Embedding(Protocol):
    """What a method returns."""

    def scores(self, rows: slice) -> np.ndarray: ...


class InnerProducts(NamedTuple):
    """Scores left right^T."""

    left: np.ndarray
    right: np.ndarray

    def scores(self, rows: slice) -> np.ndarray:
        return self.left[rows] @ self.right.T


class Distances(NamedTuple):
    """Scores that are minus the squared distances."""

    points: np.ndarray

    def scores(self, rows: slice) -> np.ndarray:
        # From the differences: an expanded square would separate equal points by rounding errors.
        return -cdist(self.points[rows], self.points, "sqeuclidean")


# Methods: embedding = fit(M, columns, seed, max_time), where those that iterate for long end after max_time


def defaults(M: Any, columns: int, seed: int, max_time: float | None = None) -> Embedding:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the fit did not converge, and that the defaults are new
        model = SymReLU(columns, random_state=seed, max_time=max_time).fit(M).solution_.model
    return InnerProducts(model.left, model.right)


def one_negative_column(M: Any, columns: int, seed: int, max_time: float | None = None) -> Embedding:
    model = decompose(M, columns, n_negative=1, diagonal="ignore", random_state=seed, max_time=max_time).model
    return InnerProducts(model.left, model.right)


def no_negative_column(M: Any, columns: int, seed: int, max_time: float | None = None) -> Embedding:
    model = decompose(M, columns, diagonal="ignore", random_state=seed, max_time=max_time).model
    return InnerProducts(model.left, model.right)


def eigen(M: Any, columns: int, seed: int, max_time: float | None = None) -> Embedding:
    """Return the eigenvectors of largest magnitude, with all copies of repeated eigenvalues."""
    model = truncated_eigen(M, columns, random_state=seed).model
    return InnerProducts(model.left, model.right)


def symnmf(M: Any, columns: int, seed: int, max_time: float | None = None) -> Embedding:
    U = symmetric_nmf(M, columns, SymHALS(), max_iter=500, random_state=seed, max_time=max_time).U
    return InnerProducts(U, U)


def laplacian_eigenmaps(M: Any, columns: int, seed: int, max_time: float | None = None) -> Distances:
    method = SpectralEmbedding(columns, affinity="precomputed", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about graphs with several components
        return Distances(method.fit_transform(sparse.csr_matrix(M)))


def umap_layout(M: Any, columns: int, seed: int, max_time: float | None = None) -> Embedding:
    """Return UMAP's layout of the graph itself, with its default settings, from Laplacian eigenmaps."""
    from umap.umap_ import find_ab_params, simplicial_set_embedding

    a, b = find_ab_params(spread=1.0, min_dist=0.1)
    points, _ = simplicial_set_embedding(
        data=np.zeros((M.shape[0], 1)),  # used only to place components, which the given start does
        graph=sparse.coo_matrix(M / M.max()),
        n_components=columns,
        initial_alpha=1.0,
        a=a,
        b=b,
        gamma=1.0,
        negative_sample_rate=5,
        n_epochs=None,
        init=laplacian_eigenmaps(M, columns, seed).points,
        random_state=np.random.RandomState(seed),
        metric="euclidean",
        metric_kwds={},
        densmap=False,
        densmap_kwds={},
        output_dens=False,
    )
    return Distances(points)


def lpca(M: Any, columns: int, seed: int, max_time: float | None = None) -> Embedding:
    model = logistic_pca(M > 0, columns, random_state=seed, max_time=max_time).model
    return InnerProducts(model.left, model.right)


class Method(NamedTuple):
    """A row of the table of recalls: a fit, and the columns it has in a table of rank r."""

    fit: Callable[[Any, int, int, float | None], Embedding]
    columns: Callable[[int], int] = int


METHODS = {
    "SymReLU, defaults": Method(defaults),
    "symrelu, n_negative=1": Method(one_negative_column),
    "symrelu, n_negative=0": Method(no_negative_column),
    "eigsh": Method(eigen),
    "SymNMF": Method(symnmf),
    "Laplacian eigenmaps": Method(laplacian_eigenmaps),
    "UMAP": Method(umap_layout),
    "LPCA, r / 2 columns in each factor": Method(lpca, lambda r: r // 2),
    "LPCA, r columns in each factor": Method(lpca),
}
REQUIRED = {umap_layout: ("umap", "umap-learn")}  # module, package


# Data


@functools.lru_cache(maxsize=1)  # a large graph is not kept when the next one is read
def graph(name: str) -> Any:
    """Return a graph as a csr_array without self-links."""
    if name == "digits":
        M = load_digits_graph()[0]
    elif name in SAMPLES:
        M = self_tuning_graph(load_dataset(name).data)
    else:
        M = load_graph(name).M
    M = sparse.csr_array(M, copy=True)
    M.setdiag(0)
    M.eliminate_zeros()
    return M


# Recall


class Recall(NamedTuple):
    """The recall, averaged over nodes that have a neighbour and over links, and the nodes where it is 1."""

    of_nodes: float
    of_links: float
    whole_nodes: float


def recall(M: Any, embedding: Embedding) -> Recall:
    """Count over all nodes; rows of scores are formed in batches."""
    n = M.shape[0]
    degrees = np.diff(M.indptr)
    found = np.zeros(n)
    for rows in batches(n, 4 * n * 8):
        scores = embedding.scores(rows)
        if np.isnan(scores).any():
            raise ValueError("Scores must not be NaN.")
        for node, row in zip(range(rows.start, rows.stop), scores, strict=True):
            if degrees[node]:
                row[node] = -np.inf
                found[node] = expected_hits(row, M.indices[M.indptr[node] : M.indptr[node + 1]])
    linked = degrees > 0
    shares = found[linked] / degrees[linked]
    return Recall(float(shares.mean()), float(found.sum() / degrees.sum()), float(np.mean(shares == 1)))


def expected_hits(scores: np.ndarray, neighbours: np.ndarray) -> float:
    """Return how many of the d neighbours are among the d best scores, if ties are broken at random."""
    d = len(neighbours)
    last = np.partition(scores, -d)[-d]
    tied = scores[neighbours] == last
    certain = np.count_nonzero(scores[neighbours] > last)
    if not tied.any():
        return certain
    places_left = d - np.count_nonzero(scores > last)
    return certain + np.count_nonzero(tied) * places_left / np.count_nonzero(scores == last)


# Exact neighbours


def smallest_exact(M: Any, seed: int, max_time: float | None = None) -> dict[str, Any]:
    """Return the columns that NeighborEmbedding finds, and what its certificate says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are wrong pairs, which the record says
        fitted = NeighborEmbedding(max_time=max_time, random_state=seed).fit(M)
    return {
        "columns": fitted.n_components_,
        "wrong_pairs": fitted.certificate_.wrong_pairs,
        "margin": fitted.certificate_.margin,
        "threshold": fitted.threshold_,
        "steps": fitted.n_iter_,
        "attempts": [vars(attempt) for attempt in fitted.attempts_],
    }


# Running


class Job(NamedTuple):
    """One fit of one graph. The two rows of LPCA share a fit if they have the same number of columns."""

    data: str
    fit: str
    columns: int  # 0 if the fit chooses the number itself
    seed: int


FITS = {method.fit.__name__: method.fit for method in METHODS.values()}


def jobs(data: list[str], methods: list[str], ranks: list[int], seeds: int, tasks: list[str]) -> Iterator[Job]:
    """Yield all jobs, each one once."""
    wanted = {}
    for name in data:
        for seed in range(seeds):
            if "recall" in tasks:
                for method in (METHODS[key] for key in methods):
                    for r in ranks:
                        wanted[Job(name, method.fit.__name__, method.columns(r), seed)] = None
            if "exact" in tasks:
                wanted[Job(name, smallest_exact.__name__, 0, seed)] = None
    yield from wanted


def perform(job: Job, max_time: float | None, fit_time: float | None) -> dict[str, Any]:
    """Return the record of a job."""
    M = graph(job.data)
    n, links = M.shape[0], M.nnz // 2
    record: dict[str, Any] = {**job._asdict(), "n": n, "links": links}
    began = time.perf_counter()
    if job.fit == smallest_exact.__name__:
        record["found"] = smallest_exact(M, job.seed, max_time)
        return record | {"seconds": time.perf_counter() - began}
    embedding = FITS[job.fit](M, job.columns, job.seed, fit_time)
    seconds = time.perf_counter() - began
    limited = fit_time is not None and seconds >= fit_time
    return record | {"seconds": seconds, "stopped_by_time": limited} | recall(M, embedding)._asdict()


def warm_up(fit: Callable[..., Any]) -> None:
    """Let numba compile before a fit is timed."""
    ring = sparse.csr_array(np.roll(np.eye(40), 1, axis=0))
    fit(ring + ring.T, 4, 0)


def stored(path: Path) -> dict[Job, dict[str, Any]]:
    """Return the records of earlier runs."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {Job(**{name: record[name] for name in Job._fields}): record for record in records}


def missing_requirements(methods: list[str]) -> dict[str, str]:
    """Return why fits cannot run here, by name."""
    reasons = {}
    for key in methods:
        module, package = REQUIRED.get(METHODS[key].fit, ("numpy", ""))
        if find_spec(module) is None:
            reasons[METHODS[key].fit.__name__] = f"{key} is left out: it requires {package}."
    return reasons


def run_jobs(
    wanted: list[Job], path: Path, reasons: dict[str, str], max_time: float | None, fit_time: float | None
) -> dict[Job, dict[str, Any]]:
    """Run the jobs that are not stored yet, and return the records of all wanted jobs that could run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = stored(path)
    missing = [job for job in wanted if job not in known and job.fit not in reasons]
    warm: set[str] = set()
    without_data: set[str] = set()
    for count, job in enumerate(missing, start=1):
        if job.data in without_data:
            continue
        try:
            graph(job.data)
        except FileNotFoundError as error:
            print(f"{job.data} is left out: {error}", flush=True)
            without_data.add(job.data)
            continue
        if job.fit not in warm:
            warm_up(FITS.get(job.fit, lambda M, _, seed: smallest_exact(M, seed)))
            warm.add(job.fit)
        known[job] = record = perform(job, max_time, fit_time)
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        result = f"recall {record['of_nodes']:.4f}" if "of_nodes" in record else str(record["found"])
        print(
            f"{count}/{len(missing)} {' '.join(map(str, job))}: {result}, {record['seconds']:.1f} s", flush=True
        )
    return {job: known[job] for job in wanted if job in known}


# Reporting


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def recall_tables(records: dict[Job, dict[str, Any]], methods: list[str], ranks: list[int]) -> str:
    """Return two tables of means over the seeds: recall, and seconds."""
    data = list(dict.fromkeys(job.data for job in records if job.columns))
    parts = []
    for title, field, digits in (("recall", "of_nodes", 4), ("seconds", "seconds", 1)):
        rows = []
        for r in ranks:
            for key in methods:
                fit, columns = METHODS[key].fit.__name__, METHODS[key].columns(r)
                cells = [
                    [found[field] for job, found in records.items() if job[:3] == (name, fit, columns)]
                    for name in data
                ]
                if any(cells):
                    stopped = {
                        name
                        for name in data
                        for job, found in records.items()
                        if job[:3] == (name, fit, columns) and found.get("stopped_by_time")
                    }
                    means = [
                        (f"{np.mean(cell):.{digits}f}" if cell else "-") + ("*" if name in stopped else "")
                        for name, cell in zip(data, cells, strict=True)
                    ]
                    rows.append([f"{key}, r = {r}", *means])
        if rows:
            parts.append(table([title, *data], rows))
    return "\n\n".join(parts)


def exact_table(records: dict[Job, dict[str, Any]]) -> str:
    """Return the table of the smallest exact embeddings, one row per graph and seed."""
    rows = []
    for job, record in records.items():
        if job.fit == smallest_exact.__name__:
            n, links, found = record["n"], record["links"], record["found"]
            numbers = n * found["columns"] / links
            counts = (job.seed, n, links, found["columns"], found["wrong_pairs"])
            rows.append([job.data, *map(str, counts), f"{numbers:.2f}", f"{record['seconds']:.0f}"])
    heads = ["graph", "seed", "nodes", "links", "columns", "wrong pairs", "numbers per link", "seconds"]
    return table(heads, rows) if rows else ""


def graph_table(records: dict[Job, dict[str, Any]], ranks: list[int]) -> str:
    """Return the table of the graphs: their sizes, and the numbers per link of an embedding with r columns."""
    sizes = {job.data: (record["n"], record["links"]) for job, record in records.items()}
    rows = [
        [name, str(n), str(links), f"{2 * links / n:.1f}", *(f"{n * r / links:.2f}" for r in ranks)]
        for name, (n, links) in sizes.items()
    ]
    heads = ["graph", "nodes", "links", "mean degree", *(f"numbers per link, r = {r}" for r in ranks)]
    return table(heads, rows) if rows else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=["recall", "exact"], default=["recall", "exact"])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--ranks", nargs="+", type=int, default=list(RANKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--max-time", type=float, help="seconds for each search of the smallest exact embedding"
    )
    parser.add_argument("--fit-time", type=float, help="seconds for each fit of a method that iterates")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--output", type=Path, help="folder for neighbors.md and neighbors.json")
    options = parser.parse_args()
    reasons = missing_requirements(options.methods)
    wanted = list(jobs(options.data, options.methods, options.ranks, options.seeds, options.tasks))
    records = run_jobs(wanted, options.store, reasons, options.max_time, options.fit_time)
    parts = (
        graph_table(records, options.ranks),
        recall_tables(records, options.methods, options.ranks),
        exact_table(records),
        "\n".join(reasons.values()),
    )
    page = "\n\n".join(part for part in parts if part)
    print("\n" + page)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "neighbors.md").write_text(page + "\n", encoding="utf-8")
        content = {"environment": describe_environment(), "records": list(records.values())}
        (options.output / "neighbors.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
