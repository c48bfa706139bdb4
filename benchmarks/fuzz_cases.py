"""The cases of fuzz.py: tables of options to draw from, and the Case for a seed and a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from symrelu import AAPB, LBFGS, PALM, Eigen

Rng = np.random.Generator


def mirrored(A: np.ndarray) -> np.ndarray:
    return np.triu(A) + np.triu(A, 1).T


def random_sparse(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    return mirrored(rng.random((n, n)) * (rng.random((n, n)) < rng.uniform(0.05, 0.6)))


def relu_gram(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    U = rng.standard_normal((n, rng.integers(1, 6)))
    return np.maximum(0, mirrored(U @ U.T) - rng.choice([0, 0.1, 0.5]))


def low_rank(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    U = rng.integers(0, 4, (n, rng.integers(1, 4)))
    return (U @ U.T).astype(float)


def graph(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    return mirrored(np.triu(rng.random((n, n)) < rng.uniform(0.05, 0.5), 1).astype(float))


def blocks(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    labels = rng.integers(0, rng.integers(1, 5), n)
    return (labels[:, None] == labels) * rng.choice([1.0, 0.3])


def one_pair(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    M = np.zeros((n, n))
    i, j = rng.integers(0, n, 2)
    M[i, j] = M[j, i] = 1
    return M


def duplicated_rows(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    chosen = rng.integers(0, max(1, n // 3), n)
    return relu_gram(rng, n, floats)[np.ix_(chosen, chosen)]


def wide(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    span = 150 if floats.bits == 64 else 30
    return mirrored(10.0 ** rng.uniform(-span, span, (n, n)) * (rng.random((n, n)) < rng.uniform(0.2, 1)))


def subnormal(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    return mirrored(rng.integers(0, 9, (n, n)) * float(floats.smallest_subnormal))


def partly_subnormal(rng: Rng, n: int, floats: np.finfo) -> np.ndarray:
    return np.maximum(graph(rng, n, floats), subnormal(rng, n, floats))


MATRICES: dict[str, Callable[[Rng, int, np.finfo], np.ndarray]] = {
    "random sparse": random_sparse,
    "relu gram": relu_gram,
    "low rank": low_rank,
    "graph": graph,
    "blocks": blocks,
    "identity": lambda rng, n, floats: np.eye(n),
    "constant": lambda rng, n, floats: np.ones((n, n)),
    "one pair": one_pair,
    "duplicated rows": duplicated_rows,
    "wide": wide,
    "subnormal": subnormal,
    "partly subnormal": partly_subnormal,
}
DEGENERATE = ("identity", "constant", "blocks", "one pair")  # with repeated eigenvalues
UNSCALED = ("wide", "subnormal", "partly subnormal")  # another factor would leave the range of floats

MASKS: dict[str, Callable[[Rng, np.ndarray], np.ndarray]] = {
    "none": lambda rng, M: np.zeros(M.shape, bool),
    "random": lambda rng, M: mirrored(rng.random(M.shape) < rng.random()),
    "block": lambda rng, M: np.logical_xor.outer(*2 * [rng.random(len(M)) < 0.4]),
    "rows": lambda rng, M: np.logical_or.outer(*2 * [rng.random(len(M)) < 0.2]),
    "all but one pair": lambda rng, M: one_pair(rng, len(M), np.finfo(float)) == 0,
}

# The values of M under the mask, none of which may change the fit.
HIDDEN: dict[str, Callable[[Rng, np.ndarray, np.finfo], np.ndarray | float]] = {
    "zero": lambda rng, M, floats: 0.0,
    "as drawn": lambda rng, M, floats: M,
    "other": lambda rng, M, floats: mirrored(rng.integers(0, 3, M.shape) * M.max()),
    "huge": lambda rng, M, floats: float(floats.max) / 2,
    "tiny": lambda rng, M, floats: float(floats.smallest_subnormal),
    "negative": lambda rng, M, floats: -M.max(),
    "nan": lambda rng, M, floats: np.nan,
    "infinite": lambda rng, M, floats: np.inf,
    "asymmetric": lambda rng, M, floats: rng.random(M.shape) * M.max(),
}


def entries(values: np.ndarray, stored: np.ndarray, dtype: Any) -> sparse.coo_array:
    return sparse.coo_array((values[stored].astype(dtype), np.nonzero(stored)), shape=values.shape)


def convert(container: Any, values: np.ndarray, stored: np.ndarray, dtype: Any) -> Any:
    return container(entries(values, stored, dtype))


def duplicated(values: np.ndarray, stored: np.ndarray, dtype: Any) -> sparse.coo_array:
    """Store each entry as two summands. Their sum may overflow a narrow type."""
    halves = values // 2 if np.dtype(dtype).kind in "iu" else values / 2
    first = np.where(np.isfinite(values), halves, 0).astype(dtype).astype(np.float64)
    parts = [entries(part, stored, dtype) for part in (first, values - first)]
    data, rows, cols = (np.concatenate(a) for a in zip(*((p.data, *p.coords) for p in parts), strict=True))
    return sparse.coo_array((data, (rows, cols)), shape=values.shape)


def strided(values: np.ndarray, dtype: Any) -> np.ndarray:
    room = np.full((2 * len(values), 2 * len(values)), 1, dtype)
    room[::2, ::2] = values.astype(dtype)
    return room[::2, ::2]


# (values in float64, where an entry is stored, dtype) -> what a user passes
CONTAINERS: dict[str, Callable[[np.ndarray, np.ndarray, Any], Any]] = {
    "C order": lambda values, stored, dtype: np.ascontiguousarray(values, dtype),
    "F order": lambda values, stored, dtype: np.asfortranarray(values, dtype),
    "strided": lambda values, stored, dtype: strided(values, dtype),
    "duplicates": duplicated,
}
DENSE = tuple(CONTAINERS)[:3]
CONTAINERS |= {
    f"{name}_{kind}": partial(convert, getattr(sparse, f"{name}_{kind}"))
    for name in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
    for kind in ("array", "matrix")
}

MASK_CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": lambda mask: mask,
    "csr_array": sparse.csr_array,
    "coo_matrix": sparse.coo_matrix,
    "stored False": lambda mask: sparse.csr_array(entries(mask, np.ones(mask.shape, bool), bool)),
}

# LBFGS, the default, is listed twice so that it is drawn more often.
SOLVERS = (
    *(LBFGS(), LBFGS(memory=2), LBFGS()),
    *(Eigen(), Eigen(momentum=0), Eigen(momentum=0.5, sweeps=3)),
    *(AAPB(), AAPB(momentum=0), AAPB(step_size=10), AAPB(step_size=0.1, momentum=0), AAPB(safeguard=True)),
    *(AAPB(step_size="adaptive"), AAPB(step_size="adaptive", momentum=0), AAPB(step_size=10, safeguard=True)),
    *(PALM(), PALM(momentum=1), PALM(momentum=0.5)),
)

# Starts that are passed as arrays, made from a normal U scaled to M.
STARTS: dict[str, Callable[[Rng, np.ndarray, np.ndarray, np.finfo], np.ndarray]] = {
    "normal": lambda rng, U, M, floats: U,
    "eigenvectors": lambda rng, U, M, floats: leading_eigenvectors(M, U.shape[1]),
    "split eigenvectors": lambda rng, U, M, floats: split(
        leading_eigenvectors(M, -(-U.shape[1] // 2)), U.shape[1]
    ),
    "rank one": lambda rng, U, M, floats: U[:, :1] * np.ones(U.shape[1]),
    "duplicated columns": lambda rng, U, M, floats: U[:, rng.integers(0, U.shape[1], U.shape[1])],
    "zero column": lambda rng, U, M, floats: U * (np.arange(U.shape[1]) != 1),
    "one row": lambda rng, U, M, floats: U * (np.arange(len(U)) == 0)[:, None],
    "small": lambda rng, U, M, floats: U * float(floats.tiny) ** rng.uniform(0.02, 0.6),
    "vast": lambda rng, U, M, floats: U * float(floats.max) ** rng.uniform(0.02, 0.6),
}


def split(U: np.ndarray, rank: int) -> np.ndarray:
    """Return a factor of the same X with pairs of equal columns, as many as the rank allows."""
    pairs = np.hstack([U, U[:, : rank - U.shape[1]]])
    pairs[:, : rank - U.shape[1]] /= math.sqrt(2)
    pairs[:, U.shape[1] :] /= math.sqrt(2)
    return pairs


def leading_eigenvectors(M: np.ndarray, rank: int) -> np.ndarray:
    """Return the factor of the best X of this rank; columns of negative eigenvalues are zero."""
    largest = M.max() or 1.0
    values, vectors = np.linalg.eigh(M / largest)
    return vectors[:, -rank:] * np.sqrt(np.maximum(0, values[-rank:])) * math.sqrt(largest)


# Types that are converted to float64, with the largest number to store in them.
INTEGERS = {"bool": 1, "uint8": 255, "int8": 127, "int16": 30000, "int64": 10**6, "float16": 1000}


def floats_of(dtype: str) -> np.finfo:
    """Return the limits of the float type in which a matrix of ``dtype`` is fitted."""
    return np.finfo("float32" if dtype == "float32" else "float64")


@dataclass(frozen=True, eq=False)
class Case:
    """One fit, described independently of the container in which M is passed."""

    seed: int
    number: int
    traits: dict[str, str]  # the options that were drawn
    matrix: np.ndarray  # M in float64, zero where it is unknown
    mask: np.ndarray
    unknown: np.ndarray  # the mask and, if it is ignored, the diagonal
    hidden: np.ndarray  # what M holds where it is unknown
    stored: np.ndarray  # where a sparse M stores a zero
    settings: dict[str, Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of U."""
        return floats_of(self.traits["dtype"]).dtype

    @property
    def backend(self) -> str:
        automatic = "dense" if self.traits["container"] in DENSE else "sparse"
        return automatic if self.settings["backend"] == "auto" else str(self.settings["backend"])

    def arguments(
        self,
        *,
        clean: bool = False,
        exponent: int = 0,
        container: str = "",
        dtype: str = "",
        mask: str = "",
        **changes: Any,
    ) -> dict[str, Any]:
        """Return the arguments of decompose, for M times 4^exponent; ``clean`` puts zeros under the mask."""
        values = np.where(self.unknown, 0 if clean else self.hidden, np.ldexp(self.matrix, 2 * exponent))
        stored = (values != 0) | (self.stored & (not clean))
        make = CONTAINERS[container or self.traits["container"]]
        made = MASK_CONTAINERS[mask or self.traits["mask as"]](self.mask) if self.mask.any() else None
        M = make(values, stored, dtype or self.traits["dtype"])
        return {"M": M, "mask": made, **self.settings, **changes}


