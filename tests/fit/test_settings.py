"""The settings as values, their table, and what is made of it: docstrings and options of the command line."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from pathlib import Path

import numpy as np
import pytest

import symrelu
from symrelu import AAPB, LBFGS, PALM, Checkpoint
from symrelu.fit.docstrings import read_parameters
from symrelu.fit.settings import (
    TABLE,
    VALUES,
    Limits,
    Model,
    Run,
    Start,
    describe,
    documented,
    pick,
    setting,
    values_of,
)
from symrelu.fit.starts import STARTS
from symrelu.operators import BACKENDS
from symrelu.solvers import SOLVERS

typer = pytest.importorskip("typer")

from typer.testing import CliRunner  # noqa: E402

from symrelu.cli.options import chosen_settings, fit_options, with_options  # noqa: E402

DEFAULTS = {entry.name: entry.default for value in VALUES for entry in fields(value)}


class Nameless:
    """A solver whose repr tells nothing."""

    def init(self, op, U0): ...

    def step(self, op, state): ...


# ---------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    "value", [Model(rank=2), Start(), Limits(), Run()], ids=lambda value: type(value).__name__
)
def test_values_are_frozen(value):
    for entry in fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, entry.name, None)


def test_keywords_become_values():
    keywords = {"M": None, "rank": 3, "tol": 0.1, "init": "random", "verbose": 1, "threads": 2}
    model, start, limits, run = values_of(keywords)
    assert (model, limits) == (Model(rank=3), Limits(tol=0.1))
    assert (start.init, start.random_state, run.verbose, run.backend) == ("random", None, 1, "auto")


@pytest.mark.parametrize(
    ("value", "given", "error", "message"),
    [
        (Model, {"n_negative": "some"}, ValueError, "n_negative must be 'auto' or an integer, got 'some'"),
        (
            Model,
            {"diagonal": "keep"},
            ValueError,
            "diagonal must be one of 'fit', 'ignore', 'auto', got 'keep'",
        ),
        (Model, {"support": "most"}, ValueError, "support must be one of 'equal', 'at_least', got 'most'"),
        (Model, {"zero_weight": 0}, ValueError, r"zero_weight must be a number in \(0, 1\], got 0"),
        (Model, {"zero_weight": None}, TypeError, r"zero_weight must be a number in \(0, 1\], got None"),
        (Model, {"alpha": -1}, ValueError, "alpha must be a finite number >= 0, got -1"),
        (Model, {"alpha": True}, TypeError, "alpha must be a finite number >= 0, got True"),
        (Start, {"init": "svd"}, ValueError, "init must be one of 'random', .* got 'svd'"),
        (Start, {"random_state": -1}, ValueError, "random_state must be None, a nonnegative integer"),
        (Start, {"random_state": "x"}, TypeError, "random_state must be None, a nonnegative integer"),
        (Limits, {"tol": -1.0}, ValueError, "tol must be a finite number >= 0, got -1.0"),
        (Limits, {"gtol": np.nan}, ValueError, "gtol must be a finite number >= 0, got nan"),
        (Limits, {"ftol": "small"}, TypeError, "ftol must be a finite number >= 0, got 'small'"),
        (Limits, {"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
        (Limits, {"max_time": 0}, ValueError, "max_time must be a finite number > 0, got 0"),
        (Run, {"solver": "best"}, ValueError, "solver must be one of 'aapb', .* got 'best'"),
        (Run, {"solver": AAPB}, TypeError, r"solver must be an instance, got the class AAPB"),
        (Run, {"backend": "gpu"}, ValueError, "backend must be one of 'auto', .* got 'gpu'"),
        (Run, {"callback": 3}, TypeError, "callback must be callable or None, got int"),
        (Run, {"checkpoint": 3}, TypeError, "checkpoint must be the name of a file, a symrelu.Checkpoint"),
        (Run, {"checkpoint": "no/such/folder"}, FileNotFoundError, "does not exist. Create it"),
        (Run, {"verbose": -1}, ValueError, "verbose must be an integer of at least 0, got -1"),
        (Run, {"checkpoint": "c", "solver": Nameless()}, ValueError, "A checkpoint needs a solver whose repr"),
    ],
)
def test_values_are_checked(value, given, error, message):
    with pytest.raises(error, match=message):
        value(**({"rank": 2} if value is Model else {}), **given)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"rank": 6}, ValueError, r"^rank must be an integer from 1 to 5 \(the size of M\), got 6\.$"),
        (
            {"rank": 0},
            ValueError,
            r"^rank must be an integer of at least 1 \(and at most the size of M\), got 0\.$",
        ),
        ({"rank": 2.0}, TypeError, "rank must be an integer of at least 1 .* got 2.0"),
        (
            {"rank": 2, "n_negative": 2},
            ValueError,
            r"n_negative must be an integer from 0 to 1 \(rank - 1, since",
        ),
        ({"rank": 2, "n_negative": None}, TypeError, "n_negative must be an integer .* or 'auto', got None"),
    ],
)
def test_a_model_is_checked_against_the_size_of_the_matrix(given, error, message):
    with pytest.raises(error, match=message):
        Model(**given).for_size(5)


def test_a_model_of_a_size_is_plain():
    model = Model(rank=np.int64(3), n_negative=np.int8(1), alpha=1, zero_weight=np.float32(0.5)).for_size(5)
    assert model == Model(rank=3, n_negative=1, alpha=1.0, zero_weight=0.5)
    assert [type(value) for value in vars(model).values()] == [int, int, str, float, str, float]
    assert Model(rank=3, n_negative="auto").for_size(5).n_negative == "auto"


def test_a_start_is_made_for_a_factor():
    given = [[1, 2], [3, 4]]
    begin = Start(init=given).for_factor(2, 2, np.dtype(np.float32), largest=1.0)
    assert begin.init.dtype == np.float32
    assert begin.identity == {**begin.identity, "random_state": None, "init": "an array"}
    assert len(begin.identity["starting factor"]) == 64
    with pytest.raises(ValueError, match=r"init must have shape \(n, rank\) = \(3, 2\), got \(2, 2\)"):
        Start(init=given).for_factor(3, 2, np.dtype(np.float64), largest=1.0)
    assert Start().for_factor(3, 2, np.dtype(np.float64), largest=1.0).init == "imputed"


@pytest.mark.parametrize(
    ("seed", "told"), [(None, None), (np.int32(3), 3), (np.random.default_rng(0), "a generator")]
)
def test_a_start_is_known_by_its_seed(seed, told):
    identity = Start(random_state=seed, init="random").identity
    assert identity == {"random_state": told, "init": "random", "starting factor": None}


def test_a_run_holds_what_it_was_given_as_what_it_is(tmp_path):
    how = Run(solver="palm", checkpoint=tmp_path / "c", verbose=True)
    assert (how.solver, how.checkpoint, how.verbose) == (PALM(), Checkpoint(tmp_path / "c"), 1)
    again = replace(how)
    assert again.solver is how.solver
    assert again.checkpoint == how.checkpoint


def test_fields_are_picked_by_name():
    given = {"tol": 0.1, "alpha": 1.0, "n_init": 3}
    assert pick(Limits, given) == {"tol": 0.1}
    assert pick(Model, given) == {"alpha": 1.0}


# ---------------------------------------------------------------------------------- one table


def test_each_setting_is_in_one_value():
    assert len(TABLE) == sum(len(fields(value)) for value in VALUES)


def test_decompose_takes_the_settings_and_the_data():
    parameters = inspect.signature(symrelu.decompose).parameters
    assert set(parameters) == {*TABLE, "M", "mask"}


OTHER_DEFAULTS = {
    "SymReLU": {"n_negative": "auto", "diagonal": "auto", "alpha": None, "tol": 1e-6},
    # None where the default depends on the method.
    "SymReLUClustering": {
        **{"n_negative": 1, "diagonal": "ignore"},
        **dict.fromkeys(("alpha", "zero_weight", "init", "max_iter")),
    },
    "LinkPredictor": {"n_negative": 1, "alpha": None, "zero_weight": 0.1, "init": "random", "max_iter": 20},
    "CudaOperator": {"precision": "high"},  # a fit chooses between its two kernels
    "symmetric_nmf": {"init": None, "gtol": 1e-6},
    "three_block_nmd": {"init": None, "gtol": 1e-6},
    "truncated_eigen": {"random_state": 0},  # its result hardly depends on it
    # A picture should not change when it is drawn again.
    **{name: {"random_state": 0} for name in ("planar_map", "plot_map", "plot_link_scores", "write")},
    # Steps are cheap in a search that ends as soon as all pairs are right.
    "NeighborEmbedding": {"n_negative": 1, "max_iter": 3000},
    "Goal": {"rank": None, "max_iter": 3000},
    "search_neighbors": {"n_negative": 1},
    "logistic_pca": {"diagonal": "ignore", "init": None, "gtol": 1e-5, "ftol": 2.22e-9, "max_iter": 2000},
    "ReluFit": {"init": "random"},  # the paper's
    "aapb": {"init": "random"},
}


def public_signatures():
    for module in pkgutil.walk_packages(symrelu.__path__, "symrelu."):
        if module.name.startswith("symrelu.cli"):  # options have the defaults of the estimators they set
            continue
        for name, thing in vars(importlib.import_module(module.name)).items():
            is_ours = getattr(thing, "__module__", None) == module.name and not name.startswith("_")
            if is_ours and (inspect.isfunction(thing) or inspect.isclass(thing)):
                with suppress(ValueError):  # an enumeration has none
                    yield name, inspect.signature(thing).parameters


def test_defaults_stand_in_one_place():
    pytest.importorskip("torch")  # its operator is among the modules
    others, same = {}, set()
    for name, parameters in public_signatures():
        for parameter in parameters.values():
            if parameter.name in DEFAULTS and parameter.default is not parameter.empty:
                if parameter.default == DEFAULTS[parameter.name]:
                    same.add(name)
                else:
                    others.setdefault(name, {})[parameter.name] = parameter.default
    assert others == OTHER_DEFAULTS
    assert {"decompose", "select_rank", "SymReLU", "LinkPredictor", "symmetric_nmf", "as_operator"} <= same


@pytest.mark.parametrize(("name", "choices"), [("solver", SOLVERS), ("backend", BACKENDS), ("init", STARTS)])
def test_choices_are_those_of_the_registries(name, choices):
    told = TABLE[name]
    for choice in choices:
        assert f'"{choice}"' in told.kind
        assert not told.brief or repr(choice) in told.brief


# ---------------------------------------------------------------------------------- docstrings


def test_a_docstring_is_completed():
    @documented
    def fit(M, rank, *, tol=1e-6, max_time=None, alpha=0.5, gtol=0.0, init="random", **others):
        """Fit.

        With words before.

        Parameters
        ----------
        M : matrix
            Of any kind.

            With a second paragraph.
        tol : setting
            Lower than
            elsewhere.
        alpha : float
            Literal.
        **others
            The rest.

        Returns
        -------
        nothing
        """

    assert fit.__doc__ == inspect.cleandoc(
        """Fit.

        With words before.

        Parameters
        ----------
        M : matrix
            Of any kind.

            With a second paragraph.
        rank : int
            Number of columns of U, from 1 to n.
        tol : float, default=1e-6
            Stop when relative_error <= tol. 0 disables this test; the same holds for gtol and ftol. Lower than
            elsewhere.
        max_time : float, optional
            Time limit for the steps in seconds. Compilation is not counted.
        alpha : float
            Literal.
        gtol : float, default=0.0
            Stop when the norm of the gradient is at most gtol (2 ||M|| + alpha) ||U||.
        init : {"imputed", "multilevel", "random", "spectral", "uniform"} or array of shape (n, rank), default="random"
            Starting factor. "imputed" takes the leading eigenvectors of M with its zeros replaced by a negative number,
            "spectral" those of M itself (both by a dense eigendecomposition if the rank is n / 2 or more); "random" is
            normally distributed and scaled to M, "uniform" draws from [0, 1) and is scaled likewise. "multilevel", for
            large sparse graphs, fits smaller matrices first, in which similar items are merged; if M is small already,
            it is the same as "imputed".
        **others
            The rest.

        Returns
        -------
        nothing
        """  # noqa: E501
    )


def test_a_class_without_a_section_of_parameters_gets_one():
    @documented
    class Estimator:
        """Estimate.

        Examples
        --------
        None.
        """

        def __init__(self, alpha=0.25): ...

    assert Estimator.__doc__.splitlines()[1:8] == [
        "",
        "Parameters",
        "----------",
        "alpha : float, default=0.25",
        "    Weight of the Tikhonov penalty on U (the paper's lambda).",
        "",
        "Examples",
    ]


def test_several_parameters_may_share_an_entry():
    @documented
    def measure(U, V, tol=Limits.tol):
        """Measure.

        Parameters
        ----------
        U, V : array
            Factors.
        """

    lines = measure.__doc__.splitlines()
    assert lines[4:7] == ["U, V : array", "    Factors.", "tol : float, default=1e-4"]


def undescribed(M, tol=1e-4):
    """Fit."""


def unknown(colour=1):
    """Fit.

    Parameters
    ----------
    colour : setting
        As it comes.
    """


def superfluous(tol=1e-4):
    """Fit.

    Parameters
    ----------
    size : int
    """


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (
            undescribed,
            "The docstring of undescribed leaves 'M' to symrelu.fit.settings, which does not describe it",
        ),
        (unknown, "The docstring of unknown leaves 'colour' to symrelu.fit.settings"),
        (superfluous, "The docstring of superfluous describes 'size', which is not a parameter"),
    ],
)
def test_what_nobody_describes_is_refused(thing, message):
    with pytest.raises(TypeError, match=message):
        documented(thing)


def test_estimators_name_the_shape_of_a_start_by_their_own_parameter():
    entries = read_parameters(symrelu.SymReLU.__doc__)
    assert "array of shape (n, n_components)" in entries["init"].kind
    assert entries["tol"].kind == "float, default=1e-6"
    assert " ".join(entries["tol"].lines).startswith(TABLE["tol"].text)


def test_without_docstrings():
    program = """
