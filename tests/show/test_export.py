from __future__ import annotations

import hashlib
import io
import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import partial

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lab.analyse.estimates import Estimate
from lab.errors import InputError
from lab.show.export import CARD_PX, Words, card_bytes, picture_snippet, plain, save, svg_bytes
from lab.show.figures import ledger_overview, noise_floor, speedup_by_arm, speedup_by_category
from lab.show.style import DARK, LIGHT

WORDS = Words(
    alt="Paired speed-up of 7 arms; ngram-mod is 1.00x",
    caption="Median <of> paired ratios & intervals",
    numbers={"ngram-mod": 1.003, "ngram-cache": math.nan},
    provenance={"run": "2026-01-02-embedded"},
)


@pytest.fixture
def saved(tmp_path, frames_of):
    draw = partial(speedup_by_arm, equivalence=(0.98, 1.02))
    frames = frames_of("speedup_by_arm")
    return save(draw, frames, WORDS, name="speedup-by-arm", folder=tmp_path / "figures")


def test_every_file_is_there_and_named_in_the_json(saved):
    names = {path.name for path in saved.folder.iterdir()}
    told = json.loads(saved.path("json").read_text(encoding="utf-8"))
    assert set(saved.files.values()) == names
    assert set(told["files"].values()) == names - {"speedup-by-arm.json"}
    assert told["alt"] == WORDS.alt
    assert told["numbers"] == {"ngram-mod": 1.003, "ngram-cache": None}
    assert told["provenance"] == {"run": "2026-01-02-embedded"}


def test_pictures_have_their_sizes_and_colours(saved):
    with Image.open(saved.path("card")) as card:
        assert card.size == CARD_PX == (1200, 630)
    for theme in (LIGHT, DARK):
        with Image.open(saved.path(f"png-{theme.name}")) as picture:
            assert picture.width == 1440
            assert picture.info["Description"] == WORDS.alt
            corner = "#{:02x}{:02x}{:02x}".format(*picture.convert("RGB").getpixel((0, 0)))
            assert corner == theme.paper
        assert theme.paper in saved.path(f"svg-{theme.name}").read_text(encoding="utf-8")


def test_svg_is_well_formed_and_carries_its_description(saved):
    root = ET.parse(saved.path("svg-light")).getroot()  # noqa: S314 - the lab's own file
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert WORDS.alt in "".join(root.itertext())


def test_the_frames_are_beside_the_figure_as_csv(saved, frames_of):
    frames = frames_of("speedup_by_arm")
    pd.testing.assert_frame_equal(pd.read_csv(saved.path("csv")), frames["frame"])
    assert len(pd.read_csv(saved.path("csv-points"))) == len(frames["points"])


def test_svg_bytes_are_the_same_in_another_process(frames_of):
    script = (
        "import hashlib, pandas as pd\n"
        "from lab.show.export import svg_bytes\n"
        "from lab.show.figures import noise_floor\n"
        "from lab.show.style import DARK\n"
        "points = pd.DataFrame({'ordinal': range(9), 'speedup': [1.0, 1.01, 0.99] * 3})\n"
        "print(hashlib.sha256(svg_bytes(noise_floor(points, theme=DARK), DARK, 'x')).hexdigest())\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()
    points = pd.DataFrame({"ordinal": range(9), "speedup": [1.0, 1.01, 0.99] * 3})
    here = [svg_bytes(noise_floor(points, theme=DARK), DARK, "x") for _ in range(2)]
    assert here[0] == here[1]
    assert hashlib.sha256(here[0]).hexdigest() == other
    assert b"<dc:date>" not in here[0]


@pytest.mark.parametrize(
    "draw", [speedup_by_category, ledger_overview], ids=lambda one: one.__name__
)
def test_a_card_has_its_size_however_tall_the_figure(draw, frames_of):
    card = Image.open(io.BytesIO(card_bytes(draw(**frames_of(draw.__name__)), LIGHT)))
    assert card.size == CARD_PX
    assert len(card.getcolors(maxcolors=1 << 20)) > 10


def test_a_figure_without_data_is_saved_all_the_same(tmp_path):
    empty = {"frame": pd.DataFrame(), "points": pd.DataFrame()}
    saved = save(speedup_by_arm, empty, WORDS, name="empty", folder=tmp_path)
    assert all(saved.path(role).stat().st_size > 0 for role in saved.files)


def test_a_figure_needs_words_for_who_cannot_see_it():
    with pytest.raises(InputError, match="alternative text"):
        Words(alt=" ", caption="")


@pytest.mark.parametrize("name", ["", "../up", "a b", "a/b", "é"])
def test_a_name_that_is_no_safe_file_name_is_refused(name, tmp_path):
    with pytest.raises(InputError, match="name"):
        save(speedup_by_arm, {}, WORDS, name=name, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_snippet_follows_the_theme_and_lets_no_markup_in():
    snippet = picture_snippet("climb", 'say "hi" <b>', "<script>x</script>", "https://example.org/")
    assert 'srcset="https://example.org/climb-dark.svg"' in snippet
    assert "(prefers-color-scheme: dark)" in snippet
    assert 'alt="say &quot;hi&quot; &lt;b&gt;"' in snippet
    assert "<script>" not in snippet


def test_values_become_plain():
    estimate = Estimate("speedup", "ratio", None, None, None, 0.95, 0, reason="none")
    told = plain({"a": np.float64(1.5), "b": (np.int64(2), math.inf), "c": estimate, "d": pd.NA})
    assert told["a"] == 1.5
    assert told["b"] == [2, None]
    assert told["c"]["reason"] == "none"
    assert told["d"] is None
    json.dumps(told, allow_nan=False)
