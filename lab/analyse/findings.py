"""Findings: sentences computed from estimates, each traceable to the records behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import cattrs
from attrs import frozen

from lab.analyse.estimates import Caution, Estimate
from lab.errors import ResultsError

_CONVERTER = cattrs.Converter()


@frozen
class Finding:
    """One answer.

    Attributes
    ----------
    id : "<notebook>/<what>/<arm or quantity>", unique within a run.
    question : what was asked, a sentence with its question mark.
    verdict : "faster", "slower", "equivalent", "inconclusive" for a comparison; otherwise
        "yes", "no", "inconclusive" or "not testable here".
    sentence : the answer in words, with the numbers in it.
    estimate : what it rests on; None when nothing could be estimated.
    record_keys : keys of the records used, where they are few.
    record_filter : column = value pairs that pick the records from the run's table.
    figure : file stem of the figure that shows it; None when there is none.
    cautions : what a reader must know.
    """

    id: str
    question: str
    verdict: str
    sentence: str
    estimate: Estimate | None = None
    record_filter: tuple[tuple[str, str], ...] = ()
    record_keys: tuple[str, ...] = ()
    figure: str | None = None
    cautions: tuple[Caution, ...] = ()


def write_findings(file: Path, findings: Iterable[Finding]) -> None:
    """Write a notebook's findings in one step; the file is also its sign of completion."""
    partial = file.with_suffix(".partial")
    rows = [_CONVERTER.unstructure(one) for one in findings]
    partial.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    partial.replace(file)


def read_findings(file: Path) -> tuple[Finding, ...]:
    """Findings as written.

    Raises
    ------
    ResultsError : the file cannot be read.
    """
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        return tuple(_CONVERTER.structure(row, Finding) for row in rows)
    except (OSError, ValueError, cattrs.errors.BaseValidationError) as error:
        raise ResultsError(f"{file}: findings cannot be read ({error})") from error
