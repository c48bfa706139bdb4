"""
A map of the digits
===================

A picture of a graph in the plane: items with many common neighbours are close. The graph connects each of 1797
handwritten digits with its nearest ones.
"""

# %%
# From a graph to a map
# ---------------------
# The model gives 16 numbers to each digit; the map shows which of these vectors point in similar directions.
# The colours are the true digits, which neither the model nor the map has seen.

import matplotlib.pyplot as plt

from symrelu import decompose
from symrelu.datasets import load_digits_graph
from symrelu.plots import plot_map, plot_spectrum

graph, digits = load_digits_graph()
model = decompose(graph, 16, n_negative=1, diagonal="ignore", max_iter=100, random_state=0)
fig, ax = plt.subplots(figsize=(8, 6.5), layout="constrained")
plot_map(model, ax, labels=digits)
plt.show()

# %%
# What the model is made of
# -------------------------
# The eigenvalues of X: each column adds a direction in which digits are alike. The negative one lowers X
# where there is no link.

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
plot_spectrum(model, ax)
plt.show()
