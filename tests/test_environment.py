"""The descriptions of the environment agree with one another."""

from __future__ import annotations

import re
import tomllib

import yaml

from lab import paths

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WANTED = [
    *PROJECT["dependencies"],
    *(one for group in PROJECT["optional-dependencies"].values() for one in group),
]
LOCK = (paths.ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_environment_yml_lists_what_pyproject_lists():
    described = yaml.safe_load((paths.ROOT / "environment.yml").read_text(encoding="utf-8"))
    (pip,) = [one["pip"] for one in described["dependencies"] if isinstance(one, dict)]
    assert sorted(pip) == sorted(WANTED)
    assert f"python{PROJECT['requires-python']}" in described["dependencies"]


def test_the_lock_pins_and_hashes_every_dependency():
    pinned = set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.MULTILINE))
    for line in WANTED:
        assert re.match(r"[A-Za-z0-9-]+", line)[0].lower() in pinned, line
    for block in re.split(r"\n(?=[a-z0-9-]+==)", LOCK)[1:]:
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_the_lock_names_no_index():
    assert re.search(r"^\s*--(extra-)?index-url", LOCK, re.MULTILINE) is None
    assert "://" not in LOCK
