"""Evaluate clustering and link prediction with a fitted factor, compared with other methods and controls.

    python benchmarks/usefulness.py [--tasks clustering links] [--seeds 10] [--jobs 2] [--output FOLDER]

Clustering: NMI with the true classes of the digits, ORL, COIL20, YaleB and PIE (all but the digits from
SYMRELU_DATA). Each method gets the number of classes and the same self-tuning graph (UMAP: the samples). The
eigendecomposition, the linear model and SymReLU have one column per class.

Links: area under the ROC curve on email-Eu-core, polblogs and Cora. A tenth of the links is held out; the
negatives are the same number of pairs, drawn uniformly from those without a link in the whole graph. Held-out
links are zeros of the training graph, as in the usual protocol: no method knows which pairs will be tested.
Methods with a rank are scored at the rank with the highest mean over the splits, chosen in hindsight;
LinkPredictor uses its default settings.

Each control removes one ingredient: the factor (linkage on M itself), the fit (linkage on the truncated
eigendecomposition), the ReLU (the same fit, in which a zero requires X = 0), the negative column. Scores are
stored under build/benchmarks/usefulness as they are computed, so that an interrupted run resumes. With
--output, the tables are written to a folder as CSV and Markdown, with a figure.
"""

from __future__ import annotations

import argparse
import csv
import functools
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score
from threadpoolctl import threadpool_limits

from symrelu import LinkPredictor, SymReLUClustering
from symrelu.baselines import SymHALS, symmetric_nmf
from symrelu.datasets import load_digits_graph, load_graph
from symrelu.datasets.published import load_dataset
from symrelu.fit.loop import run
from symrelu.fit.settings import Limits
from symrelu.fit.starts import start
from symrelu.fitted.linkage_tree import average_linkage, average_linkage_of_factor
from symrelu.graphs import self_tuning_graph
from symrelu.metrics import clustering_accuracy
from symrelu.operators import SparseOperator
from symrelu.operators.base import Evaluation
from symrelu.plots import new_figure, save_figure
from symrelu.solvers import LBFGS

IMAGES = ("digits", "ORL", "COIL20", "YaleB", "PIE")
GRAPHS = ("email-Eu-core", "polblogs", "cora")
RANKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
STORE = Path("build/benchmarks/usefulness/scores.csv")
FIELDS = ("task", "data", "method", "rank", "seed", "score", "accuracy", "seconds")


class WithoutReLU(SparseOperator):
    """The linear model: a zero of M requires X = 0, not X <= 0. The diagonal is unobserved."""

    def __init__(self, M: Any, **settings: Any) -> None:
        n = M.shape[0]
        super().__init__(M, sparse.eye_array(n, dtype=bool, format="csr"), **settings)
        self.rows = np.repeat(np.arange(n), np.diff(self._M.indptr))

    def _evaluate(self, U: np.ndarray, V: np.ndarray | None) -> Evaluation:
        """Evaluate the residual M - X on the support, -w X on the zeros and 0 on the diagonal."""
        M, w, A = self._M, self.zero_weight, U * self.signature
        X = np.einsum("kr,kr->k", A[self.rows], U[M.indices])
        own = np.einsum("kr,kr->k", A, U)
        correction = sparse.csr_array((M.data - X + w * X, M.indices, M.indptr), shape=M.shape)
        squares = np.sum((A.T @ A) * (U.T @ U)) - np.sum(X**2) - np.sum(own**2)
        loss = float(np.sum((M.data - X) ** 2) + w * squares) / 2
        product = None if V is None else correction @ V - w * (A @ (U.T @ V)) + w * own[:, None] * V
        zeros = self.n**2 - self.n - M.nnz
        return Evaluation(product, loss, loss, self.norm**2, active_zeros=zeros)


