"""Weighers: higher is better (cloud.md C.5)."""

import numpy as np

from climate.compute.scheduler.snapshot import Hosts, Mask, Numbers

RAM_MULTIPLIER = 1.0
"""Above zero spreads servers over the nodes, below it stacks them."""


def normalised(values: Numbers, floor: float | None = None) -> Numbers:
    """`values` brought to 0…1; the lowest is `floor` when it is given and none is lower; all equal: 0."""
    low = values.min() if floor is None else min(values.min(), floor)
    span = values.max() - low
    return np.zeros_like(values) if span == 0 else (values - low) / span


def weights(hosts: Hosts, mask: Mask, multiplier: float = RAM_MULTIPLIER) -> Numbers:
    """The weight of each node that `mask` keeps, by free memory; a single one is not weighed."""
    if mask.sum() == 1:
        return np.zeros(1)
    return multiplier * normalised(hosts.free_ram_mb[mask], floor=0.0)
