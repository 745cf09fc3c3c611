"""Small made-up frames, one set a figure, with the columns its docstring asks for."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("agg")

Frames = dict[str, pd.DataFrame]

ARMS = (
    "ngram-mod-24-48-64",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-cache",
    "ngram-mod-short",
)
GAINS = (1.003, 1.012, 0.988, 1.034, 0.94, 1.16)
CATEGORIES = ("code-python", "code-edit", "summary", "translation", "maths", "dialogue", "chinese")


def _rng(word: str) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, word)))


def _estimates(keys: dict[str, object], value: float, n: int, half: float = 0.012) -> dict:
    return keys | {
        "speedup": value,
        "low": value * (1 - half),
        "high": value * (1 + half),
        "n": n,
    }


def _spread(rng: np.random.Generator, value: float, n: int, sd: float = 0.03) -> np.ndarray:
    return value * np.exp(rng.normal(0, sd, n))


def climb() -> Frames:
    rng, rows, raw = _rng("climb"), [], []
    tops = dict(zip(("baseline-again", *ARMS[:5]), (1.0, 2.6, 1.0, 1.4, 1.5, 0.95), strict=True))
    for arm, top in tops.items():
        for run in range(1, 11):
            gain = 1 + (top - 1) * (1 - np.exp(-(run - 1) / 2))
            rows.append(_estimates({"arm": arm, "run": run}, gain, 6, 0.03))
            raw += [
                {"arm": arm, "run": run, "prompt_id": f"p{index}", "speedup": value}
                for index, value in enumerate(_spread(rng, gain, 6, 0.05))
            ]
    published = {"run": [1, 2, 3, 5, 8, 10], "speedup": [1.0, 1.2, 1.27, 2.11, 3.81, 4.75]}
    reference = pd.DataFrame(published | {"source": "Gemma 4, two RTX 5060 Ti"})
    return {"frame": pd.DataFrame(rows), "points": pd.DataFrame(raw), "reference": reference}


def pool_vs_cache() -> Frames:
    rng, rows, raw = _rng("pool"), [], []
    for (pool, cache), gain in zip(
        ((False, False), (False, True), (True, False), (True, True)),
        (1.0, 1.01, 1.42, 1.45),
        strict=True,
    ):
        keys: dict[str, object] = {"pool": pool, "cache": cache}
        rows.append(_estimates(keys, gain, 8, 0.02))
        raw += [keys | {"speedup": value} for value in _spread(rng, gain, 8)]
    return {"frame": pd.DataFrame(rows), "points": pd.DataFrame(raw)}


def forgetting() -> Frames:
    rng, rows, raw = _rng("forget"), [], []
    for arm, top in (("ngram-mod-24-48-64", 1.5), ("ngram-cache", 1.15), ("baseline-again", 1.0)):
        for between in (0, 1, 2, 4, 8, 16, 32):
            gain = 1 + (top - 1) / (1 + between / 6)
            keys: dict[str, object] = {"arm": arm, "distinct_between": between}
            rows.append(_estimates(keys, gain, 6, 0.03))
            raw += [keys | {"speedup": value} for value in _spread(rng, gain, 6)]
    return {"frame": pd.DataFrame(rows), "points": pd.DataFrame(raw)}


def speedup_by_arm() -> Frames:
    rng, rows, raw = _rng("arm"), [], []
    verdicts = (
        "equivalent to 1×",
        "inconclusive",
        "equivalent to 1×",
        "faster",
        "slower",
        "faster",
    )
    arms = zip((*ARMS, "baseline-again"), (*GAINS, 1.0), (*verdicts, "noise floor"), strict=True)
    for arm, gain, verdict in arms:
        rows.append(_estimates({"arm": arm, "verdict": verdict}, gain, 24))
        raw += [
            {"arm": arm, "prompt_id": f"p{index}", "speedup": value}
            for index, value in enumerate(_spread(rng, gain, 24))
        ]
    return {"frame": pd.DataFrame(rows), "points": pd.DataFrame(raw)}


def _grid(
    word: str, panel: str, panels: tuple[str, ...], row: str, names: tuple[str, ...]
) -> Frames:
    rng, rows, raw = _rng(word), [], []
    for first in panels:
        for second in names:
            gain = float(np.exp(rng.normal(0.02, 0.06)))
            keys: dict[str, object] = {panel: first, row: second}
            rows.append(_estimates(keys, gain, 8, 0.025))
            raw += [keys | {"speedup": value} for value in _spread(rng, gain, 8)]
    return {"frame": pd.DataFrame(rows), "points": pd.DataFrame(raw)}


def speedup_by_category() -> Frames:
    return _grid("category", "arm", ARMS, "category", CATEGORIES)


def speedup_by_state() -> Frames:
    return _grid("state", "state", ("cold", "warm-other", "warm-same"), "arm", ARMS)


def speedup_by_machine() -> Frames:
    machines = ("2-core VM, b6000", "RTX 5060 Ti, b6000")
    return _grid("machine", "run_label", machines, "arm", ARMS)


def noise_floor() -> Frames:
    values = _spread(_rng("noise"), 1.002, 48, 0.015)
    points = pd.DataFrame({"ordinal": range(48), "speedup": values})
    return {"points": points, "frame": pd.DataFrame([_estimates({}, 1.002, 48, 0.004)])}


def coverage_acceptance() -> Frames:
    rng, rows = _rng("coverage"), []
    for arm in ARMS[:4]:
        for category in CATEGORIES:
            coverage = float(rng.beta(1, 5))
            length = 1 + float(rng.gamma(2, 1.5))
            silent = coverage < 0.02
            rows.append(
                {
                    "arm": arm,
                    "category": category,
                    "draft_coverage": 0.0 if silent else coverage,
                    "acceptance_length": np.nan if silent else length,
                }
            )
    coverage = np.linspace(0.02, 0.7, 60)
    lines = [
        pd.DataFrame(
            {
                "level": f"{level:g} tok/step",
                "draft_coverage": coverage,
                "acceptance_length": 1 + (level - 1) / coverage,
            }
        )
        for level in (1.1, 1.25, 1.5, 2)
    ]
    return {"points": pd.DataFrame(rows), "isolines": pd.concat(lines, ignore_index=True)}


WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 24, 32, 33, 48, 64, 65)


def _cost(width: float, slope: float) -> float:
    return 1 + slope * (width - 1)


def verify_cost() -> Frames:
    rows = [
        {
            "model": model,
            "depth": depth,
            "width": width,
            "verify_cost": _cost(width, slope * (1 + depth / 20_000)),
            "low": _cost(width, slope * (1 + depth / 20_000)) * 0.96,
            "high": _cost(width, slope * (1 + depth / 20_000)) * 1.04,
            "n": 9,
        }
        for model, slope in (("dense", 0.34), ("moe", 0.42))
        for depth in (256, 1024, 4096)
        for width in WIDTHS
    ]
    bound = [
        {"model": model, "width": width, "verify_cost": _cost(width, slope)}
        for model, slope in (("dense", 0.3), ("moe", 0.36))
        for width in (1, 2, 4, 8, 16, 32, 64)
    ]
    published = {"width": [1, 2, 4, 8, 16, 32, 64], "verify_cost": [1, 1.2, 1.34, 2, 3.3, 3.5, 6.1]}
    return {
        "frame": pd.DataFrame(rows),
        "switches": pd.DataFrame({"width": [9, 33], "name": ["matrix kernel", "tiled"]}),
        "lower_bound": pd.DataFrame(bound),
        "reference": pd.DataFrame(published | {"system": "MI50 27B Q8_0"}),
    }


def predicted_vs_measured() -> Frames:
    rng, rows = _rng("predicted"), []
    for arm in ARMS[:4]:
        for _ in range(12):
            predicted = float(np.exp(rng.normal(0.15, 0.25)))
            residual = float(np.exp(rng.normal(-0.01, 0.03)))
            measured = predicted * residual
            rows.append(
                {
                    "arm": arm,
                    "predicted": predicted,
                    "predicted_low": predicted * 0.97,
                    "predicted_high": predicted * 1.03,
                    "measured": measured,
                    "measured_low": measured * 0.98,
                    "measured_high": measured * 1.02,
                    "residual": residual,
                }
            )
    return {"points": pd.DataFrame(rows)}


def break_even_map() -> Frames:
    widths, lengths = (2, 3, 4, 5, 8, 9, 16, 32), (1, 1.5, 2, 3, 4, 6, 8, 12)
    rows = [
        {
            "width": width,
            "acceptance_length": length,
            "speedup": length / _cost(width, 0.3) if length <= width else np.nan,
        }
        for width in widths
        for length in lengths
    ]
    boundary = {"width": widths, "acceptance_length": [_cost(width, 0.3) for width in widths]}
    return {"frame": pd.DataFrame(rows), "boundary": pd.DataFrame(boundary)}


def replay_map() -> Frames:
    rng, rows = _rng("replay"), []
    for drafter in ("ngram-simple", "ngram-mod"):
        for match in (2, 3, 4, 6, 8, 12, 16, 24):
            for draft in (2, 4, 8, 16, 32, 64):
                gain = float(np.exp(0.2 / match - draft / 400 + rng.normal(0, 0.01)))
                rows.append(
                    {
                        "drafter": drafter,
                        "match_length": match,
                        "draft_length": draft,
                        "speedup": gain,
                    }
                )
    frame = pd.DataFrame(rows)
    frame["best"] = frame["speedup"] == frame.groupby("drafter")["speedup"].transform("max")
    return {"frame": frame}


def attribution() -> Frames:
    parts = {
        "ngram-mod-24-48-64": (0.01, 0.02, -0.025, -0.004),
        "ngram-simple": (0.10, 0.14, -0.19, -0.02),
        "ngram-cache": (0.18, 0.08, -0.34, 0.01),
        "ngram-mod-short": (0.16, 0.24, -0.24, -0.01),
    }
    factors = ("coverage", "acceptance length", "step cost", "residual")
    rows = [
        {"arm": arm, "factor": factor, "log_contribution": part}
        for arm, logs in parts.items()
        for factor, part in zip(factors, logs, strict=True)
    ]
    totals = [_estimates({"arm": arm}, float(np.exp(sum(logs))), 24) for arm, logs in parts.items()]
    return {"frame": pd.DataFrame(rows), "totals": pd.DataFrame(totals)}


def architecture() -> Frames:
    cost = [
        {
            "model": model,
            "width": width,
            "verify_cost": _cost(width, slope),
            "low": _cost(width, slope) * 0.95,
            "high": _cost(width, slope) * 1.05,
            "n": 9,
        }
        for model, slope in (("moe (stand-in)", 0.43), ("dense", 0.36), ("deep (stand-in)", 0.35))
        for width in WIDTHS
    ]
    speed = [
        {"model": model, "decode_tok_s": value, "low": value * 0.98, "high": value * 1.02, "n": 12}
        for model, value in (("moe (stand-in)", 73.0), ("dense", 69.0), ("deep (stand-in)", 19.4))
    ]
    published = {"name": ["Gemma 4 26B-A4B", "Qwen3-32B"], "decode_tok_s": [88.3, 20.4]}
    return {
        "cost": pd.DataFrame(cost),
        "speed": pd.DataFrame(speed),
        "reference": pd.DataFrame(published),
    }


def experts_touched() -> Frames:
    rng, widths = _rng("experts"), (1, 2, 4, 8, 16, 32)
    expected = [8 * (1 - (1 - 1 / 8) ** width) for width in widths]
    keys = {"model": "moe (stand-in)", "width": widths}
    frame = pd.DataFrame(keys | {"experts": np.array(expected) * 0.95, "n": 30})
    frame["low"], frame["high"] = frame["experts"] * 0.97, frame["experts"] * 1.03
    raw = pd.DataFrame(
        [
            {"model": "moe (stand-in)", "width": width, "experts": mean * rng.uniform(0.85, 1.05)}
            for width, mean in zip(widths, expected, strict=True)
            for _ in range(10)
        ]
    )
    return {"frame": frame, "points": raw, "expected": pd.DataFrame(keys | {"experts": expected})}


def roofline() -> Frames:
    attained = pd.DataFrame(
        {
            "model": ["dense", "moe (stand-in)", "deep (stand-in)"],
            "decode_tok_s": [69.0, 73.0, 19.4],
            "low": [67.0, 71.0, 19.0],
            "high": [71.0, 75.0, 19.8],
            "n": 12,
            "ceiling_tok_s": [120.0, 118.0, 28.0],
            "attained_share": [0.575, 0.62, 0.69],
        }
    )
    roof = pd.DataFrame(
        {
            "intensity": [0.5, 5.0, 200.0],
            "gflop_s": [6.0, 60.0, 60.0],
            "ridge": [False, True, False],
        }
    )
    widths = pd.DataFrame(
        [
            {
                "model": model,
                "width": width,
                "intensity": 1.8 * width,
                "gflop_s": scale * min(60.0, 12 * 1.8 * width) / (1 + 0.02 * width),
            }
            for model, scale in (("dense", 0.62), ("moe (stand-in)", 0.5))
            for width in (1, 2, 4, 8, 16, 32, 64)
        ]
    )
    return {"attained": attained, "roof": roof, "widths": widths}


def clocks() -> Frames:
    rng, rows = _rng("clocks"), []
    levels = (("SM clock", "MHz", 2700.0), ("Memory clock", "MHz", 14000.0), ("Power", "W", 145.0))
    for device in ("GPU 0 (RTX 5060 Ti)", "GPU 1 (RTX 5060 Ti)"):
        for quantity, unit, level in levels:
            rows += [
                {
                    "device": device,
                    "quantity": quantity,
                    "unit": unit,
                    "elapsed_s": second / 2,
                    "value": level * (0.6 if 60 < second < 80 else 1) * rng.normal(1, 0.01),
                }
                for second in range(120)
            ]
    spans = pd.DataFrame({"start_s": [30.0], "end_s": [40.0], "name": ["throttled"]})
    return {"frame": pd.DataFrame(rows), "spans": spans}


def draft_ladder() -> Frames:
    rows, predicted = [], []
    for arm, rate in (("draft Q4_1 (same)", 1.0), ("draft Q3_K", 0.85), ("draft Q2_K", 0.6)):
        for length in (1, 2, 3, 4, 6, 8, 12, 16):
            accepted = rate ** (1 + length / 6)
            gain = (1 + accepted * length) / (_cost(length + 1, 0.1) + 0.2 * length)
            row = _estimates({"arm": arm, "draft_length": length}, gain, 8, 0.02)
            row |= {"acceptance_rate": accepted, "acceptance_low": accepted * 0.97}
            rows.append(row | {"acceptance_high": min(1.0, accepted * 1.03)})
            predicted.append({"arm": arm, "draft_length": length, "speedup": gain * 1.03})
    foretold = pd.DataFrame(predicted)
    foretold["best"] = foretold["speedup"] == foretold.groupby("arm")["speedup"].transform("max")
    return {"frame": pd.DataFrame(rows), "predicted": foretold}


LEVERS = (
    ("weights", "Q4_0", 1.24, 0.031, 92.0),
    ("threads", "2", 1.21, None, 130.0),
    ("weights", "IQ4_NL", 1.05, 0.012, 96.0),
    ("flash attention", "on", 1.03, None, 128.0),
    ("context", "1024", 1.005, None, 118.0),
    ("mmap", "off", 1.0, None, 131.0),
    ("cache K", "q8_0", 0.99, 0.0009, 122.0),
    ("cache K and V", "q4_0", 0.96, 0.019, 112.0),
    ("speculation", "ngram-mod", 0.995, None, 133.0),
    ("weights", "Q8_0", 0.7, 0.0, 170.0),
    ("threads", "1", 0.55, None, 130.0),
)


def lever_ranking() -> Frames:
    rows = []
    for lever, setting, gain, loss, memory in LEVERS:
        row = _estimates(
            {"lever": lever, "setting": setting, "memory_mib": memory}, gain, 12, 0.015
        )
        row["kl_divergence"] = np.nan if loss is None else loss
        row["quality_reason"] = "same arithmetic" if loss is None else None
        row["kl_low"] = np.nan if loss is None else loss * 0.8
        row["kl_high"] = np.nan if loss is None else loss * 1.2
        rows.append(row)
    return {"frame": pd.DataFrame(rows)}


def pareto() -> Frames:
    frame = lever_ranking()["frame"].fillna({"kl_divergence": 0.0, "kl_low": 0.0, "kl_high": 0.0})
    frame["setting"] = frame["lever"] + " " + frame["setting"]
    frame["on_front"] = [index in {0, 1} for index in range(len(frame))]
    return {"frame": frame}


def concurrency() -> Frames:
    rows = []
    for arm, scale in (("baseline", 1.0), ("ngram-simple", 0.93)):
        for streams in (1, 2, 4, 8, 16):
            total, each = scale * 70 * streams**0.6, 14 * streams**0.4 / scale
            rows.append(
                {
                    "arm": arm,
                    "streams": streams,
                    "throughput_tok_s": total,
                    "throughput_low": total * 0.96,
                    "throughput_high": total * 1.04,
                    "tpot_ms": each,
                    "tpot_low": each * 0.95,
                    "tpot_high": each * 1.05,
                    "n": 6,
                }
            )
    return {"frame": pd.DataFrame(rows)}


CLAIMS = (
    ("A repeated prompt becomes several times faster", "supported", 1.42, "ratio", None),
    ("On diverse prompts drafting changes nothing", "supported", 1.003, "ratio", None),
    ("Verifying N tokens costs the same as one", "refuted", 3.67, "ratio", None),
    ("Consumer cards have no idle compute while decoding", "inconclusive", 0.61, "share", None),
    ("A mixture of experts pays more for verifying", "supported", 1.08, "ratio", None),
    ("Two cards nearly double the speed", "not testable here", None, "ratio", "needs two GPUs"),
    ("Speculation is always lossless", "refuted", None, "ratio", "3 of 96 answers fork"),
)


def ledger_overview() -> Frames:
    rows = [
        {
            "claim": claim,
            "verdict": verdict,
            "value": np.nan if value is None else value,
            "low": np.nan if value is None else value * 0.97,
            "high": np.nan if value is None else value * 1.03,
            "n": 24,
            "unit": unit,
            "effect": words,
        }
        for claim, verdict, value, unit, words in CLAIMS
    ]
    return {"frame": pd.DataFrame(rows)}


def timeline() -> Frames:
    rng, rows = _rng("timeline"), []
    for name, chance in (
        ("edit-03 · ngram-simple", 0.3),
        ("log-01 · ngram-mod", 0.12),
        ("story", 0),
    ):
        position = 0
        while position < 240:
            drafted = int(rng.integers(4, 24)) if rng.random() < chance else 0
            accepted = int(rng.integers(0, drafted + 1)) if drafted else 0
            rows.append(
                {
                    "generation": name,
                    "position": position,
                    "drafted": drafted,
                    "accepted": accepted,
                }
            )
            position += 1 + accepted
    return {"frame": pd.DataFrame(rows)}


BUILDERS: dict[str, Callable[[], Frames]] = {
    build.__name__: build
    for build in (
        architecture,
        attribution,
        break_even_map,
        climb,
        clocks,
        concurrency,
        coverage_acceptance,
        draft_ladder,
        experts_touched,
        forgetting,
        ledger_overview,
        lever_ranking,
        noise_floor,
        pareto,
        pool_vs_cache,
        predicted_vs_measured,
        replay_map,
        roofline,
        speedup_by_arm,
        speedup_by_category,
        speedup_by_machine,
        speedup_by_state,
        timeline,
        verify_cost,
    )
}


@pytest.fixture
def frames_of() -> Callable[[str], Frames]:
    """Made-up frames of a figure by its name."""
    return lambda name: BUILDERS[name]()
