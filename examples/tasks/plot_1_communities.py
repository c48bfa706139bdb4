"""
Communities in Les Misérables
=============================

Which characters of Victor Hugo's novel belong together? The graph has 77 characters; the weight of
a link is the number of chapters in which two of them meet.
"""

# %%
# Six communities
# ---------------
# ``fit`` takes the networkx graph as it is, and the results have the names of its nodes.

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from symrelu import SymReLUClustering

graph = nx.les_miserables_graph()
clustering = SymReLUClustering(n_clusters=6, random_state=0).fit(graph)
table = clustering.to_frame()
print(f"method: {clustering.method_}, modularity {clustering.modularity_[clustering.method_]:.3f}")
for cluster, rows in table.groupby("cluster"):
    best = rows.sort_values("membership", ascending=False).node.head(5)
    print(f"{cluster}: {len(rows)} characters, such as {', '.join(best)}")

# %%
# The graph, coloured by community
# --------------------------------
# Large dots belong to one community alone; small ones are shared between several.

colors = plt.get_cmap("tab10")(clustering.labels_)
places = nx.kamada_kawai_layout(graph, weight=None)
fig, ax = plt.subplots(figsize=(9, 6.5), layout="constrained")
widths = [0.3 + 0.12 * weight for _, _, weight in graph.edges(data="weight")]
nx.draw_networkx_edges(graph, places, ax=ax, width=widths, edge_color="0.8")
sizes = 30 + 220 * table.membership
nx.draw_networkx_nodes(graph, places, ax=ax, node_size=sizes, node_color=colors, edgecolors="white")
known = ("Valjean", "Javert", "Cosette", "Marius", "Enjolras", "Fantine", "Myriel", "Thenardier")
above = {node: (x, y + 0.05) for node, (x, y) in places.items()}
box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
nx.draw_networkx_labels(graph, above, {node: node for node in known}, ax=ax, font_size=10, bbox=box)
ax.set_axis_off()
plt.show()

# %%
# The matrix, ordered by community
# --------------------------------
# Dark blocks on the diagonal are the communities. Valjean meets characters of all of them.

order = np.argsort(clustering.labels_, kind="stable")
weights = nx.to_numpy_array(graph)[np.ix_(order, order)]
fig, ax = plt.subplots(figsize=(6, 5.5), layout="constrained")
ax.imshow(np.log1p(weights), cmap="magma_r")
edges = np.cumsum(np.bincount(clustering.labels_))[:-1] - 0.5
ax.hlines(edges, -0.5, len(order) - 0.5, color="0.6", lw=0.7)
ax.vlines(edges, -0.5, len(order) - 0.5, color="0.6", lw=0.7)
ax.set(xticks=[], yticks=[], title="chapters in which two characters meet (log scale)")
plt.show()
