"""A llama-server out of the prebuilt package xllamacpp, for machines without a compiler.

Run as a program by the launcher that setup.prebuilt writes. It understands the flags that
the lab gives to a llama-server, and no others; ``--help`` lists them in the same form.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any

import xllamacpp

SIZED = ("simple", "map-k", "map-k4v")


def parser() -> argparse.ArgumentParser:
    """The flags of a llama-server that this one has."""
    known = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False, add_help=False)
    for name in ("model", "host", "spec-type", "flash-attn"):
        known.add_argument(f"--{name}", default=None)
    for name in ("port", "ctx-size", "parallel", "cache-ram", "threads", "threads-batch"):
        known.add_argument(f"--{name}", type=int, default=None)
    for name in ("batch-size", "ubatch-size", "n-gpu-layers"):
        known.add_argument(f"--{name}", type=int, default=None)
    for name in ("n-match", "n-min", "n-max"):
        known.add_argument(f"--spec-ngram-mod-{name}", type=int, default=None)
    for kind in SIZED:
        for name in ("size-n", "size-m", "min-hits"):
            known.add_argument(f"--spec-ngram-{kind}-{name}", type=int, default=None)
    for name in ("metrics", "slots", "help", "version"):
        known.add_argument(f"--{name}", action="store_true")
    return known


def parameters(given: argparse.Namespace) -> Any:
    """The package's parameters from the flags; what is not given stays its default."""
    made = xllamacpp.CommonParams()
    made.model.path = given.model
    plain = {
        "port": given.port,
        "n_ctx": given.ctx_size,
        "n_parallel": given.parallel,
        "cache_ram_mib": given.cache_ram,
        "n_batch": given.batch_size,
        "n_ubatch": given.ubatch_size,
        "n_gpu_layers": given.n_gpu_layers,
        "hostnames": None if given.host is None else [given.host],
        "api_keys": [os.environ["LLAMA_API_KEY"]] if "LLAMA_API_KEY" in os.environ else None,
    }
    for name, value in plain.items():
        if value is not None:
            setattr(made, name, value)
    made.fit_params = False
    made.endpoint_metrics, made.endpoint_slots = given.metrics, given.slots
    if given.threads is not None:
        made.cpuparams.n_threads = given.threads
    if given.threads_batch is not None:
        made.cpuparams_batch.n_threads = given.threads_batch
    if given.flash_attn in {"on", "off"}:
        word = "ENABLED" if given.flash_attn == "on" else "DISABLED"
        made.flash_attn_type = getattr(
            xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{word}"
        )
    _drafting(made.speculative, given)
    return made


def _drafting(speculative: Any, given: argparse.Namespace) -> None:
    if given.spec_type is None:
        return
    kinds = xllamacpp.common_speculative_type
    speculative.types = [
        getattr(kinds, "COMMON_SPECULATIVE_TYPE_" + name.upper().replace("-", "_"))
        for name in given.spec_type.split(",")
    ]
    for flag, value in vars(given).items():
        if value is None or not flag.startswith("spec_ngram_"):
            continue
        for kind in ("mod", "map_k4v", "map_k", "simple"):
            prefix = f"spec_ngram_{kind}_"
            if flag.startswith(prefix):
                setattr(getattr(speculative, f"ngram_{kind}"), flag.removeprefix(prefix), value)
                break


def main() -> None:
    """Serve until told to end."""
    known = parser()
    given = known.parse_args()
    if given.version:
        print(f"version: xllamacpp {xllamacpp.__version__} (prebuilt, {xllamacpp.BUILD_INFO})")  # noqa: T201
        return
    if given.help:
        for action in known._actions:  # noqa: SLF001 - argparse has no public list
            print(f"{action.option_strings[0]} VALUE    of the prebuilt server; on|off for some")  # noqa: T201
        return
    server = xllamacpp.Server(parameters(given))
    print(f"serving on {server.listening_address}", flush=True)  # noqa: T201 - the log
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    sys.exit(0)


if __name__ == "__main__":
    main()
