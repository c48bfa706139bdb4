"""The mean of several fits, as one solution."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from symrelu.fitted.solution import Solution
from symrelu.problem import Problem


def mean_solution(fits: list[Solution], problem: Problem, backend: str) -> Solution:
    """Return the mean X of several fits as one solution.

    Parameters
    ----------
    fits : list of Solution
        With the same alpha, zero_weight and support.
    problem : Problem
        What they were fitted to.
    backend : str

    Returns
    -------
    mean : Solution
        Its factor has the columns of all fits. The history, the solver and the status are those of the first.
    """
    # X is quadratic in U, so the square root makes it a mean.
    U = np.concatenate([fit.U for fit in fits], axis=1) / math.sqrt(len(fits))
    signature = np.concatenate([fit.signature for fit in fits])
    order = np.argsort(-signature, kind="stable")  # the negative columns are the last
    U, signature = np.ascontiguousarray(U[:, order]), signature[order]
    alpha, zero_weight, k = fits[0].alpha, fits[0].zero_weight, problem.exponent
    op = problem.operator(
        signature,
        alpha=problem.scaled_alpha(alpha),
        zero_weight=zero_weight,
        support=fits[0].support,
        backend=backend,
    )
    losses = op.loss(op.asarray(np.ldexp(U, -k)))
    return replace(
        fits[0],
        model=replace(fits[0].model, U=U, signature=signature),
        n_iter=max(fit.n_iter for fit in fits),
        # The pass above has the columns of all fits, and costs as much as one pass for each of them.
        n_evaluations=sum(fit.n_evaluations for fit in fits) + len(fits),
        relative_error=op.relative_error(losses.loss),
        objective=math.ldexp(losses.latent_loss, 4 * k) + alpha / 2 * float(np.sum(U.astype(np.float64) ** 2)),
    )
