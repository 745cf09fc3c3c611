from __future__ import annotations

import base64
import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse.estimates import Caution
from lab.show.export import Words, save
from lab.show.figures import speedup_by_arm
from lab.show.report import (
    ReportContent,
    ReportFigure,
    ReportTable,
    VerdictRow,
    cell,
    decimals_of,
    render,
    write_report,
)

EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} </style> javascript:x"
FIGURE = ReportFigure("arms", "Speed-up", "<svg>light</svg>", "<svg>dark</svg>", "An alt", "How")


def content(text="plain"):
    return ReportContent(
        title=text,
        question=text,
        answer=(text, text),
        verdicts=(
            VerdictRow(text, "supported", text, text, text, "arms", (text,)),
            VerdictRow(text, text, figure=text),
        ),
        figures=(ReportFigure("arms", text, text, text, text, text),),
        tables=(ReportTable(text, text, pd.DataFrame({text: [text, None], "n": [1, 2]})),),
        cautions=(Caution("Busy", text, text), Caution(text, text, text, blocks=True)),
        machine={text: text},
        method=(text,),
        limits=(text,),
        reproduce=(text,),
        provenance={text: text},
    )


class Page(HTMLParser):
    """Tags with their attributes, and the text outside style and script."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self.inside, self.void = [], [], [], {"meta", "link", "img"}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.void:
            self.inside.append(tag)

    def handle_endtag(self, tag):
        assert self.inside.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.inside):
            self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def test_untrusted_text_stays_text():
    plain, evil = Page(render(content())), Page(render(content(EVIL)))
    assert [tag for tag, _ in evil.tags] == [tag for tag, _ in plain.tags]
    assert not any(name.startswith("on") for _, attrs in evil.tags for name in attrs)
    assert " ".join(evil.text).count("<script>alert(1)</script>") > 10
    assert "49" not in "".join(evil.text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))))
def test_no_text_changes_the_structure_of_the_page(text):
    page = Page(render(content(text)))
    assert len(page.all("script")) == 1
    assert len(page.all("h1")) == 1
    assert page.inside == []


def test_the_page_needs_and_allows_no_network():
    html = render(content())
    page = Page(html)
    policy = page.all("meta")[2]["content"]
    assert policy.startswith("default-src 'none'")
    addresses = [
        attrs[key] for _, attrs in page.tags for key in ("src", "href", "srcset") if key in attrs
    ]
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not re.search(r"url\(|@import|https?:|//[a-z]", html.split("<body>")[0])


def test_structure_a_screen_reader_can_follow():
    page = Page(render(content()))
    assert page.all("html")[0]["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table")) == 2
    assert all(attrs.get("scope") == "col" for attrs in page.all("th"))
    assert all(attrs.get("alt") for attrs in page.all("img"))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    referred = [attrs["aria-labelledby"] for _, attrs in page.tags if "aria-labelledby" in attrs]
    assert set(referred) <= set(ids)
    regions = [attrs for attrs in page.all("div") if attrs.get("role") == "region"]
    assert all(attrs["tabindex"] == "0" for attrs in regions)


def test_both_themes_of_a_figure_are_on_the_page():
    page = Page(render(ReportContent("t", "q?", figures=(FIGURE,))))
    images = page.all("img")
    assert [image["class"] for image in images] == ["on-light", "on-dark"]
    shown = [base64.b64decode(image["src"].partition(",")[2]).decode() for image in images]
    assert shown == ["<svg>light</svg>", "<svg>dark</svg>"]


def test_a_verdict_links_to_its_figure_only_where_there_is_one():
    rows = (VerdictRow("a", "supported", figure="arms"), VerdictRow("b", "refuted", figure="no"))
    page = Page(render(ReportContent("t", "q?", verdicts=rows, figures=(FIGURE,))))
    assert [attrs["href"] for attrs in page.all("a")] == ["#main", "#figure-arms"]
    assert "2 claims: 1 supported, 1 refuted." in " ".join("".join(page.text).split())


def test_parts_that_are_empty_are_left_out():
    page = Page(render(ReportContent("t", "Is it faster?")))
    assert page.all("h2") == page.all("table") == page.all("figure") == page.all("section") == []
    assert "Is it faster?" in page.text


@pytest.mark.parametrize(
    ("value", "text", "key"),
    [
        (1234567, "1,234,567", 1234567.0),
        (0.98765, "0.988", 0.98765),
        (np.float32(2.5), "2.500", 2.5),
        (np.int64(3), "3", 3.0),
        (math.nan, "n/a", None),
        (None, "n/a", None),
        (pd.NA, "n/a", None),
        (pd.NaT, "n/a", None),
        (True, "yes", None),
        ("text", "text", None),
    ],
)
def test_a_cell_shows_missing_as_missing_and_sorts_by_the_full_number(value, text, key):
    shown = cell(value, 3)
    assert (shown.text, shown.key) == (text, key)


@pytest.mark.parametrize(
    ("column", "decimals"),
    [
        ([1.0, 0.988, None], 3),
        ([0.31, 0.0009], 3),
        ([0.03, 0.0009], 4),
        ([88.3, 19.4], 1),
        ([1234.5], 0),
        (["text", None, math.nan, 0.0], 0),
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(column, decimals):
    assert decimals_of(column) == decimals


def test_a_report_is_written_from_a_saved_figure(tmp_path, frames_of):
    words = Words(alt="Speed-ups of seven arms", caption="Paired by prompt")
    frames = frames_of("speedup_by_arm")
    saved = save(speedup_by_arm, frames, words, name="arms", folder=tmp_path)
    page = ReportContent("t", "q?", figures=(ReportFigure.of(saved, "Arms"),))
    path = write_report(tmp_path / "report.html", page)
    html = path.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert 'alt="Speed-ups of seven arms"' in html
    assert "Paired by prompt" in html
