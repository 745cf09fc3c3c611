"""What a draft model would propose anywhere in a recorded text, from one pass over it.

While its proposals are right, a draft model stands on the recorded text itself; it leaves
it with its first wrong token, where the target cuts the draft anyway. Its greedy choice
after every true prefix therefore tells how many tokens of a draft of any length would be
accepted at any place: as many as there are right choices in a row.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from lab.errors import InputError
from lab.inputs.arm import ServerSettings
from lab.setup.child import CONVERTER, run_in_child
from lab.setup.engine import Engine


@frozen
class Choices:
    """A draft model's greedy choices along one text.

    Attributes
    ----------
    tokens : the text. choice : what the model would say after tokens[: i + 1].
    probability : of that choice among the ten likeliest, which is what the engine holds
        against the least probability it is asked for (``--spec-draft-p-min``).
    """

    tokens: NDArray[np.int32]
    choice: NDArray[np.int32]
    probability: NDArray[np.float32]

    def right_in_a_row(self) -> NDArray[np.int64]:
        """For a draft that starts after tokens[: i + 1]: choices that are right in a row.

        A draft of n tokens is accepted up to min(n, this); the text's end counts as wrong.
        """
        right = self.choice[:-1] == self.tokens[1:]
        runs = np.zeros(len(self.tokens), np.int64)
        for i in range(len(right) - 1, -1, -1):
            runs[i] = runs[i + 1] + 1 if right[i] else 0
        return runs


def teacher_forced(
    engine: Engine,
    draft: Path,
    texts: Sequence[Sequence[int]],
    *,
    settings: ServerSettings | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[Choices, ...]:
    """Run ``draft`` over recorded texts (prompt and continuation, token ids).

    Choices are made in passes of several tokens, so where two tokens are as likely as each
    other the engine's own draft, made token by token, may differ.

    Raises
    ------
    InputError : a text is empty or longer than the context.
    BackendError : the engine failed.
    """
    settings = settings or ServerSettings()
    for number, text in enumerate(texts):
        if not 0 < len(text) <= settings.n_ctx:
            raise InputError(
                f"has {len(text)} tokens, the context {settings.n_ctx}",
                field=f"texts[{number}]",
                fix="Raise n_ctx",
            )
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "choices.npz"
        answers = run_in_child(
            engine,
            "lab.measure.text_passes:choices",
            file=str(draft),
            settings=CONVERTER.unstructure(settings),
            texts=[list(map(int, text)) for text in texts],
            target=str(target),
        )
        for done, _ in enumerate(answers, 1):
            on_progress(done, len(texts))
        with np.load(target) as found:
            return tuple(
                Choices(np.asarray(text, np.int32), found[f"choice{i}"], found[f"probability{i}"])
                for i, text in enumerate(texts)
            )
