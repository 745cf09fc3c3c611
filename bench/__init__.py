"""Benchmarks: every figure that the documentation quotes is measured here.

Each module has ``KEYS``, the keys of keys.csv it measures, and ``measure()``, which gives
a :class:`Figure` for each of them. ``python -m bench [KEY ...]`` runs them one at a time
and writes docs/measured.json; nobody edits that file by hand.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Figure:
    """One measured figure: value and interval in the unit of keys.csv, n and what n counts."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 1
    note: str = ""
