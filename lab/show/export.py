"""A figure as files to publish: two themes, two formats, a card, its words and its data.

``save`` writes, for a figure called NAME::

    NAME-light.svg  NAME-dark.svg     the same bytes every time
    NAME-light.png  NAME-dark.png     1440 px wide
    NAME-card.png                     1200 x 630, what a link preview shows
    NAME.json                         alt text, caption, numbers, provenance, files
    NAME.csv  NAME-FRAME.csv          the frames that were drawn
    NAME.html                         a <picture> that follows the reader's theme
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd
from attrs import field, frozen
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

from lab.errors import InputError
from lab.show.files import write_whole
from lab.show.style import LIGHT, PICTURE_DPI, THEMES, Theme

CARD_PX = (1200, 630)
"""Size of a link preview, pixels."""

_CARD_DPI = 150
_TALLEST_REFLOWED_IN = 5.6
"""A taller figure would be squeezed on a card; it is shrunk whole and centred there."""

Numbers = Mapping[str, Any]


@frozen
class SavedFigure:
    """Where a figure went and the words that belong to it.

    Attributes
    ----------
    name : stem of its files. folder : where they are.
    alt : what a reader who cannot see it is told. caption : what stands below it.
    files : file names by role ("svg-light", "png-dark", "card", "json", "csv", "snippet", ...).
    """

    name: str
    folder: Path
    alt: str
    caption: str
    files: Mapping[str, str]

    def path(self, role: str) -> Path:
        """The file of one role."""
        return self.folder / self.files[role]


@frozen
class Words:
    """What is told about a figure beside the picture itself.

    Attributes
    ----------
    alt : one or two sentences that say what the picture shows, with its main number.
    caption : how to read it; what was measured, on what, how often.
    numbers : the values behind the headline, by name; NaN and None become null.
    provenance : what made it: run ids, build, model digests, date.
    """

    alt: str = field()
    caption: str
    numbers: Numbers = field(factory=dict)
    provenance: Numbers = field(factory=dict)

    @alt.validator
    def _alt_is_given(self, _attribute: attrs.Attribute[str], value: str) -> None:
        if not value.strip():
            raise InputError(
                "a figure needs alternative text",
                field="alt",
                value=value,
                fix="Say in a sentence what the picture shows and its main number",
            )


def save(
    draw: Callable[..., Figure],
    frames: Mapping[str, pd.DataFrame | None],
    words: Words,
    *,
    name: str,
    folder: Path,
) -> SavedFigure:
    """Draw a figure in every theme and write all its files.

    Parameters
    ----------
    draw : a function of lab.show.figures (or a partial of one, with further options set),
        called with ``frames`` by name and ``theme``.
    frames : the frames by the function's parameter names; None for an optional one left out.
    name : stem of the files: lower-case letters, digits, - and _.

    Raises
    ------
    InputError : the name is no safe file name, or a frame lacks a column.
    """
    if not name or not all(char.isascii() and (char.isalnum() or char in "-_") for char in name):
        raise InputError(
            "a figure's name must be letters, digits, - and _", field="name", value=name
        )
    files: dict[str, str] = {}

    def keep(role: str, file: str, content: bytes) -> None:
        write_whole(folder / file, content)
        files[role] = file

    for theme in THEMES:
        picture = draw(**frames, theme=theme)
        keep(f"svg-{theme.name}", f"{name}-{theme.name}.svg", svg_bytes(picture, theme, words.alt))
        keep(f"png-{theme.name}", f"{name}-{theme.name}.png", png_bytes(picture, theme, words.alt))
    keep("card", f"{name}-card.png", card_bytes(draw(**frames, theme=LIGHT), LIGHT))
    drawn = [(key, frame) for key, frame in frames.items() if frame is not None]
    for index, (frame_name, frame) in enumerate(drawn):
        stem = name if index == 0 else f"{name}-{frame_name}"
        role = "csv" if index == 0 else f"csv-{frame_name}"
        keep(role, f"{stem}.csv", frame.to_csv(index=False, lineterminator="\n").encode())
    keep("snippet", f"{name}.html", picture_snippet(name, words.alt, words.caption).encode())
    described = json.dumps(
        plain(
            {
                "name": name,
                "alt": words.alt,
                "caption": words.caption,
                "numbers": words.numbers,
                "provenance": words.provenance,
                "files": files,
            }
        ),
        indent=2,
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
    )
    keep("json", f"{name}.json", f"{described}\n".encode())
    return SavedFigure(name, folder, words.alt, words.caption, files)


def svg_bytes(picture: Figure, theme: Theme, alt: str) -> bytes:
    """The figure as SVG; the same figure gives the same bytes in every process."""
    buffer = io.BytesIO()
    with rc_context(theme.rc()):
        picture.savefig(
            buffer, format="svg", dpi=PICTURE_DPI, metadata={"Date": None, "Description": alt}
        )
    return buffer.getvalue()


def png_bytes(picture: Figure, theme: Theme, alt: str) -> bytes:
    """The figure as PNG, twice as dense as a page shows it."""
    buffer = io.BytesIO()
    with rc_context(theme.rc()):
        picture.savefig(buffer, format="png", dpi=PICTURE_DPI, metadata={"Description": alt})
    return buffer.getvalue()


def card_bytes(picture: Figure, theme: Theme) -> bytes:
    """The figure as a link preview of exactly CARD_PX."""
    wide_px, high_px = CARD_PX
    width_in, height_in = picture.get_size_inches()
    if height_in <= _TALLEST_REFLOWED_IN:
        picture.set_size_inches(wide_px / _CARD_DPI, high_px / _CARD_DPI)
        dpi = float(_CARD_DPI)
    else:
        dpi = min(wide_px / width_in, high_px / height_in)
    buffer = io.BytesIO()
    with rc_context(theme.rc()):
        picture.savefig(buffer, format="png", dpi=dpi)
    drawn = Image.open(buffer).convert("RGB")
    card = Image.new("RGB", CARD_PX, theme.paper)
    card.paste(drawn, ((wide_px - drawn.width) // 2, (high_px - drawn.height) // 2))
    out = io.BytesIO()
    card.save(out, format="PNG", optimize=True)
    return out.getvalue()


def picture_snippet(name: str, alt: str, caption: str, base: str = "") -> str:
    """HTML to paste into a page: the picture in the reader's theme, with its caption.

    ``base`` is put before the file names, for example "https://example.org/figures/".
    """
    source = escape(f"{base}{name}", quote=True)
    return (
        "<figure>\n"
        "  <picture>\n"
        f'    <source media="(prefers-color-scheme: dark)" srcset="{source}-dark.svg">\n'
        f'    <img src="{source}-light.svg" alt="{escape(alt, quote=True)}" width="720">\n'
        "  </picture>\n"
        f"  <figcaption>{escape(caption)}</figcaption>\n"
        "</figure>\n"
    )


def plain(value: Any) -> Any:
    """A value as JSON can hold it: NaN and infinities null, numpy and attrs values plain."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if attrs.has(type(value)):
        return plain(attrs.asdict(value))
    if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
