"""How well maps in the plane keep neighbourhoods: planar_map against UMAP, t-SNE and spectral embedding.

Prints a table and writes map.json and map.csv to --output. COIL20 and Cora are read from $SYMRELU_DATA and left
out without it. UMAP is run if umap-learn is installed. Seconds are those of the processor, so that they mean
something on a shared machine: run it with OMP_NUM_THREADS=1, as waiting threads count too.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE, SpectralEmbedding
from sklearn.metrics import pairwise_distances

from symrelu import SymReLU, SymReLUClustering
from symrelu.datasets import load_coil20, load_digits_graph, load_graph
from symrelu.graphs import self_tuning_graph
from symrelu.plots import planar_map
from symrelu.plots.planar_map import unit_rows

K = 15  # neighbours that are compared


def ranks(distances):
    """Return for each pair how many other items are nearer to the first; ties take the lowest rank."""
    distances = np.array(distances, dtype=np.float64)
    np.fill_diagonal(distances, np.inf)
    ordered = np.sort(distances, axis=1)
    return np.stack([np.searchsorted(*rows) for rows in zip(ordered, distances, strict=True)])


def nearest(places):
    """Return the K nearest items of each on a map."""
    distances = pairwise_distances(places)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :K]


def trustworthiness(places, rank):
    """Return 1 less the mean penalty of items that are near on the map, but not among the K nearest before."""
    n = len(places)
    beyond = np.take_along_axis(rank, nearest(places), axis=1) + 1 - K
    return 1 - 2 * np.maximum(0, beyond).sum() / (n * K * (2 * n - 3 * K - 1))


def neighbors_kept(places, rank):
    """Return the share of the K nearest items on the map that are among the K nearest before."""
    return float(np.mean(np.take_along_axis(rank, nearest(places), axis=1) < K))


def links_kept(places, M):
    """Return the share of the links of a node that lead to one of its K nearest on the map, a mean over nodes.

    Of a node with more than K links, K is the most that can be kept.
    """
    near = np.zeros(M.shape, dtype=bool)
    np.put_along_axis(near, nearest(places), True, axis=1)
    linked = (M > 0).toarray()
    np.fill_diagonal(linked, False)
    degrees = linked.sum(axis=1)
    some = degrees > 0
    return float(np.mean((near & linked).sum(axis=1)[some] / np.minimum(degrees[some], K)))


def agreement(one, other):
    """Return the share of the K nearest items that two maps have in common."""
    first, second = (np.zeros((len(one), len(one)), dtype=bool) for _ in range(2))
    np.put_along_axis(first, nearest(one), True, axis=1)
    np.put_along_axis(second, nearest(other), True, axis=1)
    return float((first & second).sum() / (K * len(one)))


def data_sets():
    """Yield the name, graph and features (None for a network) of each data set that is there."""
    yield "digits", load_digits_graph()[0], load_digits().data
    if os.environ.get("SYMRELU_DATA"):
        images = load_coil20().data
        yield "COIL20", self_tuning_graph(images), images
        yield "Cora", load_graph("cora").M, None


def fitted_map(estimator, M):
    """Return the map of a fitted estimator, and the seconds of the map alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.fit(M)
    start = time.process_time()
    return planar_map(model, random_state=model.random_state), time.process_time() - start


def tsne_of_rows(M, seed):
    model = SymReLU(random_state=seed).fit(M)
    rows = unit_rows(model.embedding_[:, model.signature_ > 0])
    start = time.process_time()
    return TSNE(metric="cosine", random_state=seed).fit_transform(rows), time.process_time() - start


def spectral(M, seed):
    small = sparse.csr_matrix(M)  # scikit-learn takes only 32-bit indices
    small.indptr, small.indices = small.indptr.astype(np.int32), small.indices.astype(np.int32)
    return SpectralEmbedding(2, affinity="precomputed", random_state=seed).fit_transform(small)


def umap_of(samples, seed, metric="euclidean"):
    from umap import UMAP

    return UMAP(metric=metric, random_state=seed, n_jobs=1).fit_transform(samples)


def methods(M, features):
    """Return functions of the seed by name; those that also return seconds leave out the fit."""
    found = {
        "planar_map of SymReLU": lambda seed: fitted_map(SymReLU(random_state=seed), M),
        "t-SNE (scikit-learn) of rows of SymReLU": lambda seed: tsne_of_rows(M, seed),
        "spectral embedding of the graph": lambda seed: spectral(M, seed),
    }
    if features is None:
        found["planar_map of SymReLUClustering"] = lambda seed: fitted_map(
            SymReLUClustering(7, random_state=seed), M
        )
        samples, metric, of = dijkstra(M, unweighted=True), "precomputed", "graph distances"
        samples[np.isinf(samples)] = 2 * samples[np.isfinite(samples)].max()
    else:
        samples, metric, of = features, "euclidean", "features"
        found["t-SNE (scikit-learn) of features"] = lambda seed: TSNE(random_state=seed).fit_transform(features)
    umap = find_spec("umap") is not None
    found[f"UMAP of {of}"] = (lambda seed: umap_of(samples, seed, metric)) if umap else None
    return found


def measure(name, M, features, seeds):
    """Yield a record for each method."""
    before = pairwise_distances(features) if features is not None else dijkstra(M, unweighted=True)
    rank = ranks(before)
    for method, run in methods(M, features).items():
        record = {"data": name, "n": M.shape[0], "method": method, "seeds": seeds if run else 0}
        if run is None:
            yield record | {"note": "not run: umap-learn is not installed"}
            continue
        maps, seconds = [], []
        for seed in range(seeds):
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                places = run(seed)
            elapsed = time.process_time() - start
            places, elapsed = places if isinstance(places, tuple) else (places, elapsed)
            maps.append(places)
            seconds.append(elapsed)
        kept = [links_kept(one, M) if features is None else neighbors_kept(one, rank) for one in maps]
        yield record | {
            "trustworthiness": float(np.mean([trustworthiness(one, rank) for one in maps])),
            "kept": float(np.mean(kept)),
            "kept_lowest": min(kept),
            "kept_highest": max(kept),
            "agreement": float(np.mean([agreement(maps[0], one) for one in maps[1:]])) if seeds > 1 else None,
            "seconds": float(np.median(seconds)),
        }


def line(record):
    if not record["seeds"]:
        return f"| {record['data']} | {record['method']} | {record['note']} | | | |"
    return (
        f"| {record['data']} | {record['method']} | {record['trustworthiness']:.3f} | {record['kept']:.3f} | "
        f"{record['agreement'] or float('nan'):.2f} | {record['seconds']:.1f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="*", help="names of data sets; all by default")
    parser.add_argument("--output", type=Path, default=Path("results/map"))
    options = parser.parse_args()
    planar_map(np.random.default_rng(0).random((300, 2)))  # compiled before it is timed
    records = []
    print("| data | map | trustworthiness | kept | same under another seed | CPU seconds |")
    print("|---|---|---:|---:|---:|---:|")
    for name, M, features in data_sets():
        if options.data and name not in options.data:
            continue
        for record in measure(name, M, features, options.seeds):
            records.append(record)
            print(line(record), flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "map.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    with (options.output / "map.csv").open("w", newline="", encoding="utf-8") as file:
        columns = list(dict.fromkeys(name for record in records for name in record))
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


if __name__ == "__main__":
    main()
