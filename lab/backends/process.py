"""One server process on this machine: started clean, watched, and never left behind."""

from __future__ import annotations

import atexit
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from attrs import define

from lab.setup.clean_environment import Environment

LOOPBACK = "127.0.0.1"
STOP_WAIT_S = 5.0
_PR_SET_PDEATHSIG = 1
_RUNNING: weakref.WeakSet[ServerProcess] = weakref.WeakSet()


def free_port() -> int:
    """A loopback port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def random_key() -> str:
    """A key that only the lab and its server know; it travels by environment, never by argv."""
    return secrets.token_urlsafe(24)


@define(eq=False)
class ServerProcess:
    """A started server; ``stop`` ends it and everything it started."""

    argv: tuple[str, ...]
    log_file: Path
    popen: subprocess.Popen[bytes]
    log: IO[bytes]

    @classmethod
    def start(cls, argv: Sequence[str], environment: Environment, log_file: Path) -> ServerProcess:
        """Start ``argv`` in a session of its own, its output going to ``log_file``."""
        log_file.parent.mkdir(parents=True, exist_ok=True)
        log = log_file.open("ab")
        log.write(f"--- {' '.join(argv)}\n".encode())
        log.flush()
        popen = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment.values),
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )
        process = cls(tuple(argv), log_file, popen, log)
        _RUNNING.add(process)
        return process

    @property
    def pid(self) -> int:
        """Process id."""
        return self.popen.pid

    @property
    def returncode(self) -> int | None:
        """Exit status; None while it runs."""
        return self.popen.poll()

    def stop(self) -> None:
        """End the whole process group, politely first."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self.popen.poll() is None:
                _signal_group(self.pid, sign)
                try:
                    self.popen.wait(STOP_WAIT_S)
                except subprocess.TimeoutExpired:
                    continue
        _signal_group(self.pid, signal.SIGKILL)
        self.log.close()
        _RUNNING.discard(self)

    def log_lines(self) -> list[str]:
        """Every line of this start's log; bytes that are no text are replaced."""
        text = self.log_file.read_text(encoding="utf-8", errors="replace")
        return text.rsplit("\n--- ", 1)[-1].splitlines()[1:]


def _signal_group(pid: int, sign: signal.Signals) -> None:
    try:
        os.killpg(pid, sign)
    except (ProcessLookupError, PermissionError):
        return


def _die_with_parent() -> None:
    """Ask the kernel to kill this child when the lab dies, even of SIGKILL.

    The kernel means the thread that started it: servers are started from main threads.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@atexit.register
def stop_all() -> None:
    """Stop every server still running; also called when the interpreter ends."""
    for process in list(_RUNNING):
        process.stop()
