"""What a fitted clustering answers: clusters of new items, memberships, and the tree of merges."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from symrelu.estimators.new_items import NewItemsMixin
from symrelu.estimators.rankings import frame_of
from symrelu.fit.cluster_methods import DEGREE_REGULARIZATION
from symrelu.fit.normalised_graph import divided_rows
from symrelu.fitted.answers import answers_of
from symrelu.fitted.clusters import Clusters
from symrelu.fitted.linkage_tree import Tree
from symrelu.fitted.models import SymmetricReLU


class ClusterQueriesMixin(NewItemsMixin):
    """Answer queries from the clusters and the factor that ``fit`` has set."""

    labels_: np.ndarray
    memberships_: np.ndarray
    method_: str
    clusters_: Clusters
    root_degrees_: np.ndarray
    backend: str

    def predict(self, X: Any, mask: Any | None = None) -> np.ndarray:
        """Return the clusters of new items, from their similarities to the fitted ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_samples)
            Similarities of the new items to those of ``fit``. If ``fit`` received samples, samples of shape
            (n_new, n_features).
        mask : sparse or dense bool matrix of shape (n_new, n_samples), optional
            True where a similarity is unobserved.

        Returns
        -------
        labels : ndarray of int of shape (n_new,)
            An item of ``fit`` keeps its label (of several equal rows, that of the first). A new one gets the
            cluster with the nearest direction, or with the largest mean of max(0, X); without any similarity,
            the largest cluster.
        """
        M_new, unknown, same = self._new_rows(X, mask)
        labels = self.labels_[same]
        new = np.flatnonzero(same < 0)
        if len(new):
            labels[new] = self.clusters_.nearest(self._rows(M_new, unknown, new))
        return labels

    def predict_memberships(self, X: Any, mask: Any | None = None) -> np.ndarray:
        """Return the share of each cluster in new items: see ``memberships_``.

        Parameters
        ----------
        X, mask
            As for :meth:`predict`.

        Returns
        -------
        memberships : ndarray of shape (n_new, n_clusters)
        """
        M_new, unknown, same = self._new_rows(X, mask)
        memberships = self.memberships_[same]
        new = np.flatnonzero(same < 0)
        if len(new):
            memberships[new] = self.clusters_.memberships(self._rows(M_new, unknown, new))
        return memberships

    @property
    def tree_(self) -> Tree:
        """All merges, if ``method_`` is "linkage".

        ``tree_.cut(k)`` returns k clusters without another fit, ``tree_.to_scipy()`` the linkage matrix for
        ``scipy.cluster.hierarchy.dendrogram``.
        """
        check_is_fitted(self)
        tree = getattr(self.clusters_, "tree", None)
        if tree is None:
            raise AttributeError(
                "tree_ exists if clusters are formed by linkage, but method_ is 'directions'. Fit with "
                "method='linkage'."
            )
        return tree

    def to_frame(self) -> Any:
        """Return the clusters as a pandas DataFrame.

        Returns
        -------
        frame : DataFrame
            With the columns "node" (its name, if the input of ``fit`` has names, or its index), "cluster" and
            "membership", the share of that cluster in the node.
        """
        check_is_fitted(self)
        nodes = np.arange(len(self.labels_))
        columns = {"node": nodes, "cluster": self.labels_, "membership": self.memberships_[nodes, self.labels_]}
        return frame_of(columns, getattr(self, "node_names_", None), instead="labels_ and memberships_")

    def _rows(self, M_new: Any, unknown: Any | None, new: np.ndarray) -> np.ndarray:
        """Return the rows of the factor for the new items among some rows of similarities."""
        rows, unknown = M_new[new], None if unknown is None else unknown[new]
        if self.method_ == "directions":
            rows = divided_rows(rows, self.root_degrees_, DEGREE_REGULARIZATION)
        assert isinstance(self.solution_.model, SymmetricReLU)
        answers = answers_of(self.solution_.model, self.backend)
        return np.asarray(answers.transform_checked(rows, unknown))
