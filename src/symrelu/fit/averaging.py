"""The mean X of several fits of one problem, as one solution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symrelu.fitted.solution import Solution
from symrelu.problem import Problem


def mean_solution(fits: Sequence[Solution], problem: Problem, backend: str) -> Solution:
    """Return the mean X of several fits as one solution.

    Parameters
    ----------
    fits : sequence of Solution
        Fits of ``problem`` with the same settings from different starts.
    problem : Problem
    backend : str
        Backend of the pass that computes the errors of the mean.

    Returns
    -------
    solution : Solution
        Its factor holds those of all fits side by side, divided by the square root of their number. The status
        and the history are those of the first fit, ``n_iter`` is the largest one, evaluations are added up.
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
