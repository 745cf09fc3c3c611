"""Every error the lab raises on purpose.

::

    LabError
    ├── InputError          a person's file, field or value is wrong
    ├── SetupError          engine, toolkit or model could not be made ready
    ├── BackendError        talking to a model went wrong
    │   ├── LaunchError     the server never became ready
    │   ├── StrangerError   something else answers on the address
    │   └── RequestError    one request failed (typed by ``kind``)
    ├── ResultsError        the results folder cannot be used as asked
    ├── NotComparable       two things were asked to be compared that must not be
    └── NotebookError       a notebook was refused, failed or was killed

A message names the file, the field, the value and what to do, in one sentence each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class LabError(Exception):
    """Root of every error raised on purpose; ``str()`` is fit to show a person."""


class InputError(LabError):
    """A file, field or value written by a person cannot be used.

    Parameters
    ----------
    problem : what is wrong, one sentence without full stop.
    file, field, value : where it is wrong; left out of the message when None.
    fix : what to do about it.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: Path | str | None = None,
        field: str | None = None,
        value: object = None,
        fix: str | None = None,
    ) -> None:
        self.problem, self.file, self.field, self.value, self.fix = problem, file, field, value, fix
        where = ": ".join(str(part) for part in (file, field) if part is not None)
        got = "" if value is None else f" (got {value!r})"
        advice = "" if fix is None else f". {fix}"
        super().__init__(f"{where + ': ' if where else ''}{problem}{got}{advice}")


class SetupError(LabError):
    """The engine, a toolkit or a model could not be made ready."""


class BackendError(LabError):
    """Talking to a model went wrong."""


class LaunchError(BackendError):
    """A server never became ready.

    Attributes
    ----------
    returncode : exit status of the process; None while it still ran at the deadline.
    log_tail : the last lines the server wrote (at most 30).
    cause : the recognised cause in plain words; None when none was recognised.
    """

    def __init__(
        self, problem: str, *, returncode: int | None, log_tail: tuple[str, ...], cause: str | None
    ) -> None:
        self.returncode, self.log_tail, self.cause = returncode, log_tail, cause
        lines = [problem if cause is None else f"{problem}: {cause}"]
        if log_tail:
            lines += ["last lines of the server log:", *(f"  {line}" for line in log_tail)]
        super().__init__("\n".join(lines))


class StrangerError(BackendError):
    """The address is answered by a process the lab did not start."""


class RequestError(BackendError):
    """One request failed; it is recorded with its ``kind`` and the run goes on.

    ``kind`` is one of ``context``, ``client`` (other 4xx), ``server`` (5xx),
    ``timeout``, ``connection``, ``truncated`` (stream cut before its last event)
    and ``garbage`` (an answer that cannot be read).
    """

    def __init__(self, kind: str, problem: str) -> None:
        self.kind = kind
        super().__init__(problem)


class ResultsError(LabError):
    """A results folder cannot be read, written or shared as asked."""


class NotComparable(LabError):  # noqa: N818 - reads as the verdict it is
    """Two runs or arms were asked to be compared though what must match does not."""


class NotebookError(LabError):
    """A notebook was refused before it started, failed, or its kernel died."""
