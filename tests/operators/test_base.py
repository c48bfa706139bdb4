"""What all operators share: counts, copies, what is optional."""

import pytest
from helpers import OPERATORS, PROBLEMS, evaluate, factor

from symrelu.operators import DenseOperator, Operator, ReferenceOperator, SparseOperator


@pytest.mark.parametrize("name", OPERATORS)
def test_copies_count_for_themselves_and_find_things_once_for_all(name):
    problem = PROBLEMS["mask"]
    op = OPERATORS[name](problem)
    evaluate(op, factor(problem), factor(problem))
    other = op.with_model(problem.signature, alpha=0.5, zero_weight=0.1, at_least=True)
    assert (op.evaluations, other.evaluations) == (1, 0)
    assert (other.alpha, other.zero_weight, other.at_least) == (0.5, 0.1, True)
    assert (op.alpha, op.zero_weight, op.at_least) == (problem.alpha, problem.zero_weight, False)
    if hasattr(op, "support"):
        assert other.support[1] is op.support[1]
        assert other._not_zero is op._not_zero


def test_what_is_optional_is_offered_by_those_that_define_it():
    for kind in (DenseOperator, SparseOperator, ReferenceOperator):
        assert all(kind.offers(name) for name in (*Operator.OPTIONAL, "residual_product", "frozen"))
    assert not Operator.offers("solve_rows")
    assert not DenseOperator.offers("solve_row")
