"""The operator of docs/extending.rst."""

import logging
from typing import Any

from symrelu.operators import Evaluation, SparseOperator

logger = logging.getLogger(__name__)


class LoggingOperator(SparseOperator):
    """A sparse operator that logs each of its products.

    Examples
    --------
    >>> import logging, sys
    >>> import numpy as np
    >>> from symrelu import LBFGS, Problem
    >>> from symrelu.datasets import make_relu_gram
    >>> from symrelu.fit.loop import run
    >>> from symrelu.fit.settings import Limits
    >>> from symrelu.fit.starts import start
    >>> problem = Problem.of(make_relu_gram(60, 3, random_state=0)[0])
    >>> op = LoggingOperator.of(problem.M, problem.unknown, signature=np.ones(3))
    >>> U0 = start(op, "random", 0)
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> logger.addHandler(handler)
    >>> logger.setLevel(logging.INFO)
    >>> outcome = run(op, LBFGS(), U0, Limits(max_iter=2))
    pass 1: R(U) V with 3 columns, loss 3158.3
    pass 2: R(U) V with 3 columns, loss 2423.6
    pass 3: R(U) V with 3 columns, loss 2060.4
    >>> MV = op.matmul(U0)
    M V with 3 columns
    >>> logger.removeHandler(handler)
    """

    def matmul(self, V: Any) -> Any:
        logger.info("M V with %d columns", V.shape[1])
        return super().matmul(V)

    def _evaluate(self, U: Any, V: Any | None) -> Evaluation:
        passed = super()._evaluate(U, V)
        product = "the loss alone" if V is None else f"R(U) V with {V.shape[1]} columns"
        logger.info("pass %d: %s, loss %.1f", self.evaluations, product, passed.loss)
        return passed
