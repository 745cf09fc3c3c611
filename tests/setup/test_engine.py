from __future__ import annotations

import json
import os
import zipfile
from importlib import metadata

import pytest
from rich.console import Console

from lab.errors import InputError, SetupError
from lab.setup import build, prebuilt, toolkits
from lab.setup.engine import Engine, ensure_engine, find_engine, use_libraries
from lab.setup.flags import flag_table

QUIET = Console(quiet=True)
FAKE_PACKAGE = "__version__ = '1.2.3'\nBUILD_INFO = 'fake'\n"


def program(path, text="#!/bin/sh\necho 'version: 1 (abc)'\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_named_server_is_used_and_labelled(tmp_path, monkeypatch):
    server = program(tmp_path / "bin" / "llama-server")
    monkeypatch.setenv("LAB_LLAMA_SERVER", str(server))
    engine = find_engine()
    assert (engine.source, engine.server, engine.lib_dir) == ("named", server, None)
    assert engine.build == "1 (abc)"
    with pytest.raises(SetupError, match="llama-bench is not beside"):
        engine.program("llama-bench")
    with pytest.raises(SetupError, match="no shared libraries"):
        use_libraries(engine)


def test_a_named_server_that_is_no_program_is_refused(tmp_path):
    with pytest.raises(SetupError, match="is not a program"):
        find_engine(tmp_path / "nothing")


def test_without_a_build_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_LLAMA_SERVER", "")
    monkeypatch.setattr("lab.paths.ENGINE", tmp_path)
    with pytest.raises(SetupError, match="make setup"):
        find_engine()


def test_only_a_stamped_build_of_the_pinned_version_counts(tmp_path):

    (tmp_path / "half" / "bin").mkdir(parents=True)
    assert build.finished_build(tmp_path) is None
    old = tmp_path / "old" / build.STAMP
    old.parent.mkdir()
    old.write_text(json.dumps({"version": "0.0.1", "source": "built"}))
    assert build.finished_build(tmp_path) is None
    new = tmp_path / "new" / build.STAMP
    new.parent.mkdir()
    new.write_text(json.dumps({"version": metadata.version(build.PACKAGE), "source": "built"}))
    assert build.finished_build(tmp_path) == new


@pytest.fixture
def fake_tools(tmp_path, monkeypatch):
    """A cmake that leaves what a build leaves, or fails with unity, as told by a file."""
    script = (
        "#!/bin/sh\n"
        f'echo "$@" >> {tmp_path}/calls\n'
        f'if [ -e {tmp_path}/no-unity ]; then case "$*" in *PROJECT_INCLUDE*) exit 1;; esac; fi\n'
        'for a; do case "$prev" in -B) tree=$a;; --build) tree=$a;; esac; prev=$a; done\n'
        'mkdir -p "$tree/bin"; echo "[3/6] working"\n'
        'printf "#!/bin/sh\\necho version: 9\\n" > "$tree/bin/llama-server"\n'
        'chmod +x "$tree/bin/llama-server"\n'
    )
    cmake = program(tmp_path / "tools" / "cmake", script)
    monkeypatch.setattr(build, "_program", lambda name: str(cmake.with_name(name)))
    source = tmp_path / "source"
    source.mkdir()
    monkeypatch.setattr(build, "fetch_source", lambda _scratch: source)
    monkeypatch.setenv("LAB_GPU", "none")
    return tmp_path


def test_a_build_is_stamped_last_and_made_once(fake_tools):
    stamp = build.build(fake_tools / "engine", QUIET)
    facts = json.loads(stamp.read_text())
    assert facts["unity"] is True
    assert facts["seconds"] >= 0
    assert not (stamp.parent / "tree").exists()
    calls = (fake_tools / "calls").read_text()
    assert "llama-server llama-bench llama-batched-bench" in calls
    assert build.build(fake_tools / "engine", QUIET) == stamp
    assert (fake_tools / "calls").read_text() == calls


def test_where_unity_fails_the_plain_build_is_tried(fake_tools):
    (fake_tools / "no-unity").touch()
    stamp = build.build(fake_tools / "engine", QUIET)
    assert json.loads(stamp.read_text())["unity"] is False


def test_a_build_that_fails_keeps_its_log_and_leaves_no_stamp(fake_tools):
    program(fake_tools / "tools" / "cmake", "#!/bin/sh\necho 'no such header'\nexit 3\n")
    with pytest.raises(SetupError, match="no such header"):
        build.build(fake_tools / "engine", QUIET)
    assert build.finished_build(fake_tools / "engine") is None


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setattr(build, "_compiler", lambda: None)


def test_no_compiler_and_nothing_prebuilt_says_how_to_get_one(no_compiler, monkeypatch, tmp_path):
    failed = type("Done", (), {"stderr": "no matching distribution"})
    monkeypatch.setattr(prebuilt.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SetupError, match="apt-get install g"):
        build.build(tmp_path, QUIET)


def test_a_prebuilt_server_is_labelled_as_another_build(no_compiler, monkeypatch, tmp_path):
    wheel = tmp_path / "xllamacpp-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("xllamacpp/__init__.py", FAKE_PACKAGE)
    monkeypatch.setattr(prebuilt, "_fetch", lambda _scratch: wheel)
    monkeypatch.setattr("lab.paths.ENGINE", tmp_path / "engine")
    monkeypatch.setenv("LAB_LLAMA_SERVER", "")
    engine = ensure_engine(QUIET)
    assert (engine.source, engine.lib_dir) == ("xllamacpp", None)
    assert engine.options["package"] == "xllamacpp 1.2.3"
    assert "prebuilt" in engine.build
    assert "spec-ngram-mod-n-match" in flag_table(engine.server).known
    with pytest.raises(SetupError, match="need the built engine"):
        use_libraries(engine)


def test_another_toolkit_is_another_build():
    common = {"source_sha256": "a", "options": build.OPTIONS, "compiler": "g++"}
    plain = build.Recipe(**common, toolkit="none")
    assert plain.digest != build.Recipe(**common, toolkit="cuda").digest


def test_toolkits_can_be_forced_and_refused(monkeypatch, tmp_path):
    nvcc = program(tmp_path / "nvcc")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("LAB_GPU", "cuda")
    chosen = toolkits.choose()
    assert chosen.name == "cuda"
    assert "-DGGML_CUDA=ON" in chosen.cmake
    assert f"-DCMAKE_CUDA_COMPILER={nvcc}" in chosen.cmake
    monkeypatch.setenv("LAB_GPU", "none")
    assert toolkits.choose() == toolkits.NO_TOOLKIT


def test_a_toolkit_without_a_device_is_not_chosen_by_itself(monkeypatch):
    found = toolkits.Toolkit("cuda", present=True, device=False, cmake=(), reason="no card")
    monkeypatch.setattr(toolkits, "detect", lambda: (found,))
    monkeypatch.setenv("LAB_GPU", "auto")
    assert toolkits.choose().name == "none"


@pytest.mark.parametrize(("name", "words"), [("cuuda", "One of auto"), ("hip", "not usable")])
def test_a_toolkit_that_cannot_be_used_is_refused(monkeypatch, name, words):
    monkeypatch.setattr(toolkits, "_has", lambda *_: False)
    with pytest.raises(InputError, match=words):
        toolkits.choose(name)


@pytest.mark.engine
def test_the_built_engine_has_its_six_programs_and_its_libraries():
    engine = find_engine()
    assert isinstance(engine, Engine)
    assert engine.source == "built"
    for target in build.TARGETS:
        assert engine.program(target).is_file()
    assert list(engine.lib_dir.glob("libllama.*"))
    assert engine.summary()["build"] == engine.build
