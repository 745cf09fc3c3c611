"""Which cards a CUDA program sees, and in which order, told by UUID.

CUDA numbers cards by its own guess of speed unless CUDA_DEVICE_ORDER says PCI_BUS_ID;
NVML numbers them by bus. An index says something only where the two orders are known to
agree, so the mapping is given up with a reason rather than guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from lab.machine.nvml import Gpu


@frozen
class Visible:
    """UUIDs in the order in which CUDA numbers them; None when that cannot be known."""

    uuids: tuple[str, ...] | None
    reason: str


def visible_cards(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> Visible:
    """Cards as CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER leave them.

    As in CUDA, the list ends at the first entry that names no card.
    """
    wanted = environ.get("CUDA_VISIBLE_DEVICES")
    by_bus = environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    alike = len({gpu.name for gpu in gpus}) <= 1
    in_order = sorted(gpus, key=lambda gpu: gpu.pci_bus_id or "")
    if wanted is None:
        if by_bus or alike:
            return Visible(tuple(gpu.uuid for gpu in in_order), "all cards, by PCI bus")
        return Visible(None, "different cards, and CUDA_DEVICE_ORDER is not PCI_BUS_ID")
    chosen: list[str] = []
    for entry in (part.strip() for part in wanted.split(",")):
        if entry.isdigit() and not (by_bus or alike):
            return Visible(
                None, "CUDA_VISIBLE_DEVICES names different cards by index: name them by UUID"
            )
        uuid = _named(entry, in_order)
        if uuid is None or uuid in chosen:
            break
        chosen.append(uuid)
    return Visible(tuple(chosen), f"CUDA_VISIBLE_DEVICES={wanted}")


def _named(entry: str, in_order: Sequence[Gpu]) -> str | None:
    if entry.isdigit():
        return in_order[int(entry)].uuid if int(entry) < len(in_order) else None
    matching = [gpu.uuid for gpu in in_order if entry and gpu.uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None
