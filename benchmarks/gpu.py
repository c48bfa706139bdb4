"""Measure passes and whole fits on one GPU.

    python benchmarks/gpu.py passes [--sizes 100000 1000000] [--ranks 32 64] [--output FOLDER]
    python benchmarks/gpu.py fits [--problems KIND:N:TOL ...] [--most SECONDS] [--output FOLDER]
    python benchmarks/gpu.py plot --output FOLDER
    python benchmarks/gpu.py environment

``make gpu`` runs these for the figures in ``results/gpu``; parts of it take at most 150 seconds on an H200.

The graphs join random points, in the plane or in blobs in 20 dimensions, to their ten nearest neighbours;
that they are made is not measured. Factors are in float32.

"passes" measures evaluations with R(U) U, all else included, after one that compiles. "tiles" is the obvious
way: a matrix product per block of rows, its positive part, another product. "fast" and "high" are the fused
kernel in both precisions, at a factor with which a third of all pairs is positive, and "listed" is a pass with
a list of pairs, at a factor with few. The error is that of R(U) U on sampled rows against float64, relative to
its norm. TFLOP/s counts 4 n^2 rank operations (2 n^2 rank for "listed", which needs no second product), and its
share is that of a product of two large float16 matrices on the same device.

"fits" runs ``decompose(..., init="multilevel", backend="cuda")`` on a csr_array on the host: the transfers of
M and U are included, and so is the time in which smaller matrices are made on the host. A small fit before it
compiles.

FOLDER gets ``passes.json`` or ``fits.json``, with the names and versions of device and software, and a table of
the same name for the page about large graphs, after each row; "plot" draws them. Rows that are there already
stay, unless they are measured again or come from another device or other versions. "environment" prints these.
Whether a GPU computes the same as a CPU is the subject of ``benchmarks/gpu_equality.py``.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.spatial import cKDTree

from symrelu import decompose
from symrelu.operators import Evaluation
from symrelu.operators.cuda import CudaOperator
from symrelu.operators.torch import TorchOperator

IN_TABLE = {
    "passes": ("n", "rank", "way", "seconds", "TFLOP/s", "share", "error", "positive", "GiB"),
    "fits": ("problem", "n", "target", "seconds", "error", "evaluations", "steps", "GiB"),
}

# What a row is about: it replaces an earlier one about the same.
KEYS = {"passes": ("n", "rank", "way"), "fits": ("problem", "n", "rank", "target")}

NEIGHBOURS = 10
ROWS_AT_ONCE = 2048


def points(kind: str, n: int) -> Any:
    """Return random points on the GPU."""
    generator = torch.Generator("cuda").manual_seed(0)
    if kind == "plane":
        return torch.rand((n, 2), generator=generator, device="cuda")
    centres = 3 * torch.randn((20, 20), generator=generator, device="cuda")
    chosen = torch.randint(20, (n,), generator=generator, device="cuda")
    return centres[chosen] + torch.randn((n, 20), generator=generator, device="cuda")


def least(scores: Any) -> Any:
    """Return the columns of the least numbers of each row, one more than there are neighbours."""
    count, width = NEIGHBOURS + 1, 64
    # They are in the groups of columns with the least minima. To order all columns would take ten times as
    # long.
    padded = torch.nn.functional.pad(scores, (0, -scores.shape[1] % width), value=torch.inf)
    groups = padded.unflatten(1, (-1, width))
    best = groups.amin(dim=2).topk(min(count, groups.shape[1]), largest=False).indices
    columns = (best[:, :, None] * width + torch.arange(width, device=scores.device)).flatten(1)
    chosen = torch.take_along_dim(groups, best[:, :, None], dim=1).flatten(1).topk(count, largest=False).indices
    return torch.take_along_dim(columns, chosen, dim=1)


def neighbours(samples: Any) -> tuple[Any, Any]:
    """Return the squared distances of the points to their nearest neighbours, and their numbers, by row."""
    n, dimensions = samples.shape
    if dimensions == 2:  # on all cores, a tree takes less than a tenth of the time of a GPU with all distances
        tree = cKDTree(samples.cpu().numpy())
        found = torch.from_numpy(tree.query(tree.data, NEIGHBOURS + 1, workers=-1)[1]).cuda()
    else:
        torch.backends.cuda.matmul.allow_tf32 = False
        lengths = (samples**2).sum(dim=1)
        height = max(1, min(ROWS_AT_ONCE, 2**30 // n))
        found = torch.cat([least(lengths - 2 * rows @ samples.T) for rows in samples.split(height)])
    squares = ((samples[:, None] - samples[found]) ** 2).sum(dim=2)
    order = squares.argsort(dim=1, stable=True)
    squares, found = (torch.gather(part, 1, order)[:, 1:] for part in (squares, found))
    return squares, found


def graph(kind: str, n: int) -> Any:
    """Return the graph of the nearest neighbours with self-tuning weights, as a csr_array of float32."""
    squares, found = neighbours(points(kind, n))
    scale = squares[:, -1].sqrt()
    weights = torch.exp(-squares / (scale[:, None] * scale[found]))
    rows, columns = np.repeat(np.arange(n), NEIGHBOURS), found.cpu().numpy().ravel()
    others = rows != columns  # a point with a copy can have itself as a neighbour
    M = sparse.csr_array((weights.cpu().numpy().ravel()[others], (rows[others], columns[others])), shape=(n, n))
    M = sparse.csr_array(M.maximum(M.T))
    M.sort_indices()
    torch.cuda.empty_cache()
    return M


def factor(n: int, rank: int, shift: float) -> Any:
    """Return random rows of length one, with a last column that subtracts ``shift`` from every X."""
    generator = torch.Generator("cuda").manual_seed(0)
    U = torch.randn((n, rank), generator=generator, device="cuda")
    U /= U.norm(dim=1, keepdim=True)
    U[:, -1] = math.sqrt(shift)
    return U


def shift_for(n: int, rank: int, zeros: float) -> float:
    """Return the shift with which about so many pairs of a row are positive."""
    sample = factor(n, rank, 0.0)
    rows = 200
    products = (sample[:rows] @ sample.T).fill_diagonal_(-1).flatten()
    return float(torch.topk(products, int(rows * zeros)).values[-1])


def error_of(op: Any, M: Any, U: Any, product: Any) -> float:
    """Return the error of R(U) U on some rows, against float64."""
    rows = torch.linspace(0, len(U) - 1, 64, device="cuda").long()
    wide = U.double()
    X = (wide[rows] * op.signature) @ wide.T
    entries = torch.from_numpy(M[rows.cpu().numpy()].toarray()).cuda()
    X[torch.arange(len(rows), device="cuda"), rows] = 0  # the diagonal is not observed
    R = torch.where(entries > 0, entries.double() - X, -X.clamp(min=0))
    expected = R @ wide
    return float((product[rows] - expected).norm() / expected.norm())


class Tiles(TorchOperator):
    """The obvious way: max(0, X) V in a loop over blocks of rows, then the support. It sums nothing up."""

    def __init__(self, M: Any, *others: Any, **settings: Any) -> None:
        super().__init__(M, *others, **settings)
        rows, columns = M.nonzero()
        self._entries = torch.from_numpy(np.stack([rows, columns]).astype(np.int64)).cuda()
        self._values = torch.from_numpy(M.data).cuda()

    def _evaluate(self, U: Any, V: Any) -> Evaluation:
        A, height = self.signed(U), max(1, 2**28 // self.n)
        product = torch.empty_like(V)
        for first in range(0, self.n, height):
            last = min(first + height, self.n)
            product[first:last] = torch.relu(A[first:last] @ U.T) @ V
        i, j = self._entries
        x = (A[i] * U[j]).sum(dim=1)
        residual = torch.sparse_coo_tensor(self._entries, self._values - x + x.clamp(min=0), (self.n, self.n))
        own = (A * U).sum(dim=1).clamp(min=0)  # the diagonal is not observed
        return Evaluation(residual @ V - product + own[:, None] * V, 0.0, 0.0, 0.0)


def timed(work: Any, repeats: int = 3) -> float:
    """Return the least time of some calls, after one that is not measured."""
    work()
    torch.cuda.synchronize()
    best = math.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


def product_rate() -> float:
    """Return the operations per second of a product of two float16 matrices."""
    A = torch.randn((8192, 8192), device="cuda", dtype=torch.float16)
    return 2 * 8192**3 / timed(lambda: A @ A, 10)


def passes(options: argparse.Namespace) -> list[dict[str, Any]]:
    rate, rows = product_rate(), []
    for n in options.sizes:
        M = graph("plane", n)
        diagonal = sparse.eye_array(n, dtype=bool, format="csr")
        for rank in options.ranks:
            signs = np.where(np.arange(rank) < rank - 1, 1.0, -1.0)
            op = CudaOperator(M, diagonal, signature=signs)
            many, few = factor(n, rank, 0.05), factor(n, rank, shift_for(n, rank, 30))
            cases = {"fast": (op.approximate(), many), "high": (op, many), "listed": (op, few)}
            if n <= options.most_in_tiles:
                cases = {"tiles": (Tiles(M, diagonal, signature=signs, device="cuda"), many), **cases}
            for way, (operator, U) in cases.items():
                found = operator.residual_product(U, U)
                torch.cuda.reset_peak_memory_stats()
                seconds = timed(lambda operator=operator, U=U: operator.residual_product(U, U))
                operations = (2 if way == "listed" else 4) * n**2 * rank
                rows.append(
                    {
                        "n": n,
                        "rank": rank,
                        "entries": M.nnz,
                        "way": way,
                        "seconds": seconds,
                        "TFLOP/s": operations / seconds / 1e12,
                        "share": operations / seconds / rate,
                        "error": error_of(operator, M, U, found.product),
                        "positive": found.active_zeros / n,
                        "GiB": torch.cuda.max_memory_allocated() / 2**30,
                    }
                )
                keep(options, rows)
    return rows


def fits(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    settings = {
        "n_negative": 1, "diagonal": "ignore", "init": "multilevel", "backend": "cuda", "random_state": 0,
    }  # fmt: skip
    decompose(graph("plane", 20_000), options.rank, tol=1e-3, max_iter=40, **settings)
    for problem in options.problems:
        kind, n, tol = problem.split(":")
        M = graph(kind, int(n))
        torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        solution = decompose(M, options.rank, tol=float(tol), max_time=options.most, **settings)
        rows.append(
            {
                "problem": kind,
                "n": int(n),
                "rank": options.rank,
                "entries": M.nnz,
                "target": float(tol),
                "seconds": time.perf_counter() - begin,
                "seconds of steps": float(solution.history.seconds[-1]),
                "error": solution.relative_error,
                "status": solution.status.value,
                "evaluations": solution.n_evaluations,
                "steps": solution.n_iter,
                "GiB": torch.cuda.max_memory_allocated() / 2**30,
            }
        )
        keep(options, rows)
    return rows


def write_table(path: Path, rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """Write some columns, with three digits."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            cells = (row[name] for name in names)
            writer.writerow(f"{cell:.3g}" if isinstance(cell, float) else cell for cell in cells)


