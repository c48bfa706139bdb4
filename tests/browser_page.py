"""The page that the tests in a browser use: three groups of nodes, the first ones with hostile names."""

import numpy as np
from scipy import sparse

from symrelu import report
from symrelu.fitted import History, Solution, Status, SymmetricReLU
from symrelu.graphs import Labelled

HOSTILE = [
    "<script>alert(1)</script>",
    "</script>",
    "=cmd()",
    "😀 emoji",
    "שלום עולם",
    "<img src=x onerror=alert(2)>",
]
GROUPS, SIZE = 3, 20
N = GROUPS * SIZE
FIRST_ACCOUNT = 2**52 - 1 - N  # the last one is the largest that JavaScript is sent as a number


def write_page(path):
    """Write the page; the groups are rings, far apart on the map."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(GROUPS), SIZE)
    half = np.triu(rng.random((N, N)) < np.where(group[:, None] == group, 0.4, 0.01), 1)
    M = sparse.csr_array((half + half.T) * 1.0)
    angles = 2 * np.pi * (np.arange(SIZE) + 0.5) / SIZE
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    centres = np.array([[0.0, 6.0], [-6.0, -3.0], [6.0, -3.0]])
    names = HOSTILE + [f"node {k}" for k in range(len(HOSTILE), N)]
    model = SymmetricReLU(rng.standard_normal((N, 4)), np.array([1.0, 1.0, 1.0, -1.0]))
    empty = History.from_records([])
    solution = Solution(model, Status.MAX_ITER, 3, 4, 0.5, 1.0, 1.0, empty, "none", "ignore")
    return report.write(
        path,
        Labelled(M, np.array(names, dtype=object)),
        solution,
        [f"group {k}" for k in group],
        columns={
            "size": np.arange(N) / 7,
            "kind": HOSTILE * 10,
            "account": [FIRST_ACCOUNT + k for k in range(N)],
        },
        title=HOSTILE[0],
        positions=centres[group] + np.tile(ring, (GROUPS, 1)),
        hidden=None,
    )
