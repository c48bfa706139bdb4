"""
A matrix of rank 5 that is the ReLU of a matrix of rank 2
=========================================================

The first example of the paper. M has full rank. But if a zero of M only requires the entry of X to be at most
zero, two columns are enough.
"""

# %%
# The matrix
# ----------

import matplotlib.pyplot as plt
import numpy as np

from symrelu import decompose
from symrelu.baselines import truncated_eigen

M = np.array(
    [
        [10, 0, 1, 7, 0],
        [0, 5, 0, 0, 4],
        [1, 0, 1, 0, 0],
        [7, 0, 0, 13, 0],
        [0, 4, 0, 0, 4],
    ],
    dtype=float,
)
print("rank of M:", np.linalg.matrix_rank(M))

# %%
# The fit
# -------
# ``tol`` is lowered for a closer fit than the default. ``gtol=0`` disables the test on the gradient, which
# would stop the run earlier.

solution = decompose(M, rank=2, tol=1e-7, gtol=0, random_state=0)
X = solution.U @ solution.U.T
print(solution)
print("rank of X:", np.linalg.matrix_rank(X))

# %%
# The error of the best approximation of rank 2 without the ReLU, for comparison:

print(f"{truncated_eigen(M, rank=2).relative_error:.2f}")

# %%
# M, X and max(0, X)
# ------------------
# Where M is positive, X equals it. Where M is zero, X is at most zero.

fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
largest = M.max()
pictures = {"M, rank 5": M, r"$X = U U^T$, rank 2": X, r"$\max(0, X)$": np.maximum(0, X)}
for ax, (title, matrix) in zip(axes, pictures.items(), strict=True):
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-largest, vmax=largest)
    for (i, j), value in np.ndenumerate(np.round(matrix, 1) + 0.0):  # + 0.0 turns -0.0 into 0
        color = "white" if abs(value) > 0.6 * largest else "black"
        ax.text(j, i, f"{value:g}", ha="center", va="center", color=color, fontsize=12)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=13)
fig.colorbar(image, ax=axes, shrink=0.85, label="entry")
plt.show()

# %%
# X is not unique. The paper prints another matrix of rank 2 with the same ReLU; another seed finds it:

other = decompose(M, rank=2, tol=1e-7, gtol=0, random_state=1)
print(np.round(other.U @ other.U.T).astype(int))