def keep(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Print the last row, and write all of them."""
    print(rows[-1], flush=True)
    if options.output:
        versions = environment()
        path = options.output / f"{options.what}.json"
        found = sorted(with_earlier(path, rows, KEYS[options.what], versions), key=lambda row: row["n"])
        write_json(path, {"environment": versions, "rows": found})
        write_table(path.with_suffix(".csv"), found, IN_TABLE[options.what])


def with_earlier(
    path: Path, rows: list[dict[str, Any]], key: tuple[str, ...], versions: dict[str, str]
) -> list[dict[str, Any]]:
    """Return the rows after those of a file that are about something else, unless its versions differ."""
    if not path.exists():
        return rows
    content = json.loads(path.read_text())
    if content["environment"] != versions:
        return rows
    new = {tuple(row[name] for name in key) for row in rows}
    return [row for row in content["rows"] if tuple(row[name] for name in key) not in new] + rows


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def plot(folder: Path) -> None:
    """Draw the seconds of passes and fits against the number of nodes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for ax, what, key in zip(figure.subplots(1, 2), ("passes", "fits"), ("way", "problem"), strict=True):
        rows = json.loads((folder / f"{what}.json").read_text())["rows"]
        rank = max(row["rank"] for row in rows)
        for name in dict.fromkeys(row[key] for row in rows):
            chosen = [row for row in rows if (row[key], row["rank"]) == (name, rank)]
            points = [(row["n"], row["seconds"]) for row in chosen]
            ax.loglog(*zip(*points, strict=True), marker="o", label=name, ls="" if what == "fits" else "-")
            for row, point in zip(chosen, points, strict=True):
                if what == "fits":
                    ax.annotate(f"to {row['target']:g}", point, xytext=(5, 3), textcoords="offset points")
        ax.set(title=f"{what}, rank {rank}", xlabel="nodes", ylabel="seconds")
        ax.margins(x=0.4, y=0.15)
        ax.grid(True, which="both", alpha=0.25)
        ax.legend(loc="upper left")
    figure.savefig(folder / "gpu.png", dpi=110)


@lru_cache
def environment() -> dict[str, str]:
    """Return the names and versions of device and software; to ask for the driver takes up to a second."""
    import triton

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver, *_ = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    return {
        "device": torch.cuda.get_device_name(),
        "driver": driver,
        "cuda": str(torch.version.cuda),
        "torch": torch.__version__,
        "triton": triton.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("passes", "fits", "plot", "environment"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--ranks", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--most-in-tiles", type=int, default=100_000, help="largest size of the obvious way")
    parser.add_argument("--problems", nargs="+", default=["plane:64000:1e-4"], metavar="KIND:N:TOL")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--most", type=float, help="seconds after which a fit stops")
    parser.add_argument("--output", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.what == "plot":
        plot(options.output)
    elif options.what == "environment":
        print(json.dumps(environment()))
    else:
        {"passes": passes, "fits": fits}[options.what](options)


if __name__ == "__main__":
    main()
