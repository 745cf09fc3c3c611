from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lab.analyse.estimates import Caution
from lab.show.markdown import escape, summary
from lab.show.report import ReportContent, ReportFigure, ReportTable, VerdictRow

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

LINES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")))


def plain_text(markdown):
    """What a reader of rendered Markdown sees, and the tags it was put in."""
    tokens = [child for token in READER.parse(markdown) for child in (token.children or [])]
    kinds = {token.type for token in READER.parse(markdown)} | {token.type for token in tokens}
    return "".join(token.content for token in tokens), kinds


@given(LINES)
@example("1. one")
@example("- item")
@example("# heading")
@example("<script>alert(1)</script> **b** `c` [l](http://x) ![i](y)")
@example("=====")
@example("| a | b |")
@example("\\")
def test_escaped_text_is_read_as_it_was_written(text):
    read, kinds = plain_text(escape(text))
    assert " ".join(read.split()) == " ".join(text.split())
    assert kinds <= {"paragraph_open", "inline", "paragraph_close", "text", "text_special"}


@pytest.mark.parametrize("text", ["@someone", "#12", "https://evil.example", "www.evil.example"])
def test_nothing_is_linked_or_mentioned_by_itself(text):
    assert text not in escape(f"see {text}")


def content():
    frame = pd.DataFrame({"arm": ["a|b", "c"], "speedup": [1.0034, None]})
    return ReportContent(
        title="Lab",
        question="Does it help?",
        answer=("No.", "Equivalent within 2 %."),
        verdicts=(VerdictRow("a | b\nc", "refuted", "1.00× [0.99, 1.01]"),),
        figures=(ReportFigure("arms", "Arms", "", "", 'An "alt"\n\n<b>', "Paired"),),
        tables=(ReportTable("Numbers", "By arm", frame),),
        cautions=(Caution("Busy", "run 3", "the machine was busy"),),
        machine={"CPU": "2 cores"},
        limits=("Two cores only.",),
        reproduce=("make reproduce", "echo ```"),
        provenance={"run": "r1"},
    )


def test_the_summary_has_every_part_and_its_tables_hold():
    text = summary(content(), figures_at="https://example.org/f/")
    tokens = READER.parse(text)
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") == 2
    assert kinds.count("tr_open") == 2 + 3
    assert 'srcset="https://example.org/f/arms-dark.svg"' in text
    assert 'alt="An &quot;alt&quot; &lt;b&gt;"' in text
    fence = next(token for token in tokens if token.type == "fence")
    assert fence.content == "make reproduce\necho ```\n"
    for part in ("**No.**", "n/a", "2 cores", "Two cores only.", "the machine was busy"):
        assert part in text


def test_a_long_table_is_cut_and_says_so():
    table = ReportTable("T", "c", pd.DataFrame({"x": range(40)}))
    text = summary(ReportContent("t", "q?", tables=(table,)), rows_at_most=10)
    assert "… and 30 more rows." in text
    assert READER.parse(text)[-1].type == "paragraph_close"
    assert [token.type for token in READER.parse(text)].count("tr_open") == 11


def test_an_empty_report_is_its_question():
    assert summary(ReportContent("t", "Does it help?")) == "## Does it help?\n"
