"""
Which rank, and how many negative columns
=========================================

A higher rank always fits the observed pairs more closely. :func:`symrelu.select_rank` hides some pairs,
positive ones and zeros, and scores each rank on these. The matrix below has five planted columns and a shift,
:math:`\\max(0, U U^T - c)`, which requires a sixth column with a minus sign.
"""

from symrelu import decompose, select_rank
from symrelu.datasets import make_relu_gram

M, _ = make_relu_gram(100, 5, shift=0.1, random_state=0)
selection = select_rank(M, ranks=range(3, 9), n_negative=[0, 1], n_repeats=3, max_iter=100, random_state=0)
print(selection)

# %%
# The error on hidden pairs drops until the model can reproduce the matrix. Without a negative column it never
# can. The ring marks the choice: the simplest setting within one standard error of the best.
ax = selection.plot()
ax.set_yscale("log")

# %%
# The chosen settings can be passed to :func:`symrelu.decompose`.
solution = decompose(M, **selection.chosen, random_state=0)
print(solution)
