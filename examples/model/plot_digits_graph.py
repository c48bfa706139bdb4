"""
The graph of the digits
=======================

A self-tuning nearest-neighbour graph of scikit-learn's 1797 handwritten digits, fitted by the paper's model
and by two richer ones.
"""

# %%
# The graph
# ---------
# M is sparse, symmetric and normalised, with a zero diagonal. The fit never forms an array of 1797 x 1797
# entries.

import matplotlib.pyplot as plt
import numpy as np

from symrelu import decompose, metrics
from symrelu.datasets import load_digits_graph

M, labels = load_digits_graph()
n, n_edges, rank = M.shape[0], M.nnz // 2, 10
print(f"{n} nodes, {n_edges} edges, {M.nnz / n**2:.2%} of the entries are positive")

# %%
# Three models
# ------------
# A diagonal entry of :math:`U U^T` is a squared norm, which is zero only if the whole row of U is. Ignoring the
# diagonal removes this constraint. A column with a minus sign allows X to have a negative eigenvalue.

models = {
    "paper's model": {},
    "diagonal ignored": {"diagonal": "ignore"},
    "diagonal ignored, one negative column": {"diagonal": "ignore", "n_negative": 1},
}
solutions = {name: decompose(M, rank, max_iter=50, random_state=0, **model) for name, model in models.items()}
for name, solution in solutions.items():
    print(f"{name}: relative error {solution.relative_error:.3f}; {solution.status.value}")

# %%
# Convergence
# -----------
# All three runs stop at ``max_iter``, which is kept low here, with errors far above ``tol``.

fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
for (name, solution), style in zip(solutions.items(), ("C0-", "C1--", "C2-"), strict=True):
    ax.plot(solution.history.iteration, solution.history.relative_error, style, label=name, lw=2)
ax.set(xlabel="iteration", ylabel="relative error")
ax.grid(alpha=0.3)
ax.legend()
plt.show()

# %%
# Nodes sorted by class
# ---------------------
# Single entries of such a sparse matrix are too small to see. The images show means over blocks of about 20 x
# 20 pairs, with the nodes sorted by their digit. The fit did not use the labels.

n_blocks = 90
order = np.argsort(labels, kind="stable")
first = np.linspace(0, n, n_blocks + 1).astype(int)


def block_means(matrix):
    """Return the means of a matrix over blocks of entries."""
    sums = np.add.reduceat(np.add.reduceat(matrix, first[:-1], axis=0), first[:-1], axis=1)
    return sums / np.outer(np.diff(first), np.diff(first))


solution = solutions["diagonal ignored, one negative column"]
U = solution.U[order]
fitted = np.maximum(0, (U * solution.signature) @ U.T)
np.fill_diagonal(fitted, 0)  # the fit ignored the diagonal, so its values mean nothing
pictures = {"M": block_means(M.toarray()[np.ix_(order, order)]), r"$\max(0, X)$": block_means(fitted)}

middles = [n_blocks / n * np.mean(np.flatnonzero(labels[order] == digit)) - 0.5 for digit in range(10)]
fig, axes = plt.subplots(1, 2, figsize=(10.5, 5), layout="constrained")
for ax, (title, means) in zip(axes, pictures.items(), strict=True):
    image = ax.imshow(means, cmap="magma_r", vmin=0, vmax=np.quantile(pictures["M"], 0.99))
    ax.set(xlabel="digit", ylabel="digit")
    ax.set_title(title, fontsize=13)
    ax.set_xticks(middles, range(10))
    ax.set_yticks(middles, range(10))
    ax.tick_params(length=0)
fig.colorbar(image, ax=axes, shrink=0.85, extend="max", label="mean over a block")
plt.show()

# %%
# Overfitting
# -----------
# The factor has more numbers than the graph has edges, so that a close fit may be mere interpolation. Evaluate
# it on entries that were hidden from it with ``mask``. Predicting zero gives an error of 1. Shrinking the
# factor with ``alpha`` helps here.

print(f"{metrics.parameters_per_pair(M, rank):.1f} numbers in U for each edge")
mask = metrics.random_mask(n, 0.1, random_state=0)
closest = {"diagonal": "ignore", "n_negative": 1}
for name, model in {"the closest fit": closest, "with alpha = 0.05": {**closest, "alpha": 0.05}}.items():
    partial = decompose(M, rank, max_iter=100, mask=mask, random_state=0, **model)
    error = metrics.held_out_error(M, partial.U, partial.signature, mask=mask)
    print(f"{name}: {error:.3f} on hidden pairs")

# sphinx_gallery_thumbnail_number = 2
