from __future__ import annotations

import math

import pandas as pd
import pytest


def _simulated(rng, design, spread, *, truth=0.0, arms=("baseline", "x"), categories=1):
    """Measured rows of an experiment with known spreads; the same prompts in each session."""
    prompts = rng.normal(0, spread.prompt, design.prompts)
    sessions = rng.normal(0, spread.session or 0.0, design.sessions)
    rows = []
    for session, shift in enumerate(sessions):
        for prompt, gain in enumerate(prompts):
            for repeat in range(design.repeats):
                for arm in arms:
                    own = truth + shift + gain if arm == "x" else 0.0
                    noise = rng.normal(0, (spread.request or 0.0) / math.sqrt(2))
                    rows.append(
                        {
                            "run_id": f"s{session}",
                            "arm": arm,
                            "prompt_id": f"p{prompt:03d}",
                            "category": f"c{prompt % categories}",
                            "repeat": repeat,
                            "ms_per_token": 10 * math.exp(noise - own),
                        }
                    )
    return pd.DataFrame(rows)


@pytest.fixture
def simulated():
    return _simulated
