"""The lab's own processes, told apart from everybody else's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

PROC = Path("/proc")


def own_tree(root: int | None = None) -> frozenset[int]:
    """Ids of a process (this one when None) and of all its descendants.

    Linux names the children of a process in /proc, which costs microseconds; elsewhere
    the whole process table is walked.
    """
    root = os.getpid() if root is None else root
    if (PROC / str(root) / "task" / str(root) / "children").exists():
        return frozenset(_descend(root))
    try:
        children = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return frozenset({root})
    return frozenset({root, *(child.pid for child in children)})


def _descend(pid: int) -> Iterator[int]:
    yield pid
    try:
        threads = list((PROC / str(pid) / "task").iterdir())
        named = [(thread / "children").read_text() for thread in threads]
    except OSError:
        return
    for child in " ".join(named).split():
        yield from _descend(int(child))


def cpu_seconds(pids: frozenset[int]) -> float:
    """CPU time the processes and their finished children have used, seconds.

    A process that ended is counted by its parent once that has waited for it.
    """
    return sum(map(_cpu_seconds, pids))


def _cpu_seconds(pid: int) -> float:
    """User and system time, own and of waited-for children; see proc(5) for the fields."""
    if PROC.exists():
        try:
            fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
