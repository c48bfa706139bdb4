"""The figures of the experiments."""

from small_cells import CELL

from symrelu.experiments import CellResult, Real, Synthetic, paper
from symrelu.experiments.cases import SampleGraph


def test_figures_of_both_experiments_show_every_line():
    result = CellResult.from_solution(CELL.fit())
    experiment = Synthetic(seeds=2)
    (figure,) = experiment.figures(dict.fromkeys(experiment.cells(), result))
    for ax in figure.drawing.axes:
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"{m:g}" for m in paper.MOMENTA]
        assert ax.get_yscale() == "log"
        crosses = [line.get_ydata()[0] for line in ax.lines if line.get_marker() == "x"]
        assert len(crosses) == 7
    assert crosses[0] == 0.18  # the last panel is m=1000, p=0.08, r=150
    cases = tuple(SampleGraph(key, key, 100, "0" * 64) for key in paper.REAL_RANK)
    experiment = Real(cases)
    (figure,) = experiment.figures(dict.fromkeys(experiment.cells(), result))
    assert len(figure.drawing.axes) == 8
    titles = [ax.get_title().split(",")[0] for ax in figure.drawing.axes[:4]]
    assert titles == list(paper.REAL_FIGURE)
    for ax in figure.drawing.axes:
        low, high = ax.get_ylim()
        assert all(low <= line.get_ydata()[-1] <= high for line in ax.lines if len(line.get_xdata()) == 1)
    assert {ax.get_xlabel() for ax in figure.drawing.axes} == {"iterations", "seconds"}
    assert not experiment.figures({})


def test_lines_differ_without_colour():
    from symrelu.experiments.figures import _LINE_STYLES, _METHOD_STYLES

    looks = [(str(style["linestyle"]), style.get("lw", 1.8)) for style in _METHOD_STYLES.values()]
    assert len(set(looks)) == len(looks)
    assert len(set(map(str, _LINE_STYLES))) == len(paper.MOMENTA)
