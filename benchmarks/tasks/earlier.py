"""Labels and scores of symrelu 0.1.0, computed by its own source tree in another process.

git worktree add ../base 324cf23
python benchmarks/usefulness.py --base ../base
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

VARIABLE = "SYMRELU_BENCHMARK_BASE"  # worker processes inherit it


def is_available() -> bool:
    return bool(os.environ.get(VARIABLE))


def run_earlier(kind: str, M: Any, **settings: Any) -> np.ndarray:
    """Return the answer of 0.1.0 for a graph, see :func:`answer`."""
    M = sparse.csr_array(M)
    with tempfile.TemporaryDirectory() as folder:
        question, reply = Path(folder) / "question.npz", Path(folder) / "reply.npy"
        np.savez(question, kind=kind, data=M.data, indices=M.indices, indptr=M.indptr, n=M.shape[0], **settings)
        environment = os.environ | {"PYTHONPATH": str(Path(os.environ[VARIABLE]) / "src")}
        # -P: the folder of this file must not come first in the path.
        subprocess.run([sys.executable, "-P", __file__, question, reply], env=environment, check=True)
        return np.load(reply)


def answer(question: Any) -> np.ndarray:
    """Return the labels of clusters, or the scores of pairs, by the symrelu that is imported."""
    from symrelu import LinkPredictor, SymReLUClustering

    n, seed = int(question["n"]), int(question["seed"])
    M = sparse.csr_array((question["data"], question["indices"], question["indptr"]), shape=(n, n))
    if question["kind"] == "clusters":
        return SymReLUClustering(int(question["n_clusters"]), random_state=seed).fit_predict(M)
    return LinkPredictor(random_state=seed).fit(M).score_pairs(question["i"], question["j"])


if __name__ == "__main__":
    np.save(sys.argv[2], answer(np.load(sys.argv[1])))
