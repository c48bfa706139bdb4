"""The command ``rank``, run as a user runs it."""

import csv
import json
import shlex
from functools import partial

import pytest
from command_line import symrelu
from numpy.testing import assert_allclose
from scipy import sparse

from symrelu import cli, decompose, metrics, select_rank
from symrelu.fit import selection
from symrelu.solvers import get_solver

INTEGERS = partial(cli.rank._integers, n=7, example="1,2")
PNG = b"\x89PNG"
QUICK = ["--repeats", 2, "--max-iter", 20, "--seed", 0]
SETTINGS = {"n_repeats": 2, "max_iter": 20, "random_state": 0}


def words(text):
    return " ".join(text.split())


def test_scores_are_those_of_select_rank(tmp_path, matrix_file, monkeypatch, capsys, caplog):
    output, plot, mask = tmp_path / "scores.csv", tmp_path / "curve.png", tmp_path / "mask.npz"
    unknown = metrics.random_mask(60, 0.1, random_state=5)
    sparse.save_npz(mask, unknown)
    code, out, _ = symrelu(
        monkeypatch, capsys, "rank", matrix_file, "-o", output, "--plot", plot, "--mask", mask,
        "--ranks", "2,3-4", "--n-negative", "0,1", "--scoring", "auc", "--diagonal", "ignore", *QUICK,
    )  # fmt: skip
    assert code == 0
    expected = select_rank(
        sparse.load_npz(matrix_file),
        [2, 3, 4],
        n_negative=[0, 1],
        scoring="auc",
        diagonal="ignore",
        mask=unknown,
        **SETTINGS,
    )
    with open(output, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, record in zip(rows, expected.records(), strict=True):
        assert row.keys() == record.keys()
        assert_allclose([float(value) for value in row.values()], [float(value) for value in record.values()])
    assert plot.read_bytes()[:4] == PNG
    chosen = expected.chosen
    negative = f" --n-negative {chosen['n_negative']}" if chosen["n_negative"] else ""
    assert f"--rank {chosen['rank']}{negative} --diagonal ignore --max-iter 20 --mask " in words(out)
    assert "chosen" in out
    assert caplog.records[-1].getMessage() == repr(expected), "the progress is shown"


def test_ranks_are_searched_by_default(matrix_file, monkeypatch, capsys):
    code, out, _ = symrelu(monkeypatch, capsys, "rank", matrix_file, "--seed", 0, "--repeats", 2)
    assert code == 0
    assert "--components 3 --n-negative 0 --diagonal fit --output embedding.csv" in words(out)
    assert select_rank(sparse.load_npz(matrix_file), random_state=0, n_repeats=2).chosen["rank"] == 3


def test_fits_without_enough_time_are_counted(matrix_file, call):
    options = ["rank", matrix_file, "--ranks", "2,3", "--repeats", 2]
    assert "had not converged" not in words(call(*options, "--max-iter", 3)[1])
    code, out, _ = call(*options, "--max-time", 1e-9)
    assert code == 0
    assert "4 of 4 fits had not converged when their time" in words(out)
    assert json.loads(call(*options, "--max-time", 1e-9, "--json")[1])["converged"] == 0


def test_an_interrupt_shows_what_is_known(tmp_path, matrix_file, monkeypatch, capsys):
    fits = []

    def interrupted(*arguments):
        fits.append(arguments)
        if len(fits) > 3:
            raise KeyboardInterrupt
        return 0.5, True

    monkeypatch.setattr(selection, "_fit_and_score", interrupted)
    output = tmp_path / "scores.csv"
    code, out, _ = symrelu(monkeypatch, capsys, "rank", matrix_file, "--ranks", "2,3", "-o", output, *QUICK)
    assert code == 130
    assert "Interrupted after 3 fits" in words(out)
    assert len(output.read_text().splitlines()) == 3


def test_an_interrupt_before_the_first_score(tmp_path, matrix_file, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(selection, "_fit_and_score", interrupted)
    output = tmp_path / "scores.csv"
    code, _, err = symrelu(monkeypatch, capsys, "rank", matrix_file, "-o", output)
    assert code == 130
    assert "Interrupted: nothing was written" in words(err)
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npz"], "The file missing.npz does not exist"),
        (["matrix.npz", "--ranks", "0"], "ranks must be an integer from 1 to 60"),
        (["matrix.npz", "--ranks", "2;3"], "--ranks must be integers such as 2,4,8 or 6-14, got '2;3'"),
        (["matrix.npz", "--ranks", ""], "--ranks must be integers such as 2,4,8 or 6-14, got ''"),
        (
            ["matrix.npz", "--ranks", "1,5-3"],
            "--ranks must have ranges from a smaller to a larger number, got '5-3'. Pass 3-5.",
        ),
        (
            ["matrix.npz", "--ranks", "1-1000000000000000"],
            "--ranks must have ranges up to 60, the number of rows, got '1-1000000000000000'. Pass smaller",
        ),
        (
            ["matrix.npz", "--n-negative", "0-1000000000000000"],
            "--n-negative must have ranges up to 60",
        ),
        (["matrix.npz", "--ranks", "2.5"], "--ranks must be integers"),
        (["matrix.npz", "--ranks", "auto"], "--ranks must be integers"),
        (
            ["matrix.npz", "--n-negative", "few"],
            "--n-negative must be integers such as 0,1 or 0-3, or auto, got 'few'",
        ),
        (["matrix.npz", "--n-negative=-1"], "--n-negative must be an integer from 0 to 59"),
        (["matrix.npz", "--alpha", "1-3"], "--alpha must be numbers such as 0,0.05, got '1-3'"),
        (["matrix.npz", "--zero-weight", "auto"], "--zero-weight must be numbers such as 0.1,1, got 'auto'"),
        (["matrix.npz", "--alpha=-1e-3"], "alpha must be a finite number >= 0"),
        (["matrix.npz", "--scoring", "r2"], "scoring must be one of"),
        (["matrix.npz", "--jobs", "0"], "--jobs must be an integer other than 0"),
        (["matrix.npz", "--solver", "aapb", "--memory", "3"], "--memory is not an option of the solver 'aapb'"),
        (["matrix.npz", "-o", "no/x.csv"], "/no does not exist. Create it"),
        (["matrix.npz", "--plot", "no/x.png"], "/no does not exist. Create it"),
        (["matrix.npz", "-o", "matrix.npz"], "must be different files"),
    ],
)
def test_errors(matrix_file, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(matrix_file.parent)
    monkeypatch.setattr(selection, "_fit_and_score", lambda *_: pytest.fail("work began before the check"))
    code, _, err = symrelu(monkeypatch, capsys, "rank", *arguments)
    assert code == 2
    assert message in words(err)


@pytest.mark.parametrize(
    ("parse", "text", "values"),
    [
        (INTEGERS, "2", [2]),
        (INTEGERS, "2, 4,8", [2, 4, 8]),
        (INTEGERS, "1,3-5,7-7", [1, 3, 4, 5, 7]),
        (partial(INTEGERS, words=("auto",)), "0,auto", [0, "auto"]),
        (partial(cli.rank._numbers, example="0,1"), "0,1e-3,.5", [0.0, 1e-3, 0.5]),
    ],
)
def test_lists_of_numbers(parse, text, values):
    found = parse("--x", text)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--seed", 3, "--init", "random"],
        ["--support", "at_least", "--mask", "my mask.npz", "--solver", "palm"],
        ["--solver", "aapb", "--step-size", 0.5, "--safeguard", "--tol", 0.01, "--max-iter", 7, "--ftol", 1e-3],
        ["--solver", "aapb", "--no-safeguard", "--max-iter", 7, "--ftol", 1e-3],
        ["--n-negative", "auto", "--alpha", 0.1, "--zero-weight", 0.5, "--diagonal", "auto"],
    ],
)
def test_the_next_command_makes_the_chosen_fit(matrix_file, monkeypatch, capsys, arguments):
    """issue 15: settings, the mask and quotes were left out, so the command made another fit or none."""
    monkeypatch.chdir(matrix_file.parent)
    matrix_file.rename("my graph.npz")
    sparse.save_npz("my mask.npz", metrics.random_mask(60, 0.1, random_state=5))
    calls = []

    def recorded(problem, rank, **settings):
        calls.append((problem.mask, {"rank": rank, **settings}))
        return decompose(problem, rank, **settings)

    monkeypatch.setattr(selection, "decompose", recorded)
    monkeypatch.setattr(cli.fit, "decompose", recorded)
    monkeypatch.setattr("symrelu.estimators.base.decompose", recorded)
    options = ["--ranks", 2, "--repeats", 2, *arguments]
    code, out, _ = symrelu(monkeypatch, capsys, "rank", "my graph.npz", *options)
    assert code == 0
    command = shlex.split(out.partition("Next: ")[2])
    only_fit = {"--mask", "--step-size", "--no-safeguard", "--alpha"} & set(arguments)
    assert command[:3] == ["symrelu", "fit" if only_fit else "embed", "my graph.npz"]
    assert symrelu(monkeypatch, capsys, *command[1:])[0] == 0
    (_, compared), _, (mask, settings) = calls
    assert settings["random_state"] == (3 if "--seed" in arguments else 0)
    assert (mask is not None) == ("--mask" in arguments)
    own = {"random_state", "callback", "checkpoint", "verbose"}
    settings["solver"] = get_solver(settings["solver"])
    if "--max-iter" not in arguments:
        own |= {"max_iter", "ftol"}  # a selection stops its fits early
    if command[1] == "embed":
        own.add("tol")  # its default is lower
    assert {name: value for name, value in settings.items() if name not in own} == {
        name: value for name, value in compared.items() if name not in own
    }
