from __future__ import annotations

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter

from lab.show import style
from lab.show.style import DARK, GREY, LIGHT, PALETTE, THEMES, contrast, is_baseline, look, themed


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("color", PALETTE)
def test_every_colour_of_an_arm_stands_out_on_both_papers(theme, color):
    assert contrast(color, theme.paper) >= 3


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_words_are_readable_on_paper_and_on_shade(theme):
    for background in (theme.paper, theme.shade):
        assert contrast(theme.ink, background) >= 7
        assert contrast(theme.muted, background) >= 4.5


def test_contrast_has_the_ends_the_standard_gives():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == pytest.approx(1)
    assert contrast("#949494", "#ffffff") == pytest.approx(3.03, abs=0.01)


@pytest.mark.parametrize("name", ["baseline", "baseline-again", "Baseline B", "off"])
def test_the_baseline_and_its_twin_are_grey(name):
    assert look(name).color == GREY
    assert is_baseline(name)


@given(st.text())
def test_grey_is_kept_for_the_baseline(name):
    assert (look(name).color == GREY) == is_baseline(name)
    assert look(name) == look(name)
    if not name.lower().strip().startswith(("baseline", "off")) and name.isalpha():
        assert look(name).color != GREY


def test_types_of_drafter_are_told_apart():
    types = ["ngram-mod", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-cache"]
    types += ["draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash", "draft-dspark"]
    looks = [look(name) for name in types]
    assert len({(one.color, one.marker) for one in looks}) == len(types)
    assert all(one.filled for one in looks)


def test_a_longer_name_is_not_taken_for_a_shorter_one():
    assert look("ngram-map-k4v").marker != look("ngram-map-k").marker
    assert look("ngram-modern") != look("ngram-mod")


def test_a_variant_keeps_the_colour_of_its_family_and_is_hollow():
    article, short = look("ngram-mod-24-48-64"), look("ngram-mod-2-1-8")
    assert article == look("ngram-mod")
    assert (short.color, short.filled) == (article.color, False)


def test_a_figure_function_refuses_a_theme_that_is_none():
    @themed
    def draw(*, theme=LIGHT):
        return style.Picture()

    with pytest.raises(TypeError, match="LIGHT or DARK"):
        draw(theme="dark")


def test_the_theme_does_not_leak_out_of_a_figure_function():
    before = mpl.rcParams["text.color"]
    seen = []
    themed(lambda *, theme=LIGHT: seen.append(mpl.rcParams["text.color"]))(theme=DARK)
    assert seen == [DARK.ink]
    assert mpl.rcParams["text.color"] == before


def test_a_picture_shows_itself_whatever_the_backend():
    picture = style.Picture(figsize=(7.2, 3))
    png, shown = picture._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert shown == {"width": 720, "height": 300}


def test_case_30_a_kernel_shows_the_picture_whatever_mplbackend_says():
    shown, _ = DisplayFormatter().format(style.Picture(figsize=(2, 1)))
    assert shown["image/png"].startswith(b"\x89PNG")
