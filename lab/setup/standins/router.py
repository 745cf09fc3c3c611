"""A router that spreads real text over identical experts about as evenly as chance would.

Rows drawn at random send most tokens to few experts: hidden states share a large mean
and drift slowly along a text, so neighbouring tokens agree. A pass over eight tokens of
SmolLM2 then reads two thirds of the experts that independent choices would. The rows
made here are drawn at random too, but from directions in which hidden states change from
token to token, scaled to equal variance, and with the mean taken out. Only numpy is
needed; the hidden states come from whoever watches the model.
"""

from __future__ import annotations

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIRECTIONS = 256
"""Random directions whose covariance is estimated, a layer: few enough for some thousand tokens."""
KEPT = 12
"""The fastest of them that rows are drawn from."""
WINDOW = 8
"""Tokens over which a hidden state is averaged to see what is slow in it."""
RIDGE = 0.1
"""Share of the mean variance added to each, so that no direction is blown up."""


@frozen
class RouterSpec:
    """Experts to choose among, and the seed of everything random."""

    experts: int
    seed: int


@define
class _Moments:
    """Sums over the hidden states of one layer."""

    basis: Floats
    n: int = 0
    n_windows: int = 0
    projected: Floats = field(init=False)
    squares: Floats = field(init=False)
    slow: Floats = field(init=False)

    def __attrs_post_init__(self) -> None:
        size = self.basis.shape[1]
        self.projected = np.zeros(size)
        self.squares, self.slow = np.zeros((size, size)), np.zeros((size, size))


class RouterCalibration:
    """Gathers hidden states layer by layer, then gives the router.

    Memory is a megabyte a layer, however long the text.
    """

    def __init__(self, spec: RouterSpec) -> None:
        self.spec = spec
        self._layers: dict[int, _Moments] = {}

    def add(self, layer: int, hidden: NDArray[np.float32]) -> None:
        """Consecutive hidden states (tokens by width) as they enter the feed-forward network."""
        moments = self._layers.get(layer)
        if moments is None:
            basis = self._random_basis(layer, hidden.shape[1])
            moments = self._layers[layer] = _Moments(basis)
        inside = hidden.astype(np.float64) @ moments.basis
        moments.projected += inside.sum(axis=0)
        moments.squares += inside.T @ inside
        moments.n += len(inside)
        whole = len(inside) // WINDOW * WINDOW
        means = inside[:whole].reshape(-1, WINDOW, inside.shape[1]).mean(axis=1)
        moments.slow += means.T @ means
        moments.n_windows += len(means)

    def rows(self) -> NDArray[np.float32]:
        """Router weights: layer by expert by width."""
        made = [self._rows(layer, self._layers[layer]) for layer in sorted(self._layers)]
        return np.stack(made).astype(np.float32)

    def _random_basis(self, layer: int, width: int) -> Floats:
        draw = np.random.default_rng([self.spec.seed, layer])
        size = min(width, max(DIRECTIONS, 2 * self.spec.experts))
        basis: Floats = np.linalg.qr(draw.standard_normal((width, size)))[0]
        return basis

    def _rows(self, layer: int, moments: _Moments) -> Floats:
        mean = moments.projected / moments.n
        spread = moments.squares / moments.n - np.outer(mean, mean)
        slow = moments.slow / max(moments.n_windows, 1) - np.outer(mean, mean)
        scale, axes = np.linalg.eigh(spread)
        scale = np.maximum(scale, 0) + RIDGE * scale.mean()
        whitening = axes / np.sqrt(scale)
        # Ascending: the first are the directions with the least of what is slow.
        _, fastest = np.linalg.eigh(whitening.T @ slow @ whitening)
        chosen = whitening @ fastest[:, : max(KEPT, self.spec.experts + 1)]
        # Among them, across the mean: its logit would be the same for every token.
        across = mean @ chosen
        draw = np.random.default_rng([self.spec.seed, layer, 1])
        mixed = draw.standard_normal((chosen.shape[1], self.spec.experts))
        mixed -= np.outer(across, across @ mixed) / (across @ across)
        rows: Floats = (moments.basis @ chosen @ np.linalg.qr(mixed)[0]).T
        return rows


def plain_router(spec: RouterSpec, layers: int, width: int) -> NDArray[np.float32]:
    """Rows at random with nothing known of the hidden states: layer by expert by width."""
    draw = np.random.default_rng(spec.seed)
    shape = (layers, spec.experts, width)
    rows: NDArray[np.float32] = draw.standard_normal(shape, dtype=np.float32)
    return rows / np.float32(np.sqrt(width))
