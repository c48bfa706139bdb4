"""
Exact neighbours from short vectors
===================================

How many of its neighbours does a node find again, if all we keep is a short vector per node? The
graph connects each of 300 handwritten digits with its nearest ones.
"""

# %%
# Vectors that give back the graph
# --------------------------------
# With the vectors of :class:`symrelu.NeighborEmbedding`, the neighbours of an item are those with an
# inner product above one threshold. The certificate says that all pairs were checked.

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_digits

from symrelu import NeighborEmbedding
from symrelu.graphs import self_tuning_graph

images = load_digits().images[:300]
graph = self_tuning_graph(images.reshape(300, -1))
model = NeighborEmbedding(10, random_state=0).fit(graph)
print(model.certificate_)

# %%
# The neighbours of some digits
# -----------------------------
# On the left the item itself, next to it the first neighbours that its vector finds.

fig, axes = plt.subplots(5, 8, figsize=(8, 5.2), layout="constrained")
for row, item in zip(axes, (1, 12, 3, 44, 5), strict=True):
    found = model.top_k([item], k=7).items[0]
    for ax, shown in zip(row, (item, *found), strict=True):
        ax.imshow(images[shown], cmap="gray_r" if shown == item else "Blues")
        ax.set(xticks=[], yticks=[])
axes[0, 0].set_title("item")
axes[0, 1].set_title("neighbours", loc="left")
plt.show()

# %%
# Compared with eigenvectors
# --------------------------
# The recall: the share of the neighbours of an item that are among its best scores, as many as it has
# neighbours. Truncated eigenvectors have to reproduce the zeros of the matrix too, and lose most of
# the neighbours.


def recall(scores):
    """Return the share of the neighbours that are among the best scores of each item."""
    np.fill_diagonal(scores, -np.inf)
    linked = graph.toarray() > 0
    order = np.argsort(-scores, axis=1)
    hits = [linked[i, order[i, : linked[i].sum()]].mean() for i in range(len(scores))]
    return np.mean(hits)


columns = (2, 4, 6, 8, 10)
values, vectors = eigsh(graph, 10, v0=np.ones(300))
best = np.argsort(-np.abs(values))
of_eigenvectors = [recall((vectors[:, best[:k]] * values[best[:k]]) @ vectors[:, best[:k]].T) for k in columns]
fits = [NeighborEmbedding(k, max_iter=200, recall=0.01, random_state=0).fit(graph) for k in columns[:-1]]
of_model = [recall(fit.query_vectors_ @ fit.item_vectors_.T) for fit in (*fits, model)]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(columns, of_model, "o-", lw=2, label="symrelu")
ax.plot(columns, of_eigenvectors, "s--", lw=2, label="eigenvectors")
ax.set(xlabel="numbers per item", ylabel="recall of the neighbours", ylim=(0, 1.03), xticks=columns)
ax.legend()
ax.grid(alpha=0.3)
plt.show()
