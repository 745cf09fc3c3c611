from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lab.machine import processes
from lab.machine.processes import cpu_seconds, own_tree

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=sys.stdin)
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.parametrize("proc", [Path("/proc"), Path("/nowhere")])
def test_tree_holds_children_of_children(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PROC", proc)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        tree = own_tree()
        child.communicate("\n")
    assert {os.getpid(), child.pid, grandchild} <= tree
    assert os.getppid() not in tree
    assert grandchild not in own_tree()


def test_finished_child_is_counted_by_its_parent() -> None:
    before = cpu_seconds(frozenset({os.getpid()}))
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert cpu_seconds(frozenset({os.getpid()})) > before


def test_own_time_agrees_with_the_system_library(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = cpu_seconds(frozenset({os.getpid()}))
    times = psutil.Process().cpu_times()
    children = times.children_user + times.children_system
    assert ours == pytest.approx(times.user + times.system + children, abs=0.2)
    monkeypatch.setattr(processes, "PROC", Path("/nowhere"))
    assert cpu_seconds(frozenset({os.getpid()})) == pytest.approx(ours - children, abs=0.2)


def test_process_that_is_gone_counts_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    assert cpu_seconds(frozenset({child.pid})) == 0
    assert own_tree(child.pid) == {child.pid}
