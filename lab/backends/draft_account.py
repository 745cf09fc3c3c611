"""What a drafter proposed and how much of it came true, for drafters that keep no count."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field


@define
class DraftAccount:
    """Counts drafts of one generation.

    A draft is judged when it is known what followed: at the next one, or by ``settle``.

    Attributes
    ----------
    steps : drafts that were not empty. proposed : tokens in them.
    accepted : by judged draft, how many tokens of it came true before the first that did not.
    """

    steps: int = 0
    proposed: int = 0
    accepted: list[int] = field(factory=list)
    _pending: tuple[int, tuple[int, ...]] | None = None

    def propose(self, length: int, draft: Sequence[int]) -> None:
        """Note a draft made when the sequence was ``length`` tokens long."""
        if len(draft):
            self.steps += 1
            self.proposed += len(draft)
            self._pending = (length, tuple(map(int, draft)))

    def settle(self, sequence: Sequence[int]) -> None:
        """Judge the last draft by the sequence so far."""
        if self._pending is None:
            return
        length, draft = self._pending
        self._pending = None
        run = 0
        for proposed, came in zip(draft, sequence[length:], strict=False):
            if proposed != came:
                break
            run += 1
        self.accepted.append(run)

    def per_position(self) -> list[int]:
        """How many steps accepted their draft's token i."""
        return [
            sum(run > position for run in self.accepted)
            for position in range(max(self.accepted, default=0))
        ]
