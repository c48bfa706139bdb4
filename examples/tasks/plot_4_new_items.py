"""
New digits in old clusters
==========================

1200 handwritten digits are clustered. 597 others come later: they get a place in the same clusters,
without a new fit.
"""

# %%
# Cluster the old ones
# --------------------
# Samples are connected with their nearest neighbours first, and the labels are not used.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from symrelu import SymReLUClustering
from symrelu.metrics import clustering_accuracy

data, digits = load_digits(return_X_y=True)
old, new = slice(0, 1200), slice(1200, None)
clustering = SymReLUClustering(n_clusters=10, random_state=0).fit(data[old])
print(f"method: {clustering.method_}")
print(f"accuracy on the old digits: {clustering_accuracy(digits[old], clustering.labels_):.3f}")

# %%
# Place the new ones
# ------------------

shares = clustering.predict_memberships(data[new])
predicted = clustering.predict(data[new])
print(f"accuracy on the new digits: {clustering_accuracy(digits[new], predicted):.3f}")

# %%
# Which digit is in which cluster? Each row is a cluster, with the share of each true digit among the
# new items.

counts = np.zeros((10, 10))
np.add.at(counts, (predicted, digits[new]), 1)
counts = counts[np.argsort(counts.argmax(axis=1), kind="stable")]
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
image = ax.imshow(counts / counts.sum(axis=1, keepdims=True).clip(1), cmap="Blues", vmin=0, vmax=1)
ax.set(xlabel="true digit", ylabel="cluster, ordered by its main digit", xticks=range(10), yticks=[])
fig.colorbar(image, ax=ax, label="share of the cluster")
plt.show()

# %%
# Items between clusters
# ----------------------
# The largest share of an item says how sure its place is. These new digits are the least clear ones.

doubtful = np.argsort(shares.max(axis=1), kind="stable")[:10]
fig, axes = plt.subplots(2, 5, figsize=(7, 3.4), layout="constrained")
for ax, item in zip(axes.flat, doubtful, strict=True):
    ax.imshow(data[new][item].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"a {digits[new][item]}, share {shares[item].max():.2f}", fontsize=9)
    ax.set(xticks=[], yticks=[])
plt.show()
