"""Does the lab's decode speed agree with llama-bench's on the same model, threads and build?"""

from __future__ import annotations

import json
import math
import random
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from bench import Figure
from lab.analyse.stats import mean_log
from lab.backends.llama_server import LlamaServerBackend
from lab.backends.protocol import Request, Session
from lab.inputs.profiles import load_profile
from lab.inputs.prompts import named_set
from lab.setup.engine import Engine, find_engine
from lab.setup.models import embedded_model

KEYS = ("llama_bench_ratio", "client_overhead_fraction")
ROUNDS = 16
TOKENS = 128


def _llama_bench_tok_s(engine: Engine, depth: int) -> float:
    """Tokens a second of ``llama-bench -n``; its own warm-up and one repeat."""
    words = ["-m", embedded_model(), "-n", TOKENS, "-p", 0, "-d", depth, "-r", 1, "-fa", 1]
    done = subprocess.run(
        [engine.program("llama-bench"), *map(str, words), "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout)[0]["avg_ts"])


def _lab(session: Session, tokens: tuple[int, ...]) -> tuple[float, float]:
    """Decode tokens a second as the lab defines them, and the client's share of a request."""
    reply = session.generate(Request(tokens, n_predict=TOKENS + 1))
    timings = reply.timings
    assert timings.predicted_ms and timings.predicted_n and timings.prompt_ms  # noqa: PT018, S101
    rate = 1000 * (timings.predicted_n - 1) / timings.predicted_ms
    served_ms = timings.prompt_ms + timings.predicted_ms
    return rate, (reply.e2e_ms - served_ms) / reply.e2e_ms


def measure() -> dict[str, Figure]:
    """Both tools in random order, round by round; one ratio a round."""
    engine, profile = find_engine(), load_profile("embedded")
    draw = random.Random(1)  # noqa: S311 - an experimental design
    logs, overheads = [], []
    with tempfile.TemporaryDirectory() as folder:
        backend = LlamaServerBackend(engine, {"target": embedded_model()}, Path(folder))
        with backend.open(profile.baseline(), log="bench") as session:
            tokens = session.encode(named_set("article8").prompts[1])
            _lab(session, tokens)
            for _ in range(ROUNDS):
                lab_first = draw.random() < 0.5  # noqa: PLR2004 - a coin
                if not lab_first:
                    other = _llama_bench_tok_s(engine, len(tokens))
                rate, overhead = _lab(session, tokens)
                if lab_first:
                    other = _llama_bench_tok_s(engine, len(tokens))
                logs.append(math.log(rate / other))
                overheads.append(overhead)
    ratio = mean_log(np.array(logs), unit_of_n="round")
    assert ratio.value is not None  # noqa: S101 - there are rounds
    low, high = np.quantile(overheads, [0.025, 0.975])
    return {
        "llama_bench_ratio": Figure(
            ratio.value - 1,
            None if ratio.low is None else ratio.low - 1,
            None if ratio.high is None else ratio.high - 1,
            ROUNDS,
            f"rounds of {TOKENS} tokens each, interleaved",
        ),
        "client_overhead_fraction": Figure(
            float(np.median(overheads)), float(low), float(high), ROUNDS, "median request"
        ),
    }
