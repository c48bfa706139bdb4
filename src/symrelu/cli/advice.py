"""Advice in words of the command line: what a message says of Python arguments, said of options.

The messages of the library name arguments of functions, because most users call it from Python. Here they are
put into words of the command that was called, by a rule for all options and a few phrases.
"""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from symrelu.cli.commands import COMMANDS, load_command
from symrelu.fitted.history import Status

if TYPE_CHECKING:
    from symrelu.fit.memory_check import Refusal

_OTHER_MODEL = ", another --seed or --init, or --diagonal ignore --n-negative 1."

# Status -> sentences. One that names an option is left out if the command does not have it.
_ADVICE: dict[Status, tuple[str, ...]] = {
    Status.TOLERANCE: ("The requested accuracy was reached.", "Pass a lower --tol for a closer fit."),
    Status.GRADIENT: (
        "The factor is stationary.",
        f"If the error is too high, pass a larger --rank{_OTHER_MODEL}",
        "If the error is too high, pass more --components or another --seed.",
        "Pass a lower --gtol to continue.",
    ),
    Status.PLATEAU: (
        "Further steps of this solver change little.",
        f"If the error is too high, pass a larger --rank{_OTHER_MODEL}",
        "If the error is too high, pass more --components or another --seed.",
        "Pass --ftol 0 to continue.",
    ),
    Status.ROUNDING: (
        "The entries of X are small differences of large products, which are not exact enough.",
        "Store the matrix in float64; if it already is, pass a larger --rank, or an --alpha above 0.",
        "Store the matrix in float64; if it already is, pass more --components, or a --shrinkage above 0.",
    ),
    Status.VANISHED: (
        "U = 0 is a stationary point for every matrix.",
        "Pass a lower --alpha; if it is 0, another --seed or --init.",
        "Pass a lower --shrinkage; if it is 0, another --seed.",
    ),
    Status.MAX_ITER: (
        "The fit used all its steps.",
        "Pass a larger --max-iter.",
        "With --checkpoint FILE, a fit can continue where it stopped.",
        "Or accept a looser fit with a larger --gtol or --ftol.",
    ),
    Status.MAX_TIME: (
        "The fit used all its time.",
        "Pass a larger --max-time.",
        "With --checkpoint FILE, a fit can continue where it stopped.",
    ),
    Status.CALLBACK: ("The fit was asked to stop.", "Run the command again to continue."),
    Status.INTERRUPTED: (
        "The best factor so far was kept.",
        "With --checkpoint FILE, a fit can continue where it stopped.",
    ),
    Status.NON_FINITE: (
        "The best finite factor was kept.",
        "With --solver aapb, pass a lower --step-size: it is safe up to 1.",
        "Otherwise pass another --init.",
    ),
}

# Argument in Python -> options that may stand for it, if the command has none with its name.
_OTHER_NAMES = {
    "n_components": ("components", "rank", "ranks"),
    "random_state": ("seed",),
    "n_clusters": ("clusters",),
    "n_splits": ("splits",),
    "n_repeats": ("repeats",),
    "n_jobs": ("jobs",),
    "n_init": ("fits",),
    "k": ("top",),
}

# Values that have other words here.
_WORDS = {
    ("header", "True"): "yes",
    ("header", "False"): "no",
    ("weight", "None"): "none",
    ("n_clusters", "None"): "auto",
    ("n_components", "None"): "auto",
}

# Phrases of messages that no option stands for. They refer to objects that a user of a command does not see.
_PHRASES = (
    (re.compile(r"^\w+\(.*?\) stopped before convergence"), "The fit stopped before convergence"),
    (re.compile(r" relative_error_ and history_ show how far it got\."), ""),
    (re.compile(r"\brelative_error\b(?!_)"), "the relative error"),
    (re.compile(r"^(n_clusters must be .*) or None, got"), r"\1 or 'auto', got"),
    (re.compile(r'duplicates="sum", directed="sum"'), 'duplicates="sum" directed="sum"'),  # to be copied
    (re.compile(r" Pass indices, or fit a graph with names: .*"), ""),
    (re.compile(r"\bM in float32\b"), "a FILE in float32"),
    (re.compile(r"\ba smaller rank \(at most (\d+)\)"), r"n_components=\1 or less"),
    (re.compile(r"\bsolver=LBFGS\((memory=\d+)\)"), r"\1"),
)

# Phrases on backends, for commands without --backend.
_ON_BACKENDS = (
    (re.compile(r"\bbackend='(\w+)' was chosen"), r"the backend \1 was chosen"),
    (re.compile(r"\. Pass backend='\w+' to visit all pairs\."), "."),
)

# What a remedy changes -> options of which a command has one if it can change that. All commands that read a
# FILE have --header.
_CHANGED_BY = {"rank": ("rank", "ranks", "n_components"), "M": ("header",)}

