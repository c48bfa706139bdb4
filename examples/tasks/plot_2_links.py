"""
Predicted links in the karate club
==================================

Zachary's karate club: 34 members, and who meets whom outside the club. Which friendships are
missing? And how far can such a prediction be trusted?
"""

# %%
# The ten most likely links
# -------------------------

import matplotlib.pyplot as plt
import networkx as nx

from symrelu import LinkPredictor

graph = nx.karate_club_graph()
predictor = LinkPredictor(n_components=4, random_state=0).fit(graph)
links = predictor.top_links(10)
print(links.to_frame().round(3).to_string(index=False))

# %%
# The club split into two later (the colours), around members 0 and 33. The prediction does not know
# that. Most of its links (dashed) are inside the halves; the others join members who knew people on
# both sides.

places = nx.spring_layout(graph, weight=None, k=0.4, iterations=300, seed=1)
half = [graph.nodes[node]["club"] == "Officer" for node in graph]
fig, ax = plt.subplots(figsize=(8, 6), layout="constrained")
nx.draw_networkx_edges(graph, places, ax=ax, edge_color="0.8")
nx.draw_networkx_edges(
    graph, places, [tuple(pair) for pair in links.names], ax=ax, edge_color="tab:red", style="dashed", width=2
)
colors = ["tab:orange" if officer else "tab:blue" for officer in half]
nx.draw_networkx_nodes(graph, places, ax=ax, node_size=330, node_color=colors, edgecolors="white")
nx.draw_networkx_labels(graph, places, ax=ax, font_size=9, font_color="white")
ax.set_title("dashed: predicted links")
ax.set_axis_off()
plt.show()

# %%
# How good is it?
# ---------------
# ``evaluate`` hides a fifth of the links, fits the others, and finds out whether hidden links get
# higher scores than pairs without a link. An AUC of 1 is perfect, .5 is chance. Against pairs drawn
# by degree the task is much harder: in such a small graph, hubs explain most links.

print(LinkPredictor(n_components=4, random_state=0).evaluate(graph, fraction=0.2))
