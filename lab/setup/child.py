"""A child process that loads the engine's libraries, so that the lab's own process never does.

llama.cpp keeps global state, may abort, and gives card memory back only when its process
ends: whatever uses it in process runs in a child of its own. Parent and child talk in
JSON, one object a line, over the child's standard input and output; everything the
engine prints goes to a log file. A child ends when its parent does, since its pipes close.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

from cattrs.preconf.json import make_converter

from lab.errors import BackendError, LabError
from lab.setup.engine import Engine, library_dir

CONVERTER = make_converter()
"""Turns the lab's values into what travels as JSON, and back."""

TAIL_LINES = 20
STOP_WAIT_S = 10.0
LIBRARY_VARIABLE = "LLAMA_CPP_LIB_PATH"

_RUN = "import sys; from lab.setup.child import serve; serve(sys.argv[1], sys.argv[2])"
_CONFIGURING = ("LLAMA_ARG_", "LLAMA_LOG_")
"""Environment variables that would change what the engine does behind our back."""

UNTIMED = {"OMP_WAIT_POLICY": "passive"}
"""Threads that wait asleep: on a busy machine, threads that wait by spinning slow a pass
down tenfold (seen with two threads on two cores), and where nothing is timed nothing is
lost."""


class Child:
    """A running child; a context manager that leaves none behind.

    Parameters
    ----------
    function : "module:name" of a generator function that the child runs. It is called
        with ``arguments`` and, by the name ``requests``, an iterator over what the
        parent sends; every object it yields is an answer.
    log_file : where the engine's own output is kept; a temporary file when None.
    timed : leave the engine's threads as a server has them; else see ``UNTIMED``.

    Raises
    ------
    SetupError : the engine has no shared libraries.
    """

    def __init__(
        self,
        engine: Engine,
        function: str,
        arguments: Mapping[str, Any],
        *,
        log_file: Path | None = None,
        timed: bool = False,
    ) -> None:
        environment = child_environment(engine) | ({} if timed else UNTIMED)
        self._log: IO[bytes] = (
            tempfile.TemporaryFile() if log_file is None else log_file.open("ab+")  # noqa: SIM115
        )
        self._log_start = self._log.seek(0, os.SEEK_END)
        self.popen = subprocess.Popen(
            [sys.executable, "-c", _RUN, function, json.dumps(dict(arguments))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is not None:
            self.popen.kill()
        self.close()

    @property
    def pid(self) -> int:
        """Process id."""
        return self.popen.pid

    def alive(self) -> bool:
        """True while the process runs."""
        return self.popen.poll() is None

    def send(self, message: Mapping[str, Any]) -> None:
        """Hand the child one object.

        Raises
        ------
        BackendError : it has ended.
        """
        assert self.popen.stdin is not None  # noqa: S101 - opened as a pipe above
        try:
            self.popen.stdin.write(json.dumps(message).encode() + b"\n")
            self.popen.stdin.flush()
        except OSError as error:
            raise self._died() from error

    def answers(self) -> Iterator[dict[str, Any]]:
        """Everything the child yields, until it is done.

        Raises
        ------
        BackendError : it failed or died; carries its message, or the end of its log.
        """
        assert self.popen.stdout is not None  # noqa: S101 - opened as a pipe above
        for line in self.popen.stdout:
            answer: dict[str, Any] = json.loads(line)
            if "done" in answer:
                return
            if "failed" in answer:
                raise BackendError(answer["failed"])
            yield answer
        raise self._died()

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send one object and wait for one answer."""
        self.send(message)
        return next(self.answers())

    def log_lines(self) -> list[str]:
        """What this child and its engine printed so far."""
        self._log.seek(self._log_start)
        return self._log.read().decode(errors="replace").splitlines()

    def close(self) -> None:
        """End the child and wait for it; safe to call twice."""
        if self.popen.stdin is not None and not self.popen.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.popen.stdin.close()
        try:
            self.popen.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        if self.popen.stdout is not None:
            self.popen.stdout.close()
        self._log.close()

    def _died(self) -> BackendError:
        try:
            code: int | None = self.popen.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            code = None
        tail = "\n".join(f"  {line}" for line in self.log_lines()[-TAIL_LINES:])
        return BackendError(f"the engine's process ended (exit status {code}); it said:\n{tail}")


def child_environment(engine: Engine) -> dict[str, str]:
    """The environment of a child that loads this engine's libraries.

    Raises
    ------
    SetupError : the engine has none.
    """
    removed = removed_variables()
    kept = {name: text for name, text in os.environ.items() if name not in removed}
    # One thread for numpy: its pool must not compete with the engine's.
    return kept | {LIBRARY_VARIABLE: str(library_dir(engine)), "OPENBLAS_NUM_THREADS": "1"}


def removed_variables() -> tuple[str, ...]:
    """Names of the environment variables that a child does not get."""
    return tuple(sorted(name for name in os.environ if name.startswith(_CONFIGURING)))


def run_in_child(
    engine: Engine,
    function: str,
    *,
    log_file: Path | None = None,
    timed: bool = False,
    **arguments: Any,
) -> Iterator[dict[str, Any]]:
    """Everything that ``function`` ("module:name") yields when run in a child; see ``Child``.

    Raises
    ------
    SetupError : the engine has no shared libraries.
    BackendError : the function failed or the process died.
    """
    with Child(engine, function, arguments, log_file=log_file, timed=timed) as child:
        yield from child.answers()


def serve(function: str, arguments: str) -> None:
    """Run ``function`` in this process, which is the child, and write what it yields."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the engine prints must not end up among the answers
    module, name = function.split(":")
    try:
        run = getattr(importlib.import_module(module), name)
        words = json.loads(arguments)
        if "requests" in run.__annotations__:
            words["requests"] = map(json.loads, sys.stdin)
        for answer in run(**words):
            _write(answers, answer)
        _write(answers, {"done": True})
    except BrokenPipeError:
        os._exit(1)  # the parent is gone; nobody is left to be told
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        traceback.print_exc()
        kind = "" if isinstance(error, LabError) else f"{type(error).__name__}: "
        _write(answers, {"failed": f"{kind}{error}"})


def _write(answers: IO[str], answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
