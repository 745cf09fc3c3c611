"""Words and numbers as they are written on a figure."""

from __future__ import annotations

import math
import textwrap
import unicodedata

MISSING = "n/a"


def label(value: object, limit: int = 44) -> str:
    """One printable line of at most ``limit`` characters.

    Names come from people and model files; a control character in one would make an
    SVG that no program opens.
    """
    text = "".join(
        " " if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} else char
        for char in str(value)
    )
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def wrapped(value: object, width: int) -> str:
    """The same as several lines of at most ``width`` characters."""
    return textwrap.fill(label(value, limit=400), width)


def times(value: float, digits: int = 2) -> str:
    """A ratio, written 1.02×."""
    return f"{value:.{digits}f}×" if math.isfinite(value) else MISSING


def times_with_interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """A ratio with its interval, written 1.02× [0.99, 1.05]; without one where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return times(value, digits)
    return f"{times(value, digits)} [{low:.{digits}f}, {high:.{digits}f}]"


def number(value: float) -> str:
    """A quantity with three significant digits and thousands separated."""
    if not math.isfinite(value):
        return MISSING
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"  # noqa: PLR2004
