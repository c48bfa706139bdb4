"""The ablation changes one setting at a time."""

from symrelu.solvers import AAPB


def test_ablation_changes_one_setting_at_a_time():
    from symrelu.experiments import ablation

    base = ablation.REPRODUCING
    assert base.solver == AAPB(step_size=10.0)
    changes = []
    for method in ablation.METHODS[1:-1]:
        changed = {
            name
            for name, value, reference in (
                ("step", method.solver.step_size, base.solver.step_size),
                ("safeguard", method.solver.safeguard, base.solver.safeguard),
                ("init", method.init, base.init),
                ("alpha", method.alpha, base.alpha),
            )
            if value != reference
        }
        assert len(changed) == 1, method.name
        changes += changed
    assert sorted(changes) == ["alpha", "alpha", "init", "init", "safeguard", "step", "step", "step"]