def representable(values: np.ndarray, dtype: str, container: str) -> np.ndarray:
    """Return values that the dtype can represent. As duplicates, the sum of two integers may exceed it."""
    if dtype not in INTEGERS:
        return values.astype(dtype).astype(np.float64)
    top = INTEGERS[dtype] * (2 if container == "duplicates" else 1)
    return np.rint(values / values.max() * top)


class Draw:
    """A random generator that keeps the traits of the case it draws."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.traits = {
            "matrix": self.pick(*MATRICES),
            "dtype": self.pick("float64", "float64", "float64", "float32", "float32", self.pick(*INTEGERS)),
            "container": self.pick(self.pick(*DENSE), self.pick(*CONTAINERS), self.pick(*CONTAINERS)),
            "mask": self.pick("none", self.pick(*MASKS)),
            "mask as": self.pick(*MASK_CONTAINERS),
            "start": self.pick("random", "uniform", "spectral", "imputed", *3 * [self.pick(*STARTS)]),
            "hidden": self.pick(*HIDDEN),
        }
        dtype = self.traits["dtype"]
        if dtype in INTEGERS:
            self.traits["hidden"] = "other"
        if dtype == "float16" or (dtype == "bool" and self.traits["container"] == "duplicates"):
            # SciPy has no sparse float16, and it is undefined whether True + True is 2.
            self.traits["container"] = self.pick(*DENSE)
        self.floats = floats_of(dtype)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def matrix(self, n: int) -> np.ndarray:
        M = MATRICES[self.traits["matrix"]](self.rng, n, self.floats)
        M[0, 0] += not M.any()  # a matrix of zeros is refused before any work
        if self.traits["matrix"] not in UNSCALED:
            M = M * 10.0 ** (
                self.pick(0, 0, 1, 30, 30 if self.floats.bits == 32 else 140) * self.rng.uniform(-1, 1)
            )
        return representable(M, self.traits["dtype"], self.traits["container"])

    def start(self, M: np.ndarray, rank: int, size: float) -> Any:
        if self.traits["start"] not in STARTS:
            return self.traits["start"]
        normal = self.rng.standard_normal((len(M), rank)) * math.sqrt(size / len(M))
        U = STARTS[self.traits["start"]](self.rng, normal, M, self.floats)
        U = np.clip(U, -float(self.floats.max), float(self.floats.max)).astype(self.floats.dtype)
        U[0, 0] += self.floats.tiny * (not U.any())
        return self.pick(np.ascontiguousarray, np.asfortranarray)(U)

    def settings(self, M: np.ndarray, diagonal: str) -> dict[str, Any]:
        rng, pick = self.rng, self.pick
        rank = int(rng.integers(1, pick(len(M), min(len(M), 4)) + 1))
        largest = M.max() or 1.0
        size = float(np.linalg.norm(M / largest) * largest) or 1.0
        return {
            "rank": rank,
            "solver": pick(*SOLVERS),
            "n_negative": pick(0, 0, "auto", int(rng.integers(0, rank))),
            "diagonal": diagonal,
            "zero_weight": pick(1.0, 1.0, 1.0, 1.0 - rng.random(), 1e-6),
            "alpha": float(pick(0, 0, size * 10.0 ** rng.uniform(-6, 1))),
            "init": self.start(M, rank, size),
            "tol": pick(0.0, 0.0, 1e-4, 0.1, 1e-12),
            "gtol": pick(0.0, 1e-7, 1e-3),
            "ftol": pick(0.0, 1e-8, 1e-8, 1e-2),
            "max_iter": int(pick(1, 2, *rng.integers(3, 61, 6), 300)),
            "random_state": int(rng.integers(1000)),
            "backend": pick("auto", "auto", "dense", "sparse", "reference"),
        }


def draw(seed: int, number: int) -> Case:
    """Return case ``number``."""
    rng = np.random.default_rng([seed, number])
    drawn = Draw(rng)
    traits, n = drawn.traits, int(rng.integers(1, drawn.pick(5, 12, 41)))
    M = drawn.matrix(n)
    mask, diagonal = MASKS[traits["mask"]](rng, M), drawn.pick("fit", "ignore")
    unknown = mask | (np.eye(n, dtype=bool) & (diagonal == "ignore"))
    # A tenth of the cases with nothing to fit is enough.
    if not M[~unknown].any() and rng.random() < 0.9:
        mask, unknown, diagonal = np.zeros_like(mask), np.zeros_like(mask), "fit"
    hidden = np.broadcast_to(HIDDEN[traits["hidden"]](rng, M, drawn.floats), M.shape)
    # Integer types cannot store larger values.
    hidden = np.minimum(hidden, INTEGERS.get(traits["dtype"], np.inf))
    zeros = (M == 0) & (rng.random(M.shape) < drawn.pick(0, 0.3))
    known = np.where(unknown, 0, M)
    return Case(
        seed, number, traits, known, mask, unknown, hidden, zeros | unknown, drawn.settings(known, diagonal)
    )
