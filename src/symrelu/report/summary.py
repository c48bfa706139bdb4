"""What a fit found, in sentences: what was fitted, how well, and what to try."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symrelu.fitted.certificate import Certificate
from symrelu.fitted.clusters import modularity_of, outliers
from symrelu.fitted.history import Status
from symrelu.fitted.solution import Solution
from symrelu.problem import Problem
from symrelu.report.hidden import HiddenPairs
from symrelu.report.neighbors import Links
from symrelu.report.views import View

_TASKS = {
    "Solution": "a factor with {rank}",
    "SymReLU": "an embedding with {rank}",
    "SymReLUClustering": "a clustering from a factor with {rank}",
    "LinkPredictor": "a predictor of links with {rank}",
    "NeighborEmbedding": "vectors of neighbours with {rank}",
}
_SHOWN_SIZES = 8


@dataclass(frozen=True)
class Summary:
    """The beginning of a report.

    Attributes
    ----------
    facts : tuple of (str, str)
        Numbers that matter most, each with what it is.
    sentences : tuple of str
    advice : tuple of str
        What to try next.
    """

    facts: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]
    advice: tuple[str, ...]


def summarise(
    view: View,
    problem: Problem,
    links: Links,
    labels: np.ndarray | None,
    hidden: HiddenPairs | None,
    not_hidden: str,
) -> Summary:
    """Return the summary of a fit.

    Parameters
    ----------
    view : View
    problem : Problem
    links : Links
    labels : ndarray of int of shape (n,), or None
        Clusters, numbered from 0; -1 where a node has none, which leaves it out of sizes and modularity.
    hidden : HiddenPairs or None
    not_hidden : str
        Why there are no hidden pairs, as a sentence.

    Returns
    -------
    summary : Summary
    """
    without = 0 if labels is None else int(np.count_nonzero(labels < 0))
    modularity = None
    if labels is not None:
        known = np.flatnonzero(labels >= 0)
        labels, among = labels[known], problem.scaled if not without else problem.scaled[known][:, known]
        modularity = modularity_of(among, labels)
    sentences = [_graph(problem, links), _model(view)]
    if view.solution is not None:
        sentences += [_closeness(view, problem), _course(view.solution)]
    if view.certificate is not None:
        sentences.append(_certified(view.certificate))
    sentences.append(not_hidden if hidden is None else _on_hidden(hidden))
    if labels is not None and modularity is not None:
        sentences.append(_clusters(labels, modularity, without))
    facts = _facts(view, links, labels, hidden, modularity)
    advice = _advice(view, links, hidden, labels, modularity)
    return Summary(tuple(facts), tuple(filter(None, sentences)), tuple(advice))


def _graph(problem: Problem, links: Links) -> str:
    count = len(links.i)
    alone = int(np.count_nonzero(links.degrees() == 0))
    text = f"The graph has {_count(problem.n, 'node')} and {_count(count, 'link')}"
    if count:
        text += f", on average {2 * count / problem.n:.3g} for each node"
        text += (
            f", with weights from {links.weights.min():.3g} to {links.weights.max():.3g}" * links.are_weighted
        )
    return text + "." + (f" {_count(alone, 'node')} {_has(alone)} no link." if alone else "")


def _model(view: View) -> str:
    rank = _count(view.factor.rank, "column")
    negative = view.factor.n_negative
    signs = f", {negative} of {'them' if view.factor.rank > 1 else 'it'} negative" if negative else ""
    return f"{view.kind} fitted {_TASKS[view.kind].format(rank=rank)}{signs}: {view.factor.formula}."


def _closeness(view: View, problem: Problem) -> str:
    assert view.solution is not None
    error = view.solution.relative_error
    if not view.fits_the_graph_itself:
        # These fits are short on purpose, and give zeros a low weight; the number would be misunderstood.
        return "It was fitted to the graph divided by degrees, with few steps: it need not be close."
    ratio = problem.parameters_per_pair(view.factor.rank)
    text = f"On the pairs that it saw, its relative error is {error:.3g} (0 is exact; predicting zero gives 1)."
    if ratio >= 1:
        text += f" It has {ratio:.2g} numbers for each link, so that it could fit any graph closely."
    return text


def _course(solution: Solution) -> str:
    seconds = solution.history.seconds[-1] if len(solution.history) else 0.0
    steps = _count(solution.n_iter, "step")
    text = f"The fit took {steps} and {seconds:.3g} seconds. It stopped because {_reason(solution.status)}."
    if solution.level:
        text += " Only smaller matrices were fitted until then: the factor is a guess."
    return text


def _reason(status: Status) -> str:
    return {
        Status.TOLERANCE: "the error reached the tolerance",
        Status.GRADIENT: "the gradient was small enough",
        Status.PLATEAU: "further steps changed little",
        Status.MAX_ITER: "it had used its number of steps",
        Status.MAX_TIME: "it had used its time",
    }.get(status, status.value)


def _certified(certificate: Certificate) -> str:
    pairs = f"All {_count(certificate.n_pairs, 'pair')} of nodes were compared with the graph"
    if certificate.exact:
        return (
            f"{pairs}, and none is wrong: the items with an inner product above {certificate.threshold:.6g} "
            f"are exactly the neighbours (margin {certificate.margin:.2g})."
        )
    return (
        f"{pairs}: {certificate.wrong_pairs:,} are wrong. {_percent(certificate.recall)} of the links are "
        f"found, and {_percent(certificate.precision)} of the pairs found are links."
    )


def _on_hidden(hidden: HiddenPairs) -> str:
    text = (
        f"A second fit did not see {_count(hidden.links, 'link')} and {_count(hidden.others, 'other pair')}: a "
        f"hidden link has a higher score than a hidden other pair in {_percent(hidden.auc)} of the comparisons "
        "(50 % is chance)."
    )
    if hidden.error is not None:
        text += f" Its relative error on hidden pairs is {hidden.error:.3g} (predicting zero gives 1)."
    return text


def _clusters(labels: np.ndarray, modularity: float, without: int) -> str:
    sizes = np.sort(np.bincount(labels))[::-1]
    shown = ", ".join(f"{size:,}" for size in sizes[:_SHOWN_SIZES]) + ", ..." * (len(sizes) > _SHOWN_SIZES)
    return (
        f"There {'is' if len(sizes) == 1 else 'are'} {_count(len(sizes), 'cluster')} of {shown} nodes, with "
        f"modularity {modularity:.3f} (0 is chance; well separated communities have more than 0.3)."
    ) + (f" {_count(without, 'node')} {_has(without)} no cluster." if without else "")


def _facts(
    view: View,
    links: Links,
    labels: np.ndarray | None,
    hidden: HiddenPairs | None,
    modularity: float | None,
) -> list[tuple[str, str]]:
    facts = [("nodes", f"{view.n:,}"), ("links", f"{len(links.i):,}"), ("columns", f"{view.factor.rank}")]
    if view.fits_the_graph_itself and view.solution is not None:
        facts.append(("relative error", f"{view.solution.relative_error:.3g}"))
    if view.certificate is not None:
        facts.append(("wrong pairs", f"{view.certificate.wrong_pairs:,}"))
    if hidden is not None:
        facts.append(("hidden links ranked right", _percent(hidden.auc)))
    if labels is not None:
        facts += [("clusters", f"{labels.max() + 1:,}"), ("modularity", f"{modularity:.3f}")]
    return facts


def _advice(
    view: View,
    links: Links,
    hidden: HiddenPairs | None,
    labels: np.ndarray | None,
    modularity: float | None,
) -> list[str]:
    advice = []
    if view.solution is not None and view.fits_the_graph_itself:
        if view.solution.status in (Status.MAX_ITER, Status.MAX_TIME, Status.INTERRUPTED):
            advice.append(
                "The fit had not converged: a larger max_iter or max_time (--max-iter, --max-time) brings it "
                "closer."
            )
        elif view.solution.relative_error > 0.3:
            advice.append("For a closer fit, take more columns (n_components, --components).")
    if hidden is not None and (hidden.auc < 0.6 or (hidden.error or 0) >= 1):
        advice.append(
            "Hidden pairs are predicted badly: take fewer columns (n_components, --components), and do not "
            "read much into single scores."
        )
    if view.certificate is not None and not view.certificate.exact:
        advice.append("To be exact, the vectors need more columns, or the search more steps.")
    if labels is not None and modularity is not None:
        few = outliers(labels)
        if few:
            advice.append(f"{few}: take another number of clusters, or the other method.")
        elif modularity < 0.3:
            advice.append("The clusters are hardly denser than chance: take another number of clusters.")
    if len(links.i) and (links.degrees() == 0).mean() > 0.1:
        advice.append("Many nodes have no link, and the model knows nothing about them: leave them out.")
    if not advice:
        advice.append("The fit needs no change: explore the map, and compare it with what you know.")
    return [*advice, *_next_steps(view)]


def _next_steps(view: View) -> list[str]:
    """Return what else can be done with the same graph."""
    steps = {
        "LinkPredictor": "LinkPredictor (symrelu links), another model, lists pairs that may be linked.",
        "NeighborEmbedding": "NeighborEmbedding (symrelu neighbors) finds vectors that give the neighbours.",
    }
    return [step for kind, step in steps.items() if kind != view.kind]


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' if number != 1 else ''}"


def _has(number: int) -> str:
    return "have" if number != 1 else "has"


def _percent(share: float) -> str:
    """Return a share in percent; only what is exactly all or nothing is called 100 % or 0 %."""
    text = f"{100 * share:.1f}"
    if text in ("100.0", "0.0"):
        exact = share in (0.0, 1.0)
        return f"{share:.0%}".replace("%", " %") if exact else ("> 99.9 %" if share > 0.5 else "< 0.1 %")
    return f"{text} %"
