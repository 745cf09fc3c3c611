"""A summary to paste into an issue or a blog."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape as attribute

from lab.show.report import ReportContent, VerdictRow, rows

_ENTITIES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "@": "&#64;",
    "#": "&#35;",
    "://": ":&#47;/",
    "www.": "www&#46;",
}
_ACTIVE = re.compile(r"[\\`*_\[\]|~$&<>@]|#(?=\w)|://|www\.")
_LINE_START = re.compile(r"^([-+=#]|\d{1,9}(?=[.)](\s|$)))")


def summary(
    content: ReportContent, *, figures_at: str | None = None, rows_at_most: int = 30
) -> str:
    """The page in Markdown (GitHub's dialect), every text from outside escaped.

    Parameters
    ----------
    figures_at : address the figures are published under, ending in "/"; None leaves out
        pictures and keeps their captions.
    rows_at_most : rows of a table to show; the rest is counted.
    """
    blocks = [f"## {escape(content.question)}"]
    blocks += _answer(content)
    blocks += _cautions(content)
    blocks += _ledger(content.verdicts)
    blocks += _figures(content, figures_at)
    blocks += _tables(content, rows_at_most)
    blocks += _facts("Machine", content.machine)
    blocks += _sentences("How it was measured", content.method)
    blocks += _sentences("Limits", content.limits)
    if content.reproduce:
        blocks += ["### Measure it yourself", _code_block("\n".join(content.reproduce))]
    blocks += _facts("Provenance", content.provenance)
    return "\n\n".join(blocks) + "\n"


def escape(text: object) -> str:
    """One line of text that Markdown shows as it is.

    Besides markup this stops what GitHub adds by itself: tags, mentions of people and
    issues, and links made from bare addresses.
    """
    line = _ACTIVE.sub(_inert, " ".join(str(text).split()))
    return _LINE_START.sub(lambda start: f"&#{ord(start[0][0])};{start[0][1:]}", line)


def _inert(active: re.Match[str]) -> str:
    found = active[0]
    return _ENTITIES.get(found, f"\\{found}")


def _answer(content: ReportContent) -> list[str]:
    if not content.answer:
        return []
    first, *others = content.answer
    return [f"**{escape(first)}**", *(escape(sentence) for sentence in others)]


def _cautions(content: ReportContent) -> list[str]:
    if not content.cautions:
        return []
    lines = [
        f"> - **{escape(caution.subject)}**: {escape(caution.message)} ({escape(caution.kind)})"
        for caution in content.cautions
    ]
    return ["> Before you believe it:\n>\n" + "\n".join(lines)]


def _ledger(verdicts: tuple[VerdictRow, ...]) -> list[str]:
    if not verdicts:
        return []
    cells = [(row.claim, row.verdict, row.effect or "–", row.conditions or "–") for row in verdicts]
    return ["### Claims", _table(("Claim", "Verdict", "Effect", "Holds for"), cells)]


def _figures(content: ReportContent, figures_at: str | None) -> list[str]:
    blocks = []
    for figure in content.figures:
        blocks.append(f"### {escape(figure.title)}")
        if figures_at is not None:
            source, alt = f"{figures_at}{figure.name}", attribute(" ".join(figure.alt.split()))
            blocks.append(
                "<picture>\n"
                f'<source media="(prefers-color-scheme: dark)" srcset="{source}-dark.svg">\n'
                f'<img src="{source}-light.svg" alt="{alt}" width="720">\n'
                "</picture>"
            )
        blocks.append(f"*{escape(figure.caption)}*" if figure.caption else escape(figure.alt))
    return blocks


def _tables(content: ReportContent, rows_at_most: int) -> list[str]:
    blocks = []
    for table in content.tables:
        shown = table.frame.head(rows_at_most)
        cells = [[cell.text for cell in row] for row in rows(shown)]
        blocks += [
            f"### {escape(table.title)}",
            escape(table.caption),
            _table([str(column) for column in table.frame.columns], cells),
        ]
        left = len(table.frame) - len(shown)
        if left > 0:
            blocks.append(f"… and {left} more rows.")
    return blocks


def _table(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    lines = [
        [escape(text) or " " for text in headings],
        ["---"] * len(headings),
        *([escape(text) or " " for text in row] for row in cells),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _facts(heading: str, facts: Mapping[str, str]) -> list[str]:
    if not facts:
        return []
    lines = [f"- {escape(name)}: {escape(fact)}" for name, fact in facts.items()]
    return [f"### {heading}", "\n".join(lines)]


def _sentences(heading: str, sentences: tuple[str, ...]) -> list[str]:
    if not sentences:
        return []
    return [f"### {heading}", "\n".join(f"- {escape(sentence)}" for sentence in sentences)]


def _code_block(text: str) -> str:
    """A fence longer than any run of backticks inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{text}\n{fence}"
