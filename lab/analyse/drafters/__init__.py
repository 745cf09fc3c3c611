"""What each drafter would have proposed, replayed over recorded token ids.

A greedy answer does not depend on what was drafted, so a recorded answer is enough to
work out, for any setting, every step the server would have taken: what was drafted and
how much of it was right. The behaviour is that of llama.cpp at commit 0c1e570 (read from
``common/ngram-*.cpp``, ``common/speculative.cpp`` and ``tools/server``), quirks included,
and is compared with the engine's own counters by ``bench/agreement.py``.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from numba.core import config


def _keep_kernels_apart() -> None:
    """Keep compiled kernels in a folder named after the source of all of them.

    Numba compiles a kernel anew when its own file changes, but not when a kernel it calls
    does: an edit of ``steps`` would leave every drafter with the old one inside.
    """
    if config.CACHE_DIR:  # type: ignore[attr-defined] # numba sets it from the environment
        return
    here = Path(__file__).parent
    source = b"".join(file.read_bytes() for file in sorted(here.glob("*.py")))
    name = f"kernels-{sha256(source).hexdigest()[:12]}"
    config.CACHE_DIR = str(here / "__pycache__" / name)  # type: ignore[attr-defined]


_keep_kernels_apart()