import sys
from symrelu import cli, decompose

assert decompose.__doc__ is None
sys.argv = ["symrelu", "fit", "--help"]
cli.main()
"""
    result = subprocess.run([sys.executable, "-OO", "-c", program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "--step-size" in result.stdout


# ---------------------------------------------------------------------------------- the command line


@dataclass(frozen=True, kw_only=True)
class Coloured(Model):
    """A model with one setting more."""

    colour: int | str = setting(
        3, kind="int or str", text="Colour of the factor, of no use.", brief="Colour of the factor."
    )
    silent: float = setting(1.0, kind="float", text="Not for the command line.", brief="")
    shade: float = setting(1.0, kind="float", text="Shade of the colour. From 0 to 1.")


EXTENDED = (Coloured, Start, Limits, Run)


def test_a_new_setting_is_described_in_docstrings():
    def fit(rank, colour=7, silent=2.0):
        """Fit."""

    entries = read_parameters(documented(fit, describe(EXTENDED)).__doc__)
    assert entries["colour"] == (("colour",), "int or str, default=7", ("Colour of the factor, of no use.",))
    assert "silent" in entries


def run_command(*arguments, values=EXTENDED):
    """Return what a command with the options of these values gets, and what it prints."""
    app, received = typer.Typer(), {}

    @app.command()
    @with_options(fit_options(values))
    def fit(output: Path, plot: Path | None = None, **options):
        received.update(chosen_settings(options, describe(values)), output=output, plot=plot)

    return received, CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def test_a_new_setting_is_an_option():
    received, result = run_command("out", "-r", 3, "--colour", "red")
    assert result.exit_code == 0, result.output
    assert received["colour"] == "red"
    assert run_command("out", "-r", 3, "--colour", "12")[0]["colour"] == 12
    assert run_command("out", "-r", 3)[0]["colour"] == 3
    shown = run_command("--help")[1].output
    assert "--colour" in shown
    assert "Colour of the factor." in shown
    assert "Shade of the colour." in shown
    assert "From 0 to 1" not in shown
    assert "silent" not in shown


def test_what_the_options_say_by_default_is_what_decompose_does():
    received, result = run_command("out", "--rank", 3, values=VALUES)
    assert result.exit_code == 0, result.output
    assert {name: received.pop(name) for name in ("output", "plot", "rank", "solver")} == {
        "output": Path("out"),
        "plot": None,
        "rank": 3,
        "solver": LBFGS(),
    }
    assert received.pop("random_state") == 0  # a command gives the same result every time
    assert received == {name: DEFAULTS[name] for name in received}
    assert set(TABLE) - set(received) - {"random_state"} == {"rank", "solver", "callback", "verbose"}


def test_required_options_come_first():
    parameters = fit_options()
    assert parameters[0].name == "rank"
    received, result = run_command("--rank", 3)
    assert result.exit_code == 2
    assert not received


@dataclass(frozen=True)
class Newton:
    """Newton's method.

    Parameters
    ----------
    damping : float, default=0.5
        Part of a step that is taken. The rest is not.
    memory : int, default=10
        Of no use.
    """

    damping: float = 0.5
    memory: int = 10

    init = step = print


def test_a_new_solver_brings_its_options(monkeypatch):
    monkeypatch.setitem(SOLVERS, "newton", Newton)
    received, result = run_command("out", "-r", 3, "--solver", "newton", "--damping", 0.25, "--memory", 2)
    assert result.exit_code == 0, result.output
    assert received["solver"] == Newton(damping=0.25, memory=2)
    options = {parameter.name: parameter.annotation.__metadata__[0].help for parameter in fit_options()}
    assert options["damping"] == "(newton only) Part of a step that is taken. Default: 0.5."
    assert options["memory"].startswith("(lbfgs and newton only) Number of past steps to keep")
    _, result = run_command("out", "-r", 3, "--solver", "palm", "--damping", 0.25)
    assert "--damping is not an option of the solver 'palm'. Leave it out, or pass --solver newton." in str(
        result.exception
    )


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({"tol": -1.0}, ValueError, "tol must be a finite number >= 0, got -1.0"),
        ({"tol": float("nan")}, ValueError, "tol must be a finite number >= 0, got nan"),
        ({"gtol": -1e-9}, ValueError, "gtol must be"),
        ({"ftol": "small"}, TypeError, "ftol must be a finite number >= 0, got 'small'"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1, got 0"),
        ({"max_iter": -3}, ValueError, "max_iter must be an integer of at least 1, got -3"),
        ({"max_iter": 10.0}, TypeError, "max_iter must be an integer of at least 1, got 10.0"),
        ({"max_time": 0}, ValueError, "max_time must be a finite number > 0, got 0"),
        ({"max_time": -1}, ValueError, "max_time must be a finite number > 0, got -1"),
    ],
)
def test_limits_are_checked(limits, error, message):
    with pytest.raises(error, match=message):
        Limits(**limits)
