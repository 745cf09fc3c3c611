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
    used = 0.0
    for pid in pids:
        try:
            times = psutil.Process(pid).cpu_times()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        used += times.user + times.system
        used += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return used
