"""Does a stand-in compute what its source computes? Logits compared on the source's own texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from lab.errors import SetupError
from lab.inputs.prompts import named_set
from lab.setup.child import run_in_child
from lab.setup.engine import Engine
from lab.setup.standins.router import RouterSpec

PASSES = "lab.setup.standins.passes"
N_PREDICT = 128
PROMPTS = (
    "Explain how a compiler turns source code into machine code.",
    "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    "Write a Python function that checks whether a word is a palindrome.\n\ndef",
    "List ten facts about the ocean and explain each of them in one sentence.\n\n1.",
    "Dear Sir or Madam,\n\nI am writing to ask about the position that",
)
CALIBRATION_CHARACTERS = 160
"""Characters taken from each shipped prompt to calibrate a router: about 2500 tokens in all."""

AGREEMENT_AT_LEAST = 0.95
DIVERGENCE_AT_MOST_NATS = 0.01
"""A sound stand-in is far inside both: other kernels change the last bits of a sum only."""

NO_LIBRARIES = "the engine at hand has no shared libraries to run the models with"


@frozen
class Check:
    """What running a stand-in beside its source showed.

    Attributes
    ----------
    max_abs_logit_difference : over every row and token of the vocabulary.
    kl_divergence_nats : of the stand-in's distribution from the source's, mean over rows.
    top1_agreement : fraction of rows with the same most likely token.
    tokens : rows compared.
    forks : by prompt, the first of 128 greedy tokens that differs; None where none does.
    expert_counts : by layer, how often each expert was chosen; empty in a dense model.
    reason : why nothing was checked; all else is None then.
    """

    max_abs_logit_difference: float | None = None
    kl_divergence_nats: float | None = None
    top1_agreement: float | None = None
    tokens: int | None = None
    forks: tuple[int | None, ...] | None = None
    expert_counts: tuple[tuple[int, ...], ...] = ()
    reason: str | None = None

    def summary(self) -> dict[str, Any]:
        """For the JSON file beside the model."""
        found = asdict(self)
        if self.forks is not None:
            found |= {
                "prompts": len(self.forks),
                "identical_for_128_tokens": sum(fork is None for fork in self.forks),
            }
        if self.expert_counts:
            shares = [[n / sum(layer) for n in layer] for layer in self.expert_counts]
            found |= {
                "largest_expert_share": max(map(max, shares)),
                "smallest_expert_share": min(map(min, shares)),
            }
        return found


@frozen
class Reference:
    """The source's run: its texts (prompt and continuation, token ids) and where its logits are."""

    texts: Sequence[Sequence[Sequence[int]]]
    folder: Path


def run_source(
    engine: Engine, source: Path, folder: Path, router: RouterSpec | None = None
) -> Reference:
    """Run the source once: texts, logits, and router rows (router.npy) if a router is asked for.

    Raises
    ------
    BackendError : the engine could not run it.
    """
    spec = router or RouterSpec(0, 0)
    answers = run_in_child(
        engine,
        f"{PASSES}:source_run",
        file=str(source),
        prompts=PROMPTS,
        n_predict=N_PREDICT,
        calibration=calibration_texts() if router else [],
        experts=spec.experts,
        seed=spec.seed,
        folder=str(folder),
    )
    return Reference(next(iter(answers))["texts"], folder)


def check_standin(engine: Engine, reference: Reference, standin: Path) -> Check:
    """Compare a stand-in with its source.

    Raises
    ------
    SetupError : it computes something else.
    """
    answers = run_in_child(
        engine,
        f"{PASSES}:standin_run",
        file=str(standin),
        texts=reference.texts,
        folder=str(reference.folder),
    )
    found = next(iter(answers))
    check = Check(
        **{
            **found,
            "forks": tuple(found["forks"]),
            "expert_counts": tuple(map(tuple, found["expert_counts"])),
        }
    )
    same = (
        found["top1_agreement"] >= AGREEMENT_AT_LEAST
        and found["kl_divergence_nats"] <= DIVERGENCE_AT_MOST_NATS
    )
    if not same:
        raise SetupError(
            f"{standin.name} does not compute what its source does: logits differ by up to "
            f"{check.max_abs_logit_difference:.3g}, the most likely token agrees in "
            f"{check.top1_agreement:.1%} of {check.tokens} rows. It was thrown away"
        )
    return check


def calibration_texts() -> list[str]:
    """Text of many kinds to calibrate a router on: the beginnings of the shipped prompts."""
    return [one.text[:CALIBRATION_CHARACTERS] for one in named_set("diverse").prompts]
