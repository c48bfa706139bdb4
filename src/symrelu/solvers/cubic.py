"""The positive root of the cubic in the Bregman step."""

from __future__ import annotations

import math

_MAX_NEWTON_STEPS = 60


def positive_root(c: float, g: float) -> float:
    """Return the root t >= 0 of t^3 - c t^2 - 6 g^2 = 0 for c, g >= 0, accurate to rounding at any scale.

    With t = 4^j tau the equation becomes tau^3 - a tau^2 - b = 0, a = c / 4^j, b = 6 (g / 8^j)^2.
    Choosing j from the binary exponents of c and g brings a and b to order one by exact operations, so
    nothing overflows and the root scales exactly with M. From tau = a + b^(1/3), which lies above the root,
    Newton's method decreases monotonically, because the cubic is convex there.

    Examples
    --------
    >>> positive_root(2.0, 0.0)
    2.0
    >>> t = positive_root(1e150, 1e150)
    >>> abs(t / 1e150 - 1) < 1e-15
    True
    """
    if not (math.isfinite(c) and math.isfinite(g)):
        return math.nan
    if c == 0 and g == 0:
        return 0.0
    exponents = []
    if c > 0:
        exponents.append(math.ceil(math.frexp(c)[1] / 2))
    if g > 0:
        exponents.append(math.ceil(math.frexp(g)[1] / 3))
    j = max(exponents)
    a = math.ldexp(c, -2 * j)
    b = 6 * math.ldexp(g, -3 * j) ** 2
    tau = a + math.cbrt(b)
    for _ in range(_MAX_NEWTON_STEPS):
        change = (tau * tau * (tau - a) - b) / (tau * (3 * tau - 2 * a))
        if not tau - change < tau:  # monotone, so the first step that is no decrease is rounding (or NaN)
            break
        tau -= change
    return math.ldexp(tau, 2 * j)
