"""Graphs of any size, and what their fits count as memory."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from symrelu import LBFGS
from symrelu.fit.memory_model import Case, memory_of
from symrelu.fit.settings import Limits, Model, Run, Start

CASE = Case(
    n=3000,
    rank=8,
    entries=30_000,
    hidden=0,
    dtype=np.dtype("float64"),
    index_bytes=4,
    backend="sparse",
    threads=1,
    solver=LBFGS(),
    init="imputed",
    n_negative=0,
    rescaled=False,
    packed=False,
)


def graph(n, degree, dtype="float64", index="int32"):
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, n, (2, n * degree // 2))
    upper = sparse.triu(sparse.csr_array((rng.random(len(rows)), (rows, cols)), shape=(n, n)), 1, "csr")
    M = sparse.csr_array(upper + upper.T).astype(dtype)
    M.indices, M.indptr = M.indices.astype(index), M.indptr.astype(index)
    return M


def memory(problem, rank, *, n_negative=0, init="imputed", solver="lbfgs", backend="auto", max_iter=1000):
    run, limits = Run(solver=solver, backend=backend), Limits(max_iter=max_iter)
    return memory_of(Case.of(problem, Model(rank=rank, n_negative=n_negative), Start(init=init), run, limits))