def linear_fit(
    M: Any, rank: int, settings: Any, seed: int, init: Any | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the factor and signs that an estimator would find without the ReLU, all else equal."""
    signature = np.where(np.arange(rank) < rank - settings.n_negative, 1.0, -1.0)
    op = WithoutReLU(M, signature=signature, alpha=settings.alpha, zero_weight=settings.zero_weight)
    U0 = start(op, settings.init if init is None else init, seed)
    return run(op, LBFGS(), U0, Limits(max_iter=settings.max_iter)).U, signature


def eigenpairs(M: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenpairs of M, because ARPACK misses copies of repeated eigenvalues."""
    return np.linalg.eigh(M.toarray())


# Clusters: labels = method(M, X, k, seed)


def spectral(M: Any, X: Any, k: int, seed: int, assign: str) -> np.ndarray:
    model = SpectralClustering(k, affinity="precomputed", assign_labels=assign, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about graphs with several components
        return model.fit_predict(sparse.csr_matrix(M))


def symhals(M: Any, X: Any, k: int, seed: int) -> np.ndarray:
    fitted = symmetric_nmf(M, k, SymHALS(), max_iter=500, random_state=seed)
    return np.argmax(fitted.U, axis=1)


def umap_kmeans(M: Any, X: Any, k: int, seed: int) -> np.ndarray:
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed disables threads
        points = UMAP(n_components=10, min_dist=0.0, random_state=seed).fit_transform(X)
    return KMeans(k, n_init=10, random_state=seed).fit_predict(points)


def symrelu_clusters(M: Any, X: Any, k: int, seed: int, **changed: Any) -> np.ndarray:
    return SymReLUClustering(k, random_state=seed, **changed).fit_predict(M)


def linkage_on_data(M: Any, X: Any, k: int, seed: int) -> np.ndarray:
    return average_linkage(M).cut(k)


def linkage_on_eigen(M: Any, X: Any, k: int, seed: int) -> np.ndarray:
    values, vectors = eigenpairs(M)
    leading = np.argsort(-np.abs(values))[:k]
    U = vectors[:, leading] * np.sqrt(np.abs(values[leading]))
    return average_linkage_of_factor(U, np.where(values[leading] < 0, -1.0, 1.0)).cut(k)


def linkage_on_linear(M: Any, X: Any, k: int, seed: int) -> np.ndarray:
    """Start from the exact eigenpairs, because some fits from the usual noisy start do not converge in time."""
    values, vectors = eigenpairs(M)
    chosen = [*np.argsort(-values)[: k - 1], np.argmin(values)]  # one column is negative
    U0 = vectors[:, chosen] * np.sqrt(np.abs(values[chosen]))
    return average_linkage_of_factor(*linear_fit(M, k, SymReLUClustering(), seed, U0)).cut(k)


CLUSTERING = {
    "SpectralClustering, k-means": functools.partial(spectral, assign="kmeans"),
    "SpectralClustering, cluster_qr": functools.partial(spectral, assign="cluster_qr"),
    "UMAP, k-means": umap_kmeans,
    "SymHALS, largest column": symhals,
    "SymReLUClustering": symrelu_clusters,
    "control: linkage on M": linkage_on_data,
    "control: linkage on the eigendecomposition": linkage_on_eigen,
    "control: without the ReLU": linkage_on_linear,
    "control: n_negative=0": functools.partial(symrelu_clusters, n_negative=0),
}
# These methods do not depend on the seed.
UNSEEDED = {
    "control: linkage on M",
    "control: linkage on the eigendecomposition",
    "control: without the ReLU",
}


# Links: scores = method(train, i, j, seed), with one row per rank if a method has several


def symrelu_links(train: Any, i: np.ndarray, j: np.ndarray, seed: int, **changed: Any) -> np.ndarray:
    return LinkPredictor(random_state=seed, **changed).fit(train).score_pairs(i, j)


def normalised(train: Any) -> tuple[Any, np.ndarray]:
    """Return D^-1/2 B D^-1/2 with D = degree + mean degree, and the roots of D."""
    degree = train.sum(axis=1)
    roots = np.sqrt(degree + LinkPredictor().degree_regularization * degree.mean())
    inverse = sparse.diags_array(1 / roots)
    return sparse.csr_array(inverse @ train @ inverse), roots


def linear_links(train: Any, i: np.ndarray, j: np.ndarray, seed: int) -> np.ndarray:
    """Return the scores of the same model without the ReLU: the mean of the same number of fits."""
    N, roots = normalised(train)
    settings = LinkPredictor()
    total = np.zeros(len(i))
    for k in range(settings.n_init):
        U, signature = linear_fit(N, settings.n_components, settings, 1000 * k + seed)
        total += np.einsum("kr,kr->k", U[i] * signature, U[j])
    return total / settings.n_init * roots[i] * roots[j]


def eigen_links(train: Any, i: np.ndarray, j: np.ndarray, seed: int) -> np.ndarray:
    v0 = np.random.default_rng(seed).standard_normal(train.shape[0])
    values, vectors = eigsh(train, k=max(RANKS), which="LM", v0=v0)
    order = np.argsort(-np.abs(values))
    values, vectors = values[order], vectors[:, order]
    return np.stack([(vectors[i, :r] * values[:r] * vectors[j, :r]).sum(axis=1) for r in RANKS])


def normalised_eigen_links(train: Any, i: np.ndarray, j: np.ndarray, seed: int) -> np.ndarray:
    N, roots = normalised(train)
    return eigen_links(N, i, j, seed) * roots[i] * roots[j]


def common_neighbours(train: Any, i: np.ndarray, j: np.ndarray, seed: int, weight: Any) -> np.ndarray:
    """Return the sum over the common neighbours of a weight of their degree."""
    degree = np.asarray(train.sum(axis=1)).ravel()
    # A node of degree one is never a common neighbour; the floor only avoids a division by zero.
    weighted = train.multiply(weight(np.maximum(degree, 1.5))[None, :]).tocsr()
    return np.asarray((weighted[i].multiply(train[j])).sum(axis=1)).ravel()


LINKS = {
    "eigsh, best rank": eigen_links,
    "normalised eigsh, best rank": normalised_eigen_links,
    "common neighbours": functools.partial(common_neighbours, weight=np.ones_like),
    "Adamic-Adar": functools.partial(common_neighbours, weight=lambda degree: 1 / np.log(degree)),
    "resource allocation": functools.partial(common_neighbours, weight=lambda degree: 1 / degree),
    "LinkPredictor": symrelu_links,
    "control: without the ReLU": linear_links,
    "control: n_negative=0": functools.partial(symrelu_links, n_negative=0),
}


# Running


class Job(NamedTuple):
    """One method on one data set with one seed."""

    task: str
    data: str
    method: str
    seed: int


@functools.cache
def images(name: str) -> tuple[Any, Any, np.ndarray]:
    """Return the graph, the samples and the classes of a set."""
    if name == "digits":
        M, labels = load_digits_graph()
        return M, load_digits().data, labels
    data = load_dataset(name)
    samples = data.data.toarray() if sparse.issparse(data.data) else data.data
    return self_tuning_graph(data.data), samples, data.target


@functools.cache
def split(name: str, seed: int, fraction: float = 0.1) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return a training graph, the test pairs i and j, and whether they are links."""
    B = load_graph(name).M
    rng = np.random.default_rng(seed)
    n = B.shape[0]
    rows, cols = sparse.triu(B, k=1).nonzero()
    held, kept = np.split(rng.permutation(len(rows)), [round(fraction * len(rows))])
    train = sparse.csr_array((np.ones(len(kept)), (rows[kept], cols[kept])), shape=(n, n))
    links = set((rows * n + cols).tolist())
    absent: dict[int, None] = {}
    while len(absent) < len(held):
        i, j = sorted(rng.integers(0, n, 2).tolist())
        if i != j and i * n + j not in links:
            absent[i * n + j] = None
    absent_i, absent_j = np.divmod(np.fromiter(absent, np.int64), n)
    i, j = np.concatenate([rows[held], absent_i]), np.concatenate([cols[held], absent_j])
    return train + train.T, i, j, np.repeat([1, 0], len(held))


def perform(job: Job) -> list[dict[str, Any]]:
    """Return the records of a job, one for each rank."""
    common = job._asdict()
    with threadpool_limits(1):  # the jobs run in parallel
        if job.task == "clustering":
            M, X, truth = images(job.data)
            began = time.perf_counter()
            labels = CLUSTERING[job.method](M, X, len(np.unique(truth)), job.seed)
            seconds = time.perf_counter() - began
            score = normalized_mutual_info_score(truth, labels)
            accuracy = clustering_accuracy(truth, labels)
            return [{**common, "rank": "", "score": score, "accuracy": accuracy, "seconds": seconds}]
        train, i, j, truth = split(job.data, job.seed)
        began = time.perf_counter()
        scores = np.atleast_2d(LINKS[job.method](train, i, j, job.seed))
        seconds = time.perf_counter() - began
        ranks = RANKS if len(scores) > 1 else [""]
        return [
            {**common, "rank": r, "score": roc_auc_score(truth, row), "accuracy": "", "seconds": seconds}
            for r, row in zip(ranks, scores, strict=True)
        ]


def jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """Yield all jobs."""
    methods: dict[str, dict[str, Callable[..., Any]]] = {"clustering": CLUSTERING, "links": LINKS}
    data = {"clustering": arguments.images, "links": arguments.graphs}
    for task in arguments.tasks:
        for name in data[task]:
            for method in methods[task]:
                if arguments.methods and method not in arguments.methods:
                    continue
                for seed in range(1 if task == "clustering" and method in UNSEEDED else arguments.seeds):
                    yield Job(task, name, method, seed)


def stored(path: Path) -> list[dict[str, str]]:
    """Return the records of earlier runs."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


def run_jobs(wanted: list[Job], path: Path, n_jobs: int) -> list[dict[str, Any]]:
    """Run the jobs that are not stored yet, and return the records of all wanted jobs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {(r["task"], r["data"], r["method"], int(r["seed"])) for r in stored(path)}
    if not known:
        path.write_text(",".join(FIELDS) + "\n", encoding="utf-8")
    missing = [job for job in wanted if job not in known]
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(perform)(job) for job in missing)
    for count, records in enumerate(results, start=1):
        with open(path, "a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, FIELDS).writerows(records)
        first = records[0]
        print(f"{count}/{len(missing)} {first['data']} | {first['method']} | seed {first['seed']}", flush=True)
    asked = set(wanted)
    return [r for r in stored(path) if (r["task"], r["data"], r["method"], int(r["seed"])) in asked]


# Reporting


class Line(NamedTuple):
    """A method on a data set, over all seeds."""

    task: str
    data: str
    method: str
    rank: str  # the best one in hindsight
    mean: float
    deviation: float
    accuracy: str
    seeds: int
    seconds: float


def summarise(records: list[dict[str, Any]]) -> list[Line]:
    """Return the mean and standard deviation for each method and data set, at its best rank."""
    groups: dict[tuple[str, str, str], dict[str, list[dict[str, Any]]]] = {}
    for r in records:
        groups.setdefault((r["task"], r["data"], r["method"]), {}).setdefault(r["rank"], []).append(r)
    lines = []
    for key, by_rank in groups.items():
        rank, best = max(by_rank.items(), key=lambda item: np.mean([float(r["score"]) for r in item[1]]))
        scores = [float(r["score"]) for r in best]
        accuracies = [float(r["accuracy"]) for r in best if r["accuracy"] != ""]
        accuracy = f"{np.mean(accuracies):.4f}" if accuracies else ""
        seconds = float(np.median([float(r["seconds"]) for r in best]))
        lines.append(
            Line(*key, rank, float(np.mean(scores)), float(np.std(scores)), accuracy, len(scores), seconds)
        )
    order = {"clustering": list(CLUSTERING), "links": list(LINKS)}
    return sorted(lines, key=lambda line: (line.task, order[line.task].index(line.method)))


def markdown(lines: list[Line], task: str) -> str:
    """Return the table of a task."""
    data = list(dict.fromkeys(line.data for line in lines if line.task == task))
    cells = {(line.method, line.data): line for line in lines if line.task == task}
    measure = "NMI" if task == "clustering" else "AUC"
    rows = [f"| {measure} | " + " | ".join(data) + " |", "|---" * (len(data) + 1) + "|"]
    for method in dict.fromkeys(method for method, _ in cells):
        row = [method]
        for name in data:
            line = cells.get((method, name))
            rank = f" (rank {line.rank})" if line is not None and line.rank else ""
            row.append("-" if line is None else f"{line.mean:.3f} ± {line.deviation:.3f}{rank}")
        rows.append("| " + " | ".join(row) + " |")
    return "\n".join(rows)


# Ingredient, the method with it, the method without it.
GAINS = {
    "clustering": (
        ("the ReLU", "SymReLUClustering", "control: without the ReLU"),
        ("the negative column", "SymReLUClustering", "control: n_negative=0"),
        ("a fit instead of eigenvectors", "SymReLUClustering", "control: linkage on the eigendecomposition"),
        ("the model instead of M itself", "SymReLUClustering", "control: linkage on M"),
        ("linkage instead of k-means, on M", "control: linkage on M", "SpectralClustering, k-means"),
    ),
    "links": (
        ("the ReLU", "LinkPredictor", "control: without the ReLU"),
        ("the negative column", "LinkPredictor", "control: n_negative=0"),
        ("ridge and weights, without the ReLU", "control: without the ReLU", "normalised eigsh, best rank"),
        ("regularised degrees, of eigenvectors", "normalised eigsh, best rank", "eigsh, best rank"),
    ),
}


def gains(lines: list[Line], task: str) -> str:
    """Return sentences that say what each ingredient adds to the mean score."""
    means = {(line.method, line.data): line.mean for line in lines if line.task == task}
    data = list(dict.fromkeys(line.data for line in lines if line.task == task))
    sentences = []
    for what, with_it, without_it in GAINS[task]:
        both = [name for name in data if (with_it, name) in means and (without_it, name) in means]
        parts = [f"{name} {means[with_it, name] - means[without_it, name]:+.3f}" for name in both]
        if parts:
            sentences.append(f"- {what[0].upper()}{what[1:]} adds: {', '.join(parts)}.")
    return "\n".join(sentences)


def draw(lines: list[Line], path: Path) -> None:
    """Draw the scores of all methods, one panel per task."""
    tasks = list(dict.fromkeys(line.task for line in lines))
    figure = new_figure(figsize=(6.5 * len(tasks), 4.6))
    for place, task in enumerate(tasks, start=1):
        ax = figure.add_subplot(1, len(tasks), place)
        data = list(dict.fromkeys(line.data for line in lines if line.task == task))
        methods = list(dict.fromkeys(line.method for line in lines if line.task == task))
        for k, method in enumerate(methods):
            mine = [line for line in lines if line.task == task and line.method == method]
            x = [data.index(line.data) + (k - len(methods) / 2) * 0.08 for line in mine]
            ours = not method.startswith("control") and ("SymReLU" in method or "LinkPredictor" in method)
            ax.errorbar(
                x,
                [line.mean for line in mine],
                yerr=[line.deviation for line in mine],
                fmt="D" if ours else ("s" if method.startswith("control") else "o"),
                markersize=8 if ours else 5,
                color="black" if ours else f"C{k}",
                label=method,
                zorder=3 if ours else 2,
            )
        ax.set_xticks(range(len(data)), data)
        ax.set_ylabel("NMI" if task == "clustering" else "AUC")
        ax.grid(axis="y", alpha=0.3)
        ax.legend(frameon=False, fontsize=7)
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=["clustering", "links"], default=["clustering", "links"])
    parser.add_argument("--images", nargs="+", choices=IMAGES, default=IMAGES)
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS)
    parser.add_argument("--methods", nargs="+", help="only these rows of the tables")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    lines = summarise(run_jobs(list(jobs(arguments)), arguments.store, arguments.jobs))
    tables = "\n\n".join(
        f"{markdown(lines, task)}\n\n{gains(lines, task)}".rstrip() for task in arguments.tasks
    )
    print("\n" + tables)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "usefulness.md").write_text(tables + "\n", encoding="utf-8")
        with open(arguments.output / "usefulness.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Line._fields)
            writer.writerows(lines)
        draw(lines, arguments.output / "usefulness.png")


if __name__ == "__main__":
    import usefulness  # imported by name, because worker processes cannot unpickle functions of __main__

    usefulness.main()
