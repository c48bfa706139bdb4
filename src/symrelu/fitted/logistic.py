"""The fitted model of LPCA: probabilities of the ones in a matrix of zeros and ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from symrelu.fitted.models import TwoFactor


@dataclass(frozen=True, eq=False, repr=False)
class Logistic(TwoFactor):
    """M_ij = 1 with probability 1 / (1 + exp(-X_ij)), X = U V^T: the model of LPCA for zeros and ones.

    The predicted links are the pairs with X > 0, those of a probability above one half.

    Parameters
    ----------
    U, V : ndarray of shape (n, rank)
        The left and the right factor.

    Attributes
    ----------
    signature : ndarray of shape (rank,)
        All ones: V may have any sign.

    Examples
    --------
    >>> import numpy as np
    >>> from symrelu.fitted import Logistic
    >>> model = Logistic(U=np.array([[1.0], [2.0]]), V=np.array([[3.0], [-1.0]]))
    >>> model.score_pairs([0, 1], [1, 0])
    array([-1.,  6.])
    >>> model.reconstruct([0, 1]).round(3)
    array([[0.953, 0.269],
           [0.998, 0.119]])
    """

    formula: ClassVar[str] = "M ~ 1 / (1 + exp(-U V^T))"
    relu: ClassVar[bool] = False

    def reconstruct(self, rows: Any) -> np.ndarray:
        """Return rows of the model of M: the probabilities of a one.

        Parameters
        ----------
        rows : array-like of int

        Returns
        -------
        reconstruction : ndarray of shape (len(rows), n)
        """
        from scipy.special import expit  # not at the top: slow to import

        return expit(super().reconstruct(rows))
