"""The synthetic experiment: its cells, its tables, and what the paper says, in small."""

from dataclasses import replace

from small_cells import CELL

from symrelu.experiments import Ablation, CellResult, CellStore, Synthetic, paper, run_cells, synthetic
from symrelu.experiments.methods import OURS


def test_synthetic_has_the_papers_cells():
    full, quick = Synthetic(seeds=3, beside=2).cells(), Synthetic(quick=True).cells()
    assert len(set(full)) == 7 * 8 * (3 + 2 * 2) + 3 * 8 * 2
    assert len(quick) == 4 * 3 * 3 + 3 * 3
    assert set(quick) < set(full)
    ours = [cell for cell in full if cell.method in OURS]
    assert len(ours) == 3 * 8 * 2
    assert all(cell.limits.max_iter == (300 if cell in ours else 1000) for cell in full)
    assert all(cell.limits.tol == 1e-4 for cell in full)
    first = full[: 7 * 8 * 3]
    assert {(cell.method.solver.step_size, cell.method.init) for cell in first} == {(10.0, "uniform")}


def test_tables_put_the_paper_beside_step_10_only():
    experiment = Synthetic(seeds=3, beside=2)
    result = CellResult.from_solution(CELL.fit())
    tables = experiment.tables(dict.fromkeys(experiment.cells(), result))
    assert [table.has_paper for table in tables] == [True, True] + [False] * 7
    uniform, normal = (dict(table.rows)["0.4"][1] for table in tables[:2])
    assert (uniform.paper, uniform.count) == (1.5e-3, 3)
    assert (normal.paper, normal.count) == (1.5e-3, 2)
    assert uniform.value == result.relative_error


def test_where_the_mean_curve_passes_a_value():
    result = CellResult.from_solution(CELL.fit())
    short = replace(result, curves={**result.curves, "relative_error": [1.0, 0.5, 0.1]})
    long = replace(result, curves={**result.curves, "relative_error": [1.0, 0.9, 0.8, 0.2, 0.1]})
    assert synthetic.first_at_or_below([short], 0.5) == 1
    assert synthetic.first_at_or_below([short, long], 0.45) == 2  # means 1, .7, .45, .15, .1
    assert synthetic.first_at_or_below([short, long], 0.05) is None
    assert synthetic.first_at_or_below([], 0.5) is None
    experiment = Synthetic(seeds=2, beside=1)
    table = experiment.tables(dict.fromkeys(experiment.cells(), long))[3]
    assert "passing" in table.name
    assert dict(table.rows)["0"][6].value == 4  # the paper has .18 there
    assert dict(table.rows)["0"][0] is None


# --- what the paper says, in small ---------------------------------------------------------------------------


def test_momentum_saves_iterations_where_the_rank_is_exact(tmp_path):
    column = paper.SYNTHETIC_COLUMNS[0]
    experiment = Synthetic(seeds=1)
    cells_of_column = [
        experiment._cell(column, momentum, synthetic.SETTINGS[0], 0) for momentum in paper.MOMENTA
    ]
    results = run_cells(cells_of_column, CellStore(tmp_path)).values()
    assert all(result.status == "TOLERANCE" for result in results)
    iterations = [result.n_iter for result in results]
    assert iterations[:-1] == sorted(iterations[:-1], reverse=True)  # from .95 to 1 it may rise a little
    assert iterations[0] > 3 * iterations[-1]


def test_synthetic_limits_are_the_papers():
    assert (synthetic.LIMITS.max_iter, synthetic.LIMITS.tol, synthetic.LIMITS.max_time) == (1000, 1e-4, None)
    assert Ablation().problems()[0][2] == synthetic.LIMITS
