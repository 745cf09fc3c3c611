"""The one page: question, answer, evidence, in a single HTML file that needs no network.

Everything that came from outside (model names, prompts, messages) passes through the
template engine's escaping, figures are images that cannot run a script, and the page
forbids itself any connection, so a model called ``<script>`` is only a strange name.
"""

from __future__ import annotations

import base64
import math
import numbers
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Self

import pandas as pd
from attrs import field, frozen
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from lab.analyse.estimates import Caution
from lab.show.export import SavedFigure
from lab.show.files import write_whole
from lab.show.labels import MISSING
from lab.show.style import DARK, LIGHT


@frozen
class VerdictRow:
    """One claim of the ledger and what became of it.

    Attributes
    ----------
    claim : in the lab's own words. place : where it is made.
    verdict : "supported", "refuted", "inconclusive" or "not testable here".
    effect : the number with its interval, written out; "" where there is none.
    conditions : what the verdict holds for. figure : name of the figure that shows it.
    records : ids the verdict can be traced to.
    """

    claim: str
    verdict: str
    effect: str = ""
    place: str = ""
    conditions: str = ""
    figure: str = ""
    records: tuple[str, ...] = ()


@frozen
class ReportFigure:
    """A figure on the page, in both themes.

    Attributes
    ----------
    name : unique on the page; verdicts refer to it. title : a heading.
    light_svg, dark_svg : whole SVG files as text. alt, caption : as saved beside them.
    """

    name: str
    title: str
    light_svg: str
    dark_svg: str
    alt: str
    caption: str

    @classmethod
    def of(cls, saved: SavedFigure, title: str) -> Self:
        """The figure ``lab.show.export.save`` wrote."""
        light, dark = (
            saved.path(f"svg-{theme}").read_text(encoding="utf-8") for theme in ("light", "dark")
        )
        return cls(saved.name, title, light, dark, saved.alt, saved.caption)


@frozen
class ReportTable:
    """A table a reader can sort. Missing values are shown as such, never as 0."""

    title: str
    caption: str
    frame: pd.DataFrame = field(eq=False)


@frozen
class ReportContent:
    """All the page says; each part may be empty and is then left out.

    Attributes
    ----------
    title, question : what was asked. answer : sentences, the first one is the headline.
    verdicts, figures, tables, cautions : the evidence and what to beware of.
    machine : facts by name. method, limits : sentences.
    reproduce : shell commands. provenance : run ids, build, digests, date, by name.
    """

    title: str
    question: str
    answer: tuple[str, ...] = ()
    verdicts: tuple[VerdictRow, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    cautions: tuple[Caution, ...] = ()
    machine: Mapping[str, str] = field(factory=dict)
    method: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    reproduce: tuple[str, ...] = ()
    provenance: Mapping[str, str] = field(factory=dict)


@frozen
class Cell:
    """One cell of a sortable table.

    Attributes
    ----------
    text : what is shown. key : the number to sort by; None sorts by the text, or last.
    numeric : set right-aligned, in figures of equal width.
    """

    text: str
    key: float | None
    numeric: bool


def write_report(path: Path, content: ReportContent) -> Path:
    """Write the page; an interrupted write leaves the one that was there.

    Returns
    -------
    The path that was given.
    """
    write_whole(path, render(content).encode("utf-8"))
    return path


def render(content: ReportContent) -> str:
    """The page as text."""
    known = {figure.name for figure in content.figures}
    return _template().render(
        page=content,
        tables=[_laid_out(table) for table in content.tables],
        light=LIGHT,
        dark=DARK,
        image=_image,
        known=known,
        counts=verdict_counts(content.verdicts),
    )


def _laid_out(table: ReportTable) -> tuple[ReportTable, list[tuple[str, bool]], list[list[Cell]]]:
    """A table with its headings, each with whether its column holds numbers, and its rows."""
    laid = rows(table.frame)
    numeric = [any(row[place].numeric for row in laid) for place in range(table.frame.shape[1])]
    return table, list(zip(map(str, table.frame.columns), numeric, strict=True)), laid


def verdict_counts(verdicts: tuple[VerdictRow, ...]) -> dict[str, int]:
    """How many claims have each verdict, in order of first appearance."""
    counts: dict[str, int] = {}
    for row in verdicts:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return counts


def rows(frame: pd.DataFrame) -> list[list[Cell]]:
    """A frame as rows of cells; the numbers of one column have the same decimals."""
    columns = [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
    shown = [[cell(value, decimals_of(column)) for value in column] for column in columns]
    return [list(row) for row in zip(*shown, strict=True)]


def decimals_of(column: Sequence[object]) -> int:
    """Decimals that give the largest number of a column three digits or, from 1 to 10, four."""
    sizes = [
        abs(float(value))
        for value in column
        if isinstance(value, numbers.Real) and math.isfinite(value) and value
    ]
    if not sizes:
        return 0
    order = math.floor(math.log10(max(sizes)))
    return min(9, max(0, 2 - order + (order == 0)))


def cell(value: object, decimals: int) -> Cell:
    """A value as a table shows it; a missing one as such, never as 0."""
    if value is None or value is pd.NA or value is pd.NaT:
        return Cell(MISSING, None, numeric=False)
    if isinstance(value, bool):
        return Cell("yes" if value else "no", None, numeric=False)
    if isinstance(value, numbers.Integral):
        return Cell(f"{int(value):,}", float(int(value)), numeric=True)
    if isinstance(value, numbers.Real):
        amount = float(value)
        finite = math.isfinite(amount)
        text = f"{amount:,.{decimals}f}" if finite else MISSING
        return Cell(text, amount if finite else None, numeric=True)
    return Cell(str(value), None, numeric=False)


def _image(svg: str) -> str:
    """An SVG as a data address: an image cannot run scripts or fetch anything."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode('utf-8')).decode('ascii')}"


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("lab.show", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")
