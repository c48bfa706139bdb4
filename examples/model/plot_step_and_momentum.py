"""
Step size and momentum
======================

Four settings of AAPB on the paper's first synthetic matrix: with and without momentum, with the step size that
the theory allows and with the one that reproduces the paper's tables.
"""

# %%
# The matrix is max(0, U U^T) with a normal random U of ten columns, so that rank 10 can fit it exactly.

import matplotlib.pyplot as plt
import numpy as np

from symrelu import AAPB, decompose
from symrelu.datasets import make_relu_gram

M, _ = make_relu_gram(500, 10, random_state=0)

# %%
# APB is AAPB with ``momentum=0``. All four runs start from the same factor.

solvers = {
    "APB, step 1": AAPB(step_size=1, momentum=0),
    "AAPB, step 1": AAPB(step_size=1),
    "APB, step 10": AAPB(step_size=10, momentum=0),
    "AAPB, step 10": AAPB(step_size=10),
}
solutions = {
    name: decompose(M, rank=10, solver=solver, init="random", random_state=0)
    for name, solver in solvers.items()
}
for name, solution in solutions.items():
    print(f"{name:>13}: relative error {solution.relative_error:.1e} after {solution.n_iter} iterations")

# %%
# The dotted line is ``tol``. In all four runs an iteration is one pass over the pairs, so that the horizontal
# axis also measures the work.

fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
for (name, solution), style in zip(solutions.items(), ("C0--", "C0-", "C1--", "C1-"), strict=True):
    history = solution.history
    ax.semilogy(history.iteration, history.relative_error, style, label=name, lw=1.8)
ax.axhline(1e-4, color="0.4", lw=1, ls=":")
ax.set(xlabel="iteration", ylabel="relative error", xlim=(0, 1000))
ax.grid(alpha=0.3)
ax.legend()
plt.show()

# %%
# Step 10 is not covered by the theory, and can diverge. It does on the 5 x 5 matrix of the paper's first
# example:

small = np.array(
    [[10, 0, 1, 7, 0], [0, 5, 0, 0, 4], [1, 0, 1, 0, 0], [7, 0, 0, 13, 0], [0, 4, 0, 0, 4]], dtype=float
)
diverged = decompose(small, rank=2, solver=AAPB(step_size=10), random_state=0)
print(diverged)
print(diverged.status.advice)
