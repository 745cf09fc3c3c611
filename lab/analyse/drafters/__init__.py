"""What each drafter would have proposed, replayed over recorded token ids.

A greedy answer does not depend on what was drafted, so a recorded answer is enough to
work out, for any setting, every step the server would have taken: what was drafted and
how much of it was right. The behaviour is that of llama.cpp at commit 0c1e570 (read from
``common/ngram-*.cpp``, ``common/speculative.cpp`` and ``tools/server``), quirks included,
and is compared with the engine's own counters by ``bench/agreement.py``.
"""
