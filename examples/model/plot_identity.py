"""
The identity has rank three
===========================

The identity matrix is the worst case for low-rank approximation, because all its eigenvalues are equal. But it
is the ReLU of a matrix of rank three, if that matrix may have a negative eigenvalue.
"""

# %%
# A parabola
# ----------
# :math:`X_{ij} = 1 - (i - j)^2` is 1 on the diagonal and not positive elsewhere, so that :math:`\max(0, X)` is
# the identity of any size. Since :math:`X_{ij} = 1 - i^2 + 2ij - j^2`, it has rank 3, with one negative
# eigenvalue.

import matplotlib.pyplot as plt
import numpy as np

from symrelu import decompose
from symrelu.baselines import truncated_eigen

n = 25
place = np.arange(n)
X = 1 - np.subtract.outer(place, place) ** 2
print("max(0, X) is the identity:", bool((np.maximum(0, X) == np.eye(n)).all()))
print("rank:", np.linalg.matrix_rank(X), " negative eigenvalues:", int(np.sum(np.linalg.eigvalsh(X) < -1e-8)))

# %%
# Three models of rank 3
# ----------------------
# No :math:`U U^T` of rank 3 has the identity as its ReLU: in 3 dimensions at most 6 nonzero vectors have no
# positive inner product with each other, and 25 are needed here. With one negative column the fit reaches the
# tolerance from each of 8 random starts.

eigen = truncated_eigen(np.eye(n), 3)
paper = decompose(np.eye(n), 3, random_state=0)
signed = [
    decompose(np.eye(n), 3, n_negative=1, init="random", random_state=seed, tol=1e-3) for seed in range(8)
]
evaluations = [solution.n_evaluations for solution in signed]
print(f"eigendecomposition:  relative error {eigen.relative_error:.3f}")
print(f"U U^T:               relative error {paper.relative_error:.3f}")
print(f"one negative column: relative error {max(s.relative_error for s in signed):.1e} or less,")
print(f"                     after {min(evaluations)} to {max(evaluations)} evaluations")

# %%
# The matrices behind the ReLU
# ----------------------------
# A fit does not find X itself, because many matrices have the identity as their ReLU. Grey is zero, red is
# positive and blue is negative; the ReLU keeps only the red.

fig, axes = plt.subplots(1, 3, figsize=(11.5, 3.9), layout="constrained")
found = signed[0]
pictures = {
    "$X_{ij} = 1 - (i - j)^2$": X,
    "a fit with one negative column": (found.U * found.signature) @ found.U.T,
    "a fit by $U U^T$ of rank 3": paper.U @ paper.U.T,
}
for ax, (title, matrix) in zip(axes, pictures.items(), strict=True):
    image = ax.imshow(matrix, cmap="coolwarm", vmin=-2, vmax=2)
    ax.set_title(title)
    ax.set_axis_off()
fig.colorbar(image, ax=axes, shrink=0.8, extend="both", label="entry of X")
plt.show()

# %%
# Convergence of eight runs
# -------------------------
# The error stays high while the rows arrange themselves, and then drops quickly.

fig, ax = plt.subplots(figsize=(7.5, 4.3), layout="constrained")
for solution in signed:
    ax.semilogy(solution.history.evaluations, solution.history.relative_error, "C0-", lw=1, alpha=0.6)
ax.plot([], [], "C0-", label="one negative column, 8 random starts")
ax.axhline(paper.relative_error, color="C1", ls="--", label="$U U^T$")
ax.axhline(1e-3, color="black", ls=":", label="tol")
ax.set(xlabel="evaluations", ylabel="relative error")
ax.grid(alpha=0.3)
ax.legend()
plt.show()

# %%
# Larger matrices
# ---------------
# In exact arithmetic rank 3 is enough for the identity of any size. But the larger it is, the harder the fit is
# to find; one additional column makes the search easy again.

for size in (50, 100, 200):
    fit = decompose(np.eye(size), 4, n_negative=1, init="random", random_state=0, tol=1e-3)
    print(f"n = {size}: rank 4, relative error {fit.relative_error:.1e} after {fit.n_evaluations} evaluations")
