"""What a server's step costs besides its pass over the model."""

from __future__ import annotations

from attrs import frozen


@frozen
class StepOverhead:
    """What a server's step costs besides its pass, milliseconds.

    Attributes
    ----------
    token_ms : choosing one token from a row of logits. A server stops choosing at the first
        row that disagrees with the draft, so a step chooses as many as it gives.
    step_ms : every step: the server's loop, accounting, sending.
    asked_ms : every step of a server that drafts: asking its drafter.
    drafted_ms : every step with a draft: copying the sampler, cutting the cache back.
    """

    token_ms: float = 0.0
    step_ms: float = 0.0
    asked_ms: float = 0.0
    drafted_ms: float = 0.0

    @property
    def plain_ms(self) -> float:
        """A step of a server that does not draft."""
        return self.token_ms + self.step_ms


NOTHING_BESIDES = StepOverhead()
