"""What a figure asks of the frames it is handed."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lab.errors import InputError


def require(frame: pd.DataFrame, figure: str, *columns: str, name: str = "frame") -> None:
    """Refuse a frame that lacks a column; an empty frame needs none.

    Raises
    ------
    InputError : names the figure, the frame and every missing column.
    """
    if frame.empty:
        return
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(
            f"the frame lacks {', '.join(missing)}",
            file=f"figure {figure}",
            field=name,
            value=[str(column) for column in frame.columns],
            fix=f"Give it the columns {', '.join(columns)}",
        )


def why_empty(frame: pd.DataFrame, *values: str) -> str | None:
    """Say why there is nothing to draw; None when at least one value is a number.

    A column ``reason`` in the frame, where filled, is the answer.
    """
    if frame.empty:
        return "nothing was measured"
    if any(np.isfinite(column_of(frame, value)).any() for value in values):
        return None
    if "reason" in frame.columns:
        given = frame["reason"].dropna()
        if len(given):
            return str(given.iloc[0])
    return f"no value of {' or '.join(values)} is known"


def column_of(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """A column as floats, missing as NaN; all NaN where the frame has no such column."""
    if name not in frame.columns:
        return np.full(len(frame), math.nan)
    return pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float, na_value=math.nan)


def interval_of(row: pd.Series, low: str = "low", high: str = "high") -> tuple[float, float]:
    """The interval of one row as (low, high); NaN where none may be shown.

    One unit (``n`` below 2) has no interval, whatever the columns say.
    """
    single = "n" in row.index and pd.notna(row["n"]) and float(row["n"]) < 2  # noqa: PLR2004
    ends = float_of(row, low), float_of(row, high)
    return (math.nan, math.nan) if single or not all(map(math.isfinite, ends)) else ends


def float_of(row: pd.Series, name: str) -> float:
    """A field of one row as a float; NaN where it is missing."""
    value = row.get(name)
    return math.nan if value is None or pd.isna(value) else float(value)


def ordered(values: Iterable[object]) -> list[str]:
    """Distinct values as text, in order of first appearance."""
    return list(dict.fromkeys(str(value) for value in values))
