"""The blocks into which a large symmetric matrix is cut, in which order they are shared out, and how sums are
made.

Rows are cut into *panels* of equal height, so the matrix into blocks (i, j) of panels; those with i <= j are
enough. Which worker computes a block must not change a bit of the result. So everything that is added up over
the blocks of a panel is added along a tree that the grid alone fixes: its leaves are the panels on the other
side. A worker adds what it has of a subtree as far as that is complete, and the driver adds the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Block = tuple[int, int]
Node = tuple[int, int]  # level and number of a node of the tree


@dataclass(frozen=True)
class BlockGrid:
    """The blocks of an n x n matrix.

    Parameters
    ----------
    n : int
        Number of rows of the matrix.
    rows : int
        Number of rows of a panel; the last one may have fewer.
    """

    n: int
    rows: int

    @property
    def panels(self) -> int:
        """Number of panels."""
        return -(-self.n // self.rows)

    def panel(self, i: int) -> slice:
        """Return the rows of panel i."""
        return slice(i * self.rows, min(self.n, (i + 1) * self.rows))

    def height(self, i: int) -> int:
        """Return the number of rows of panel i."""
        return min(self.n, (i + 1) * self.rows) - i * self.rows

    def shape(self, block: Block) -> tuple[int, int]:
        """Return the shape of a block."""
        return self.height(block[0]), self.height(block[1])

    def pairs(self, block: Block) -> int:
        """Return what a block costs: the number of pairs of items in it."""
        height, width = self.shape(block)
        return height * (height + 1) // 2 if block[0] == block[1] else height * width

    def blocks(self) -> list[Block]:
        """Return the blocks on and above the diagonal, along a Z-shaped curve.

        Blocks that are close to each other on the curve have few panels between them, so that a worker with a
        part of the curve needs few panels of the factor.
        """
        found = [(i, j) for i in range(self.panels) for j in range(i, self.panels)]
        return sorted(found, key=lambda block: (_interleaved(*block), block))

    def shares(self, count: int, weights: Sequence[float] | None = None) -> list[list[Block]]:
        """Cut the curve of blocks into so many parts of about equal cost, some of which may be empty.

        Parameters
        ----------
        count : int
        weights : sequence of float, optional
            Capacity of each worker; by default all are equal.

        Returns
        -------
        shares : list of lists of blocks
        """
        weights = [1.0] * count if weights is None else weights
        ends: list[float] = []
        total = sum(weights)
        for weight in weights:
            ends.append((ends[-1] if ends else 0.0) + weight / total)
        blocks = self.blocks()
        cost = sum(map(self.pairs, blocks))
        shares: list[list[Block]] = [[] for _ in range(count)]
        before, k = 0, 0
        for block in blocks:
            middle = (before + self.pairs(block) / 2) / cost
            while k < count - 1 and middle > ends[k]:
                k += 1
            shares[k].append(block)
            before += self.pairs(block)
        return shares


def _interleaved(i: int, j: int) -> int:
    """Return the number whose bits are those of i and j in turn."""
    code = 0
    for bit in range(max(i.bit_length(), j.bit_length())):
        code |= ((i >> bit) & 1) << (2 * bit + 1) | ((j >> bit) & 1) << (2 * bit)
    return code


def panels_of(blocks: Iterable[Block]) -> list[int]:
    """Return the panels that blocks touch, in order."""
    return sorted({panel for block in blocks for panel in block})


def add_up(parts: Mapping[Node, Any], leaves: int) -> dict[Node, Any]:
    """Add neighbours in the tree as far as both are there.

    Parameters
    ----------
    parts : mapping of node to array or number
        The node (0, k) is leaf k. Nothing may be given twice.
    leaves : int
        Number of leaves of the whole tree.

    Returns
    -------
    parts : dict of node to array or number
        What is left: one node, the root, if all leaves were there.
    """
    left: dict[Node, Any] = {}
    present = dict(parts)
    level, width = 0, leaves
    while width > 1:
        for node in sorted(node for node in present if node[0] == level):
            if node not in present:  # it was the neighbour of the one before
                continue
            value, other = present.pop(node), (level, node[1] ^ 1)
            if other[1] >= width:  # the last one of an odd number has no neighbour
                present[level + 1, node[1] // 2] = value
            elif other in present:
                more = present.pop(other)
                present[level + 1, node[1] // 2] = value + more  # of two numbers, the order does not matter
            else:
                left[node] = value
        level, width = level + 1, -(-width // 2)
    return left | present


def root_of(parts: Mapping[Node, Any], leaves: int) -> Any:
    """Return the sum of all leaves; raise if some are missing."""
    total = add_up(parts, leaves)
    if len(total) != 1 or max(parts, default=(0, 0))[1] >= leaves:
        raise ValueError(
            f"the parts must make up a tree of {leaves} leaves, but the nodes {sorted(total)} are left"
        )
    return next(iter(total.values()))


def traffic(grid: BlockGrid, workers: int) -> dict[str, int]:
    """Return how many rows of a factor an evaluation moves, by the formula of the grid.

    Parameters
    ----------
    grid : BlockGrid
    workers : int

    Returns
    -------
    rows : dict
        "sent" by the driver, each row once; "shared" between workers, at most, because each needs the panels of
        its blocks; "returned" to the driver, where a worker has added up what it can.
    """
    shares = [share for share in grid.shares(workers) if share]
    shared = returned = 0
    for share in shares:
        shared += sum(map(grid.height, panels_of(share)))
        for panel in panels_of(share):
            leaves = {(0, i + j - panel): 0 for i, j in share if panel in (i, j)}
            returned += len(add_up(leaves, grid.panels)) * grid.height(panel)
    return {"sent": grid.n, "shared": shared if len(shares) > 1 else 0, "returned": returned}
