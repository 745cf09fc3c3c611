from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.errors import InputError
from lab.inputs.profiles import load_profile

MINIMAL = """
name = "mine"
description = "test"
[models.target]
source = "embedded"
[arms.mod]
label = "mod"
spec_type = ["ngram-mod"]
"""


def write(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", sorted(file.stem for file in paths.PROFILES.glob("*.toml")))
def test_every_shipped_profile_is_read_and_names_itself(name):
    profile = load_profile(name)
    assert profile.name == name.removesuffix(".example")
    assert profile.baseline().is_baseline
    assert all(not arm.is_baseline for arm in profile.chosen_arms(()))


def test_the_example_explains_every_key():
    text = (paths.PROFILES / "custom.example.toml").read_text(encoding="utf-8")
    schema = type(load_profile("embedded")).model_json_schema()
    for table in ("Settings", "RepeatPlan", "DiversePlan", "WhyPlan", "DraftsPlan", "Decision"):
        for key in schema["$defs"][table]["properties"]:
            assert f"{key} = " in text, f"{table}.{key} is not in the example"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("n_ctx = 0", "settings.n_ctx"),
        ('n_ctx = "8192"', "settings.n_ctx"),
        ("context = 8", "settings.context"),
        ('split_mode = "diagonal"', "settings.split_mode"),
    ],
)
def test_a_wrong_setting_names_file_key_and_value(tmp_path, change, field):
    file = write(tmp_path, MINIMAL + f"[settings]\n{change}\n")
    with pytest.raises(InputError) as caught:
        load_profile(file)
    assert field in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MINIMAL.replace('source = "embedded"', 'source = "file"'), "needs path"),
        (MINIMAL.replace("[models.target]", "[models.other]"), "named target"),
        (MINIMAL + 'draft = "nobody"\n', "names no model"),
        (MINIMAL + '[experiments.repeat]\narms = ["nobody"]\n', "names no arm"),
        ("this is not toml", "TOML"),
        ('extends = "mine.toml"', "no such profile"),
    ],
)
def test_a_wrong_profile_says_what_is_missing(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        load_profile(write(tmp_path, text))


def test_an_unknown_profile_lists_the_known_ones():
    with pytest.raises(InputError, match="embedded"):
        load_profile("no-such-profile")


def test_a_profile_extends_another_key_by_key(tmp_path):
    base = write(tmp_path, MINIMAL)
    child = tmp_path / "child.toml"
    child.write_text(f'extends = "{base}"\nname = "child"\n[settings]\nn_ctx = 512\n')
    profile = load_profile(child)
    assert (profile.name, profile.settings.n_ctx) == ("child", 512)
    assert set(profile.arms) == {"mod"}


def test_a_circle_of_profiles_is_refused(tmp_path):
    file = write(tmp_path, MINIMAL)
    file.write_text(f'extends = "{file}"\n' + MINIMAL)
    with pytest.raises(InputError, match="circle"):
        load_profile(file)


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_loader(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("fuzz") / "any.toml"
    file.write_bytes(data)
    with pytest.raises(InputError):
        load_profile(file)