# What is said of a matrix -> the same of a file. {mask} is there if the command has --mask.
_OF_A_FILE = (
    (
        re.compile(r"^(must (?:not contain NaN|be finite, without infinity)): (entry .+? is \S+)\. .*"),
        r"\1, but \2. Replace it by a number in the file{mask}.",
    ),
    (
        re.compile(r"^(must be nonnegative): (entry .+? is \S+)\. .*"),
        r"\1, but \2. Replace negative entries in the file by 0, or by their absolute values, whichever is "
        "intended.",
    ),
    (
        re.compile(r"^(must be symmetric): \S+ - \S+ reaches (\S+) at \((\d+), (\d+)\)\. .*"),
        r"\1, but entries (\3, \4) and (\4, \3) differ by \2. Pass --directed max to keep the larger, 'sum' to "
        "add them, or 'mean' to average them.",
    ),
)

_FLAG = re.compile(r"--[a-z][a-z-]*")
# A value in a call: "text", 'text', a number or a word. Dots alone stand for any value.
_VALUE = r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<any>\.\.\.)|(?P<plain>[\w+-][\w.+-]*(?<![.])))?"""
# Not in file names, attributes or quoted names, and not an attribute of a fitted estimator, which ends in _.
_BEFORE, _AFTER = r"(?<![\w./\\\-'\"=(])", r"(?![\w=(/\\'\"-]|\.\w)"


def advice_of(
    status: Status,
    flags: Collection[str] | None = None,
    *,
    level: int = 0,
    resumes: bool = False,
    used: float = 1,
    signed: bool = False,
) -> str:
    """Return what to try next after a fit, in words of a command.

    Parameters
    ----------
    status : Status
    flags : collection of str, optional
        The options of the command, by default of the one that was called.
    level : int, default=0
        The level at which a multilevel start was stopped, before the matrix itself was fitted.
    resumes : bool, default=False
        Whether the fit has a checkpoint, from which :func:`following` resumes it.
    used : float, default=1
        How many steps or seconds the whole fit took, whichever it was limited to.
    signed : bool, default=False
        Whether the model has negative columns and ignores the diagonal already.

    Returns
    -------
    advice : str
    """
    known = set(current_flags().values() if flags is None else flags)
    first, *others = _ADVICE[status]
    if level:
        first = (
            "The factor was fitted to a smaller matrix and only scaled to M: it is a guess. Give it more time."
        )
    if resumes and status in _CAN_RESUME:
        further = [text for text in others if text.startswith("Or ")]
        others = [_CAN_RESUME[status].format(used=used), *further]
        known |= _LIMITS.keys()
    said = " ".join([first, *(text for text in others if known.issuperset(_FLAG.findall(text)))])
    return said.replace(_OTHER_MODEL, " or another --seed or --init.") if signed else said


# Statuses of fits that have not ended by themselves -> what to do if there is a checkpoint.
_CAN_RESUME = {
    Status.MAX_ITER: (
        "It can be resumed from its checkpoint with a larger --max-iter, which counts the steps of all runs: "
        "{used} so far."
    ),
    Status.MAX_TIME: (
        "It can be resumed from its checkpoint with a larger --max-time, which counts the seconds of all runs: "
        "{used:.2f} so far."
    ),
    Status.CALLBACK: "It can be resumed from its checkpoint.",
    Status.INTERRUPTED: "It can be resumed from its checkpoint.",
}
_LIMITS = {"--max-iter": Status.MAX_ITER, "--max-time": Status.MAX_TIME}


def following(status: Status, checkpoint: Path | None, used: float = 1) -> list[str] | None:
    """Return the words of the command that resumes a fit that was stopped, if it has a checkpoint.

    ``symrelu fit`` is resumed by ``symrelu resume``, and every other command by itself. The limit that ended
    the fit counts what was done before: it becomes twice what the fit took, in whole seconds or steps.

    Parameters
    ----------
    status : Status
    checkpoint : Path or None
    used : float, default=1
        As for :func:`advice_of`.

    Returns
    -------
    command : list of str, or None
    """
    if checkpoint is None or status not in _CAN_RESUME:
        return None
    limit = [
        word for flag, ended in _LIMITS.items() if ended is status for word in (flag, str(2 * math.ceil(used)))
    ]
    called = sys.argv[1:]
    if called[:1] == ["fit"]:
        return ["symrelu", "resume", str(checkpoint), *limit]
    return ["symrelu", *_with_limit(called, limit)]


def _with_limit(words: list[str], limit: list[str]) -> list[str]:
    """Return the words of a call with another limit, a flag and its value, in place of the one that it has."""
    if not limit:
        return words
    flag = limit[0]
    end = words.index("--") if "--" in words else len(words)  # no options follow it
    for place, word in enumerate(words[:end]):
        if word == flag:
            return [*words[:place], *limit, *words[place + 2 :]]
        if word.startswith(f"{flag}="):
            return [*words[:place], *limit, *words[place + 1 :]]
    return [*words[:end], *limit, *words[end:]]


def stopped_early(status: Status, max_iter: int | None, usual: int) -> bool:
    """Return whether a fit ended before the number of steps that usually ends it.

    Parameters
    ----------
    status : Status
    max_iter : int or None
        The limit of steps, if it was given.
    usual : int
        The limit if none is given.
    """
    if status is Status.MAX_ITER:
        return max_iter is not None and max_iter < usual
    return not status.converged and status is not Status.ROUNDING


def for_command_line(text: str, flags: Mapping[str, str] | None = None) -> str:
    """Return a message of the library with options in place of the arguments of functions.

    Parameters
    ----------
    text : str
    flags : mapping of str to str, optional
        The flag of each option of the command, by the name of its parameter. By default those of the command
        that was called.

    Returns
    -------
    text : str
        What is not an option of the command stays as it is.
    """
    flags = current_flags() if flags is None else flags
    for status in Status:
        for advice in (status.advice, status.advice.replace("alpha", "shrinkage")):
            text = text.replace(advice, advice_of(status, flags.values()))
    for pattern, words in (*_PHRASES, *(() if "backend" in flags else _ON_BACKENDS)):
        text = pattern.sub(words, text)
    names = sorted({*flags, *_OTHER_NAMES}, key=len, reverse=True)
    # What the user has typed, such as the file rank=3.csv, is no argument of a function.
    typed = [word for word in sys.argv[1:] if word[:1] != "-" and any(name in word for name in names)]
    for k, word in enumerate(typed):
        text = text.replace(word, f"\0{k}\0") if "=" in word or "_" in word else text
    for name in names:
        flag = _flag_for(name, flags)
        if flag is not None:
            text = _with_flag(text, name, flag)
    for k, word in enumerate(typed):
        text = text.replace(f"\0{k}\0", word)
    return text


def refusal_in_options(refusal: Refusal, flags: Mapping[str, str] | None = None) -> Refusal:
    """Return why a fit is refused, with those remedies alone that the command has, in its options.

    Parameters
    ----------
    refusal : Refusal
    flags : mapping of str to str, optional
        As for :func:`for_command_line`.

    Returns
    -------
    refusal : Refusal
    """
    flags = current_flags() if flags is None else flags
    changed = {name for name, options in _CHANGED_BY.items() if not flags.keys().isdisjoint(options)}
    possible = refusal.within(flags.keys() | changed)
    remedies = (one._replace(text=for_command_line(one.text, flags)) for one in possible.remedies)
    return replace(possible, remedies=tuple(remedies))


def about_file(text: str, file: Path, flags: Mapping[str, str] | None = None) -> str:
    """Return what the library says of a matrix as a message on the file that it was read from.

    Parameters
    ----------
    text : str
    file : Path
    flags : mapping of str to str, optional
        As for :func:`for_command_line`. Only a command with ``--mask`` is told to pass one.

    Returns
    -------
    text : str
        A message on something else stays as it is.
    """
    found = re.match(r"[MX] (?=must )", text)
    if found is None:
        return text
    flags = current_flags() if flags is None else flags
    mask = ", or mark it as unobserved with --mask FILE" if "mask" in flags else ""
    said = text[found.end() :]
    for pattern, words in _OF_A_FILE:
        said = pattern.sub(words.replace("{mask}", mask), said)
    return f"{file}: The matrix {said}"


def _with_flag(text: str, name: str, flag: str) -> str:
    """Return a text with a flag in place of an argument of a function."""

    def option(match: re.Match[str]) -> str:
        groups = match.groupdict()
        value = next((groups[kind] for kind in ("double", "single", "plain") if groups[kind] is not None), None)
        if value is None:
            return flag
        return f"{flag} {shlex.quote(_WORDS.get((name, value), value))}"

    # Also as the last argument of a call: SymReLU(affinity='self_tuning').
    text = re.sub(rf"{_BEFORE}\b\w+\(\w+, {name}={_VALUE}\)", option, text)
    text = re.sub(rf"{_BEFORE}\b\w+\({name}={_VALUE}\)(?<!\.\.\.\))", option, text)
    text = re.sub(rf"{_BEFORE}\b{name}={_VALUE}", option, text)
    # A plain word is an argument if it cannot be anything else: it has an underscore, or begins a requirement.
    if "_" in name:
        text = re.sub(rf"{_BEFORE}\b{name}\b{_AFTER}", flag, text)
    return re.sub(rf"^{name}(?= must )", flag, text)


def _flag_for(name: str, flags: Mapping[str, str]) -> str | None:
    candidates = (name, *_OTHER_NAMES.get(name, ()))
    return next((flags[one] for one in candidates if one in flags), None)


def current_flags() -> dict[str, str]:
    """Return the flags of the command that this process was called with, by the names of their parameters."""
    called = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    with suppress(ImportError):  # it may be the error that is to be shown
        return flags_of(called) if called in COMMANDS else {}
    return {}


def flags_of(command: str) -> dict[str, str]:
    """Return the flags of a command, by the names of their parameters."""
    parameters = load_command(command).params
    return {p.name: max(p.opts, key=len) for p in parameters if p.opts and p.opts[0].startswith("-")}
