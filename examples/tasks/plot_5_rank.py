"""
How many columns for Les Misérables?
====================================

More columns always copy the graph more closely. Whether they say anything about pairs that were not
seen is another question, which :func:`symrelu.select_rank` answers by hiding pairs.
"""

import matplotlib.pyplot as plt
import networkx as nx

from symrelu import decompose, select_rank

graph = nx.les_miserables_graph()
model = {"n_negative": 1, "diagonal": "ignore", "alpha": 1.0, "random_state": 0}
selection = select_rank(graph, ranks=[2, 4, 6, 8, 16], n_repeats=3, **model)
print(selection)

# %%
# The error on pairs that the fit saw falls and falls; the error on hidden pairs does not. The ring
# marks the choice: the simplest setting within one standard error of the best.

table = selection.to_frame()
seen = [decompose(graph, rank, max_iter=200, **model).relative_error for rank in table["rank"]]
fig, ax = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
selection.plot(ax=ax)
ax.plot(table["rank"], seen, "s--", color="0.5", label="pairs that the fit saw")
ax.legend()
plt.show()
