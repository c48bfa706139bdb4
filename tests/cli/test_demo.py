"""What the demo claims is computed."""

import pytest
from command_line import symrelu
from numpy.testing import assert_allclose

from symrelu import metrics
from symrelu.cli import demo


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "ITERATIONS", 40)
        yield demo.run_demo()


def test_models_beat_the_eigendecomposition_also_on_held_out_pairs(result):
    eigen, paper, signed, shrunk = result.rows
    assert signed.relative_error < shrunk.relative_error < paper.relative_error < eigen.relative_error
    assert shrunk.held_out_error < signed.held_out_error < paper.held_out_error < eigen.held_out_error


def test_rows_are_true(result):
    name, solution = next(iter(result.solutions.items()))
    assert result.rows[1].name == name
    assert_allclose(result.rows[1].relative_error, metrics.relative_error(result.M, solution.U))


def test_the_accuracy_is_that_of_the_clusters_drawn(result):
    assert result.clustering.n_clusters_ == 10
    assert result.accuracy == metrics.clustering_accuracy(result.labels, result.clustering.labels_)
    assert result.accuracy > 0.8


def test_the_figure_is_a_page_wide_and_shows_every_model(result, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(demo, "save_figure", lambda figure, path, dpi: drawn.append((figure, dpi)))
    demo.draw_demo(result, tmp_path / "demo.png")
    ((figure, dpi),) = drawn
    assert 1600 <= figure.get_size_inches()[0] * dpi <= 1700
    M, X, errors, clusters, _ = figure.axes  # and the colour bar
    assert "1797 digits" in M.get_title()
    assert "rank 20" in X.get_title()
    expected = [row.relative_error for row in result.rows] + [row.held_out_error for row in result.rows]
    assert_allclose([bar.get_width() for bar in errors.patches], expected)
    assert f"{result.accuracy:.1%}" in clusters.get_title()
    assert sum(len(part.get_offsets()) for part in clusters.collections) == 1797


PNG = b"\x89PNG"


def test_demo(tmp_path, monkeypatch, capsys):
    from symrelu.cli import demo

    monkeypatch.setattr(demo, "ITERATIONS", 15)
    code, out, _ = symrelu(monkeypatch, capsys, "demo", "--output", tmp_path / "demo.png")
    assert code == 0
    assert "truncated eigendecomposition" in out
    assert "parameters for each positive pair" in out
    assert "of the images into the cluster of their digit" in out
    assert (tmp_path / "demo.png").read_bytes()[:4] == PNG
