"""Draw docs/_static/active_list.png: how a list of pairs stays valid while the rows of U move.

    python docs/active_list_picture.py

Left, the bound: each row has a disc around its reference, and the cosine of two references decides whether rows
in the discs can have a positive product. Right, the cosines at the zeros of M in a fit of the digits graph.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from symrelu import decompose
from symrelu.datasets import load_digits_graph

SLACK = 0.1
BLUE, RED, GREY = "#1f6fb2", "#c44536", "#8a8f98"


def draw_bound(ax) -> None:
    """Draw the references of three rows, and how far each row may move."""
    reach = math.sqrt(1 + SLACK) - 1
    angles = {"i": 10, "j": 88, "k": 152}
    for name, angle in angles.items():
        x, y = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        colour = {"i": BLUE, "j": BLUE, "k": RED}[name]
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.6})
        ax.add_patch(Circle((x, y), reach, color=colour, alpha=0.2))
        ax.text(1.16 * x, 1.16 * y, f"ref {name}", color=colour, ha="center", va="center", fontsize=11)
    ax.text(0.05, -0.32, "i, j: cosine above -slack, so X may become positive:\nthe pair is listed", color=BLUE)
    ax.text(
        0.05,
        -0.62,
        "i, k: cosine below -slack: while both rows stay in\ntheir discs, X < 0, and the pair is skipped",
        color=RED,
    )
    ax.set(xlim=(-1.3, 1.9), ylim=(-0.75, 1.3), aspect="equal", title="a row may move within its disc")
    ax.axis("off")


def draw_cosines(ax) -> None:
    """Draw how many zeros of M have which cosine, early and late in a fit."""
    M, _ = load_digits_graph()
    zeros = np.triu(M.toarray() == 0, 1)
    edges = np.linspace(-1, 1, 101)
    for steps, colour in ((3, GREY), (40, BLUE)):
        fit = decompose(M, 16, n_negative=1, diagonal="ignore", max_iter=steps, tol=0, random_state=0)
        U = fit.U / np.linalg.norm(fit.U, axis=1, keepdims=True)
        cosines = ((U * fit.signature) @ U.T)[zeros]
        share = {at: np.mean(cosines > at) for at in (0, -SLACK)}
        label = f"step {steps}: {share[0]:.1%} positive, {share[-SLACK]:.1%} listed"
        ax.stairs(
            np.histogram(cosines, edges)[0] / len(cosines),
            edges,
            color=colour,
            fill=True,
            alpha=0.5,
            label=label,
        )
    for at, style in ((0, "-"), (-SLACK, "--")):
        ax.axvline(at, color=RED, linestyle=style, linewidth=1.2)
    ax.set(
        yscale="log",
        xlabel="cosine of two rows, at the zeros of M",
        ylabel="share of the pairs",
        title="digits, rank 16",
    )
    ax.legend(loc="upper right", fontsize=9)


def main() -> None:
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_bound(left)
    draw_cosines(right)
    figure.savefig(Path(__file__).with_name("_static") / "active_list.png", dpi=110)


if __name__ == "__main__":
    main()
