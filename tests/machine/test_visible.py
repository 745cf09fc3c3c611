from __future__ import annotations

import pytest

from lab.machine.nvml import Gpu
from lab.machine.visible import visible_cards

ALIKE = (
    Gpu(uuid="GPU-aaaa", index=1, name="RTX 5060 Ti", pci_bus_id="00000000:05:00.0"),
    Gpu(uuid="GPU-bbbb", index=0, name="RTX 5060 Ti", pci_bus_id="00000000:01:00.0"),
)
MIXED = (
    Gpu(uuid="GPU-cccc", index=0, name="RTX 3060", pci_bus_id="00000000:01:00.0"),
    Gpu(uuid="GPU-dddd", index=1, name="RTX 5090", pci_bus_id="00000000:02:00.0"),
)
BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(
    ("wanted", "uuids"),
    [
        (None, ("GPU-bbbb", "GPU-aaaa")),
        ("1,0", ("GPU-aaaa", "GPU-bbbb")),
        ("1", ("GPU-aaaa",)),
        ("GPU-aaaa,GPU-bbbb", ("GPU-aaaa", "GPU-bbbb")),
        ("GPU-a", ("GPU-aaaa",)),
        ("0,-1,1", ("GPU-bbbb",)),
        ("7,0", ()),
        ("", ()),
    ],
)
def test_case_27_like_cards_in_the_order_of_the_environment(
    wanted: str | None, uuids: tuple[str, ...]
) -> None:
    environ = {} if wanted is None else {"CUDA_VISIBLE_DEVICES": wanted}
    assert visible_cards(ALIKE, environ).uuids == uuids


@pytest.mark.parametrize("environ", [{}, {"CUDA_VISIBLE_DEVICES": "0,1"}])
def test_case_27_different_cards_are_not_guessed(environ: dict[str, str]) -> None:
    seen = visible_cards(MIXED, environ)
    assert seen.uuids is None
    assert "different cards" in seen.reason
    assert visible_cards(MIXED, environ | BY_BUS).uuids == ("GPU-cccc", "GPU-dddd")


def test_case_27_different_cards_by_uuid_are_certain() -> None:
    seen = visible_cards(MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-dddd"})
    assert seen.uuids == ("GPU-dddd",)
