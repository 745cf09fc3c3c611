"""CPU time the sampler takes at 10 samples a second, beside processes like those of a run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from contextlib import ExitStack

from bench import Figure
from lab.machine.bandwidth import median_interval
from lab.machine.sampler import Sampler

KEYS = ("sampler_cpu_fraction",)
SERVERS = 2
THREADS = 16
STRETCHES = 9
STRETCH_S = 5.0

IDLE = """
import sys, threading
for _ in range({threads}):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
sys.stdin.read()
"""


def measure() -> dict[str, Figure]:
    """Median over stretches of the sampling thread's own CPU time, as a fraction of one core."""
    with ExitStack() as stack:
        for _ in range(SERVERS):
            stack.enter_context(_server())
        shares = [_stretch() for _ in range(STRETCHES)]
    low, high = median_interval(shares)
    note = f"beside {SERVERS} processes of {THREADS} threads each"
    return {KEYS[0]: Figure(statistics.median(shares), low, high, STRETCHES, note)}


def _stretch() -> float:
    with Sampler() as sampler:
        time.sleep(STRETCH_S)
        return sampler.overhead


def _server() -> subprocess.Popen[bytes]:
    """A process with the threads of a server; it ends when its input is closed."""
    script = IDLE.format(threads=THREADS)
    return subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
