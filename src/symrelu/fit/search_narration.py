"""Progress messages of a search with many fits, through the logger ``symrelu``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symrelu.fit.loop import Callback, FitProgress
from symrelu.fit.narration import LineTimer, logger


class SearchNarrator:
    """Log the progress of a rank selection.

    A fit in this process is reported step by step, a fit in another process when its score arrives.

    Parameters
    ----------
    verbose : int
        0 logs nothing, 1 at most one line per second, 2 or more one line per step and per fit.
    n_repeats : int
    summary : function without arguments, returns a str
        Describes the results so far.
    """

    def __init__(self, verbose: int, n_repeats: int, summary: Callable[[], str] = str) -> None:
        self.verbose = verbose
        self.n_repeats = n_repeats
        self.summary = summary
        self.timer = LineTimer()

    def __reduce__(self) -> Any:
        # Worker processes stay silent: their loggers are not those that the user has configured.
        return SearchNarrator, (0, self.n_repeats)

    def callback(self, setting: dict[str, Any], repeat: int) -> Callback | None:
        """Return the callback for one fit."""
        if not self.verbose:
            return None

        def step(progress: FitProgress) -> None:
            record = progress.record
            self._log(setting, repeat, f"step {record.iteration}, relative error {record.relative_error:.4g}")

        return step

    def fitted(self, setting: dict[str, Any], repeat: int, scoring: str, score: float) -> None:
        """Log the score of a fit, if a line is due."""
        self._log(setting, repeat, f"{scoring} {score:.4g}")

    def _log(self, setting: dict[str, Any], repeat: int, what: str) -> None:
        if self.verbose >= 2 or (self.verbose and self.timer.due()):
            negative = f", {setting['n_negative']} negative" if setting["n_negative"] else ""
            logger.info(
                "rank %d%s, repeat %d of %d: %s; %s",
                setting["rank"],
                negative,
                repeat + 1,
                self.n_repeats,
                what,
                self.summary(),
            )

    def end(self, text: str) -> None:
        """Log the outcome."""
        if self.verbose:
            logger.info("%s", text)
