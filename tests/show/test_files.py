from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.show.files import write_whole


def test_a_file_is_replaced_whole_and_its_folder_made(tmp_path):
    path = tmp_path / "new" / "page.html"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [child.name for child in path.parent.iterdir()] == ["page.html"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    write_whole(path, b"old")

    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [child.name for child in Path(tmp_path).iterdir()] == ["page.html"]
