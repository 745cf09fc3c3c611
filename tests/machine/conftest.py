from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parent / "fake_nvml" / "nvml.c"


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a libnvidia-ml.so.1 that plays recorded devices."""
    folder = tmp_path_factory.mktemp("nvml")
    compiler = shutil.which("cc")
    assert compiler is not None, "a C compiler is needed to build the stand-in for NVML"
    library = folder / "libnvidia-ml.so.1"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", library, SOURCE], check=True)
    return folder


@pytest.fixture
def play(fake_nvml: Path) -> Callable[..., Any]:
    """Run a script beside the real pynvml and a scenario; give back what it prints as JSON."""

    def run(scenario: str, script: str, **environment: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            env=os.environ
            | {"LD_LIBRARY_PATH": str(fake_nvml), "LAB_FAKE_NVML": scenario}
            | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
