from __future__ import annotations

from pathlib import Path

import pytest

from lab import paths
from lab.errors import InputError, SetupError
from lab.inputs.profiles import load_profile
from lab.setup.engine import find_engine
from lab.setup.flags import as_arguments, flag_table, parse_help, translate

TODAY = parse_help(Path(__file__).with_name("help_excerpt.txt").read_text(encoding="utf-8"))
OLD = parse_help(
    "-m,    --model FNAME                    model path\n"
    "-fa,   --flash-attn                     enable Flash Attention\n"
    "--spec-type TYPE                        none, ngram-mod, ngram-simple\n"
    "--draft, --draft-n, --draft-max N       number of tokens to draft\n"
    "--draft-min, --draft-n-min N            minimum number of draft tokens\n"
    "--spec-ngram-size-n N                   length of lookup n-gram\n"
    "--spec-ngram-size-m N                   length of draft m-gram\n"
)
ARTICLE = {"draft-max": 64, "draft-min": 48, "spec-ngram-size-n": 24, "spec-ngram-size-m": 48}


def test_help_tells_known_flags_from_removed_ones():
    assert "spec-ngram-mod-n-match" in TODAY.known
    assert "draft-max" in TODAY.removed
    assert "--spec-ngram-mod-n-max" in TODAY.removed["draft-max"]
    assert not TODAY.bare_flash_attn
    assert OLD.bare_flash_attn


@pytest.mark.parametrize(
    ("spec_type", "spelled"),
    [
        (
            "ngram-mod",
            {
                "spec-ngram-mod-n-max": 64,
                "spec-ngram-mod-n-min": 48,
                "spec-ngram-mod-n-match": 24,
            },
        ),
        ("ngram-simple", {"spec-ngram-simple-size-n": 24, "spec-ngram-simple-size-m": 48}),
        ("ngram-map-k4v", {"spec-ngram-map-k4v-size-n": 24, "spec-ngram-map-k4v-size-m": 48}),
        ("draft-simple", {"spec-draft-n-max": 64, "spec-draft-n-min": 48}),
    ],
)
def test_case_01_the_articles_flags_are_translated_for_each_drafter(spec_type, spelled):
    found, notes = translate(ARTICLE, [spec_type], TODAY)
    assert found == spelled
    assert len(notes) == len(ARTICLE)


def test_case_01_todays_flags_reach_an_older_build():
    found, notes = translate({"spec-ngram-mod-n-max": 64}, ["ngram-mod"], OLD)
    assert found == {"draft-max": 64}
    assert "--draft-max in this build" in notes[0]


def test_flags_this_build_knows_stay_as_they_are():
    given = {"spec-ngram-mod-n-max": 64}
    assert translate(given, ["ngram-mod"], TODAY) == (given, ())
    assert translate({"draft-max": 64}, ["ngram-mod"], OLD) == ({"draft-max": 64}, ())


def test_case_01_an_unknown_flag_names_the_nearest():
    with pytest.raises(InputError, match="--spec-ngram-mod-n-match"):
        translate({"spec-ngram-mod-nmatch": 3}, ["ngram-mod"], TODAY)


def test_case_01_a_removed_flag_without_drafter_gives_the_servers_advice():
    with pytest.raises(InputError, match="It was removed"):
        translate({"draft-max": 3}, [], TODAY)


def test_flags_become_words():
    words = as_arguments({"model": "a b", "metrics": True, "no-mmap": False, "ngl": 3})
    assert words == ["--model", "a b", "--metrics", "-ngl", "3"]


@pytest.mark.engine
def test_the_engine_knows_every_flag_of_the_shipped_profiles():
    table = flag_table(find_engine().server)
    for file in paths.PROFILES.glob("*.toml"):
        for arm in load_profile(file.stem).arms.values():
            translate(arm.flags, arm.spec_type, table)


@pytest.mark.engine
def test_a_program_that_is_no_server_is_told(tmp_path):
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho hello\n")
    other.chmod(0o755)
    with pytest.raises(SetupError, match="does not read like"):
        flag_table(other)
