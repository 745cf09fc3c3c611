"""How everything the lab draws looks: two themes, five colours, one look an arm.

The five colours keep a contrast of at least 3:1 on white and on the dark paper, so an
arm keeps its colour in both themes. They are five of seaborn's "colorblind" palette.
"""

from __future__ import annotations

import functools
import io
import re
import warnings
import zlib
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

import matplotlib as mpl
from attrs import frozen
from matplotlib import font_manager
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, GREEN, VERMILLION, PINK, GREY = "#0173b2", "#029e73", "#d55e00", "#cc78bc", "#949494"
PALETTE = (BLUE, GREEN, VERMILLION, PINK, GREY)

WIDTH_IN = 7.2
"""Width of a figure, inches: 720 px at 100 dots an inch, the width of a text column."""

PICTURE_DPI = 200
"""Dots an inch of a saved PNG: twice the 720 px a page shows, for dense screens."""

_OTHER_SCRIPTS = ("Noto Sans CJK SC", "Noto Sans", "WenQuanYi Micro Hei", "Segoe UI", "PingFang SC")


@frozen
class Theme:
    """Colours of the paper and of everything that is not data.

    Attributes
    ----------
    name : "light" or "dark"; part of a saved file's name.
    paper : background. ink : text and what must be read first.
    muted : ticks and notes, at least 4.5:1 on the paper.
    grid : guide lines, meant to be barely seen.
    shade : fill of bands that hold no data (an equivalence margin).
    """

    name: str
    paper: str
    ink: str
    muted: str
    grid: str
    shade: str

    def rc(self) -> dict[Any, Any]:
        """Matplotlib's settings for this theme, complete for lab figures."""
        return {
            "figure.facecolor": self.paper,
            "figure.edgecolor": self.paper,
            "savefig.facecolor": self.paper,
            "savefig.edgecolor": self.paper,
            "axes.facecolor": self.paper,
            "axes.edgecolor": self.muted,
            "axes.labelcolor": self.ink,
            "axes.linewidth": 0.8,
            "axes.titlecolor": self.ink,
            "axes.titlelocation": "left",
            "axes.titlesize": 9.5,
            "axes.titleweight": "bold",
            "axes.titlepad": 7.0,
            "axes.labelsize": 9.0,
            "axes.labelpad": 5.0,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.grid": False,
            "axes.unicode_minus": True,
            "grid.color": self.grid,
            "grid.linewidth": 0.8,
            "text.color": self.ink,
            # A model or category may be called "$5"; nothing drawn here is a formula.
            "text.parse_math": False,
            "font.family": _families(),
            "font.size": 9.0,
            "figure.titlesize": 12.0,
            "figure.titleweight": "bold",
            "xtick.color": self.muted,
            "ytick.color": self.muted,
            "xtick.labelcolor": self.ink,
            "ytick.labelcolor": self.ink,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
            "xtick.major.size": 3.0,
            "ytick.major.size": 3.0,
            "legend.frameon": False,
            "legend.fontsize": 8.5,
            "lines.linewidth": 1.6,
            "lines.solid_capstyle": "round",
            "hatch.color": self.muted,
            # Letters become outlines: the same picture where DejaVu Sans is not installed.
            "svg.fonttype": "path",
            # Without a fixed salt the ids in an SVG, and so its bytes, differ every time.
            "svg.hashsalt": "speculation-lab",
        }


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1b1f24",
    muted="#57606a",
    grid="#e6e9ed",
    shade="#eceff2",
)
DARK = Theme(
    name="dark",
    paper="#0d1117",
    ink="#e6edf3",
    muted="#9aa4af",
    grid="#242b34",
    shade="#1c232c",
)
THEMES = (LIGHT, DARK)


@functools.cache
def _families() -> list[str]:
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in _OTHER_SCRIPTS if name in installed)]


