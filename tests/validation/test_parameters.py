"""Single values that users pass."""

import pytest

from symrelu.validation import random_generator


@pytest.mark.parametrize(("seed", "error"), [("zero", TypeError), (-1, ValueError), (1.5, TypeError)])
def test_bad_random_state(seed, error):
    with pytest.raises(error, match="random_state must be"):
        random_generator(seed)
