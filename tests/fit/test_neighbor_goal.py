"""When vectors are good enough."""

import pytest

from symrelu.fit.neighbor_goal import Goal
from symrelu.fitted.certificate import Certificate


def certificate(missing, extra):
    """Return the certificate of a graph with 100 edges."""
    return Certificate(missing + extra, missing, extra, n_pairs=4950, n_edges=100, margin=0.1, threshold=0.5)


@pytest.mark.parametrize(
    ("recall", "missing", "extra", "met"),
    [
        (1.0, 0, 0, True),
        (1.0, 1, 0, False),
        (1.0, 0, 1, False),
        (0.9, 10, 0, True),
        (0.9, 11, 0, False),
        (0.9, 0, 11, True),  # 100 of 111 pairs found are edges
        (0.9, 0, 12, False),
        (0.9, 10, 10, True),  # 90 of 100
        (0.9, 10, 11, False),
    ],
)
def test_recall_and_precision_decide(recall, missing, extra, met):
    assert Goal(recall=recall).is_met_by(certificate(missing, extra)) == met