class Picture(Figure):
    """A figure that knows its theme and shows itself in a notebook.

    Ticks are made while drawing, so the theme has to hold then too. The picture is
    offered to IPython by the object itself, because with another backend set
    (MPLBACKEND=Agg) a kernel shows no figure at all.
    """

    theme: Theme = LIGHT

    def draw(self, renderer: RendererBase) -> None:
        """Draw in the figure's own theme; letters no font has become boxes."""
        with mpl.rc_context(self.theme.rc()), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
            super().draw(renderer)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        buffer = io.BytesIO()
        FigureCanvasAgg(self)
        self.savefig(buffer, format="png", dpi=PICTURE_DPI)
        width_in, height_in = self.get_size_inches()
        return buffer.getvalue(), {"width": round(width_in * 100), "height": round(height_in * 100)}


P = ParamSpec("P")


def themed(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make a figure function draw in the theme given as its keyword ``theme``."""

    @functools.wraps(draw)
    def in_theme(*args: P.args, **kwargs: P.kwargs) -> Figure:
        theme = kwargs.get("theme", LIGHT)
        if not isinstance(theme, Theme):
            raise TypeError(f"theme must be LIGHT or DARK from lab.show.style, not {theme!r}")
        with mpl.rc_context(theme.rc()):
            return draw(*args, **kwargs)

    return in_theme


@frozen
class Look:
    """How one arm (or model) is drawn wherever it appears.

    Attributes
    ----------
    color : one of PALETTE. marker : Matplotlib marker.
    filled : False is a hollow marker, for a variant of a family's named setting.
    """

    color: str
    marker: str
    filled: bool = True


# Longest name first within a family: "ngram-map-k4v" must not be read as "ngram-map-k".
_FAMILIES: Mapping[str, Look] = {
    "baseline": Look(GREY, "o"),
    "off": Look(GREY, "o"),
    "ngram-mod": Look(BLUE, "o"),
    "ngram-simple": Look(GREEN, "s"),
    "ngram-map-k4v": Look(VERMILLION, "v"),
    "ngram-map-k": Look(VERMILLION, "^"),
    "ngram-cache": Look(PINK, "D"),
    "prompt-lookup": Look(PINK, "h"),
    "draft-simple": Look(GREEN, "P"),
    "draft-eagle3": Look(VERMILLION, "X"),
    "draft-mtp": Look(BLUE, "p"),
    "draft-dflash": Look(PINK, "d"),
    "draft-dspark": Look(PINK, "*"),
    "dense": Look(BLUE, "o"),
    "moe": Look(VERMILLION, "D"),
    "deep": Look(GREEN, "s"),
}
_MODELS = frozenset({"dense", "moe", "deep"})
_VARIANT_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "h", "d")


def look(name: str) -> Look:
    """Colour and marker of an arm or model, from nothing but its name.

    A known family gives the colour; ``ngram-mod`` itself and ``ngram-mod-24-48-64``
    (the article's setting) are filled, other variants hollow with a marker taken from
    the name. An unknown name gets a colour and marker from its checksum, so that it is
    the same in every figure and on every machine. Grey is kept for the baseline.
    """
    key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    digest = zlib.crc32(key.encode())
    for family, base in _FAMILIES.items():
        if key == family or key.startswith(f"{family}-"):
            variant = key[len(family) :].strip("-")
            if family in _MODELS:
                return base
            if base.color == GREY:
                return Look(GREY, base.marker, filled=not variant)
            if variant in {"", "24-48-64"}:
                return base
            return Look(base.color, _VARIANT_MARKERS[digest % len(_VARIANT_MARKERS)], filled=False)
    return Look(PALETTE[digest % 4], _VARIANT_MARKERS[(digest >> 8) % len(_VARIANT_MARKERS)])


def is_baseline(name: str) -> bool:
    """True for the arm without drafting and its twin: those drawn in grey."""
    return look(name).color == GREY


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, 1 to 21, as WCAG 2.2 defines it."""
    bright, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    channels = (int(color[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4  # noqa: PLR2004
        for part in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
