"""Stand-ins for ``sklearn.callback``, which scikit-learn has from version 1.9 on.

They have the names and signatures that :mod:`symrelu.estimators.callbacks` uses, and call no hook. Remove this
module when the lower bound of scikit-learn reaches 1.9.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self

import sklearn


class CallbackSupportMixin:
    """An estimator that refuses callbacks."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Raise an error that names the required version.

        Parameters
        ----------
        *callbacks : callback instances
            None, to remove them, is always possible.

        Returns
        -------
        self : estimator
        """
        if callbacks:
            raise ImportError(
                f"set_callbacks needs scikit-learn 1.9 or newer, got {sklearn.__version__}. Update it "
                "(pip install -U scikit-learn), or pass callback= to symrelu.decompose."
            )
        return self

    def _init_callback_context(self, **settings: Any) -> Task:
        return Task()


class Task:
    """A task without hooks: of a fit, or of one of its steps."""

    def subcontext(self, **settings: Any) -> Task:
        """Return the task of a step."""
        return self

    def call_on_fit_task_begin(self, **arguments: Any) -> None:
        """Call nothing."""

    def call_on_fit_task_end(self, **arguments: Any) -> bool:
        """Call nothing, so nothing asks to stop."""
        return False


def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that only calls the given one.

    The additional frame keeps the ``stacklevel`` of warnings right, which count the one of scikit-learn.
    """

    @functools.wraps(method)
    def same_method(estimator: Any, *arguments: Any, **options: Any) -> Any:
        return method(estimator, *arguments, **options)

    return same_method
