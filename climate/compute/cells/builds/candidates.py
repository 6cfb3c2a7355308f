"""Candidates for a build: the children of a cell and the cell itself, filtered and weighed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from climate.compute.cells.builds.request import Build
from climate.compute.cells.options import CellOptions
from climate.compute.cells.state import capacities
from climate.compute.errors import BadRequest
from climate.compute.scheduler.hosts import hypervisor_version

HYPERVISOR_VERSION = "prominent_hypervisor_version"
"""Capability that is compared with an image's `hypervisor_version_requires`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Cell that a build may go to."""

    name: str
    capabilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    capacities: Mapping[str, object] = field(default_factory=dict)
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weight_offset: float = 0.0
    weight_scale: float = 1.0
    mute: bool = False


Filter = Callable[[Candidate, Build], str | None]
"""Function that returns the reason why a build cannot go to a cell, or None."""


def image_properties(candidate: Candidate, build: Build) -> str | None:
    """Refuse cells whose hypervisor version the image excludes; unknown versions pass."""
    wanted = build.image_properties.get("hypervisor_version_requires")
    there = candidate.capabilities.get(HYPERVISOR_VERSION)
    if not wanted or not there:
        return None
    try:
        bounds = hypervisor_version.parse(str(wanted))
    except BadRequest as error:
        return str(error)
    if any(hypervisor_version.within(number, bounds) for text in there if (number := _version(text)) is not None):
        return None
    return f"its hypervisor version {', '.join(there)} is not {wanted}"


def offered(candidate: Candidate, build: Build) -> str | None:
    """Refuse cells that report their flavors, images or reservations without those of the build."""
    wanted = (
        ("flavors", build.flavor),
        ("images", build.image),
        *(("reservations", reservation) for reservation in build.reservations),
    )
    for kind, name in wanted:
        names = candidate.offers.get(kind)
        if name is not None and names is not None and name not in names:
            return f"it has no {kind[:-1]} {name!r}"
    return None


FILTERS: Sequence[Filter] = (image_properties, offered)


def weight(candidate: Candidate, build: Build, options: CellOptions) -> float:
    """Return the weight of a cell, higher is better.

    Values are not normalised: a large enough offset outweighs any capacity, and a mute cell comes last.
    """
    room = capacities.units(candidate.capacities, build.ram_mb)
    return (
        options.ram_multiplier * room * candidate.weight_scale
        + options.offset_multiplier * candidate.weight_offset
        + options.mute_multiplier * (options.mute_value if candidate.mute else 0.0)
    )


def passing(candidates: Sequence[Candidate], build: Build) -> tuple[list[Candidate], dict[str, str]]:
    """Return the cells that pass all filters, and the reason for each other one."""
    reasons = {
        candidate.name: reason
        for candidate in candidates
        if (reason := next((said for one in FILTERS if (said := one(candidate, build)) is not None), None))
    }
    return [candidate for candidate in candidates if candidate.name not in reasons], reasons


def weighed(candidates: Sequence[Candidate], build: Build, options: CellOptions) -> list[tuple[float, Candidate]]:
    """Return (weight, cell), best first; equal ones keep their order."""
    pairs = [(weight(candidate, build, options), candidate) for candidate in candidates]
    return sorted(pairs, key=lambda pair: -pair[0])


def _version(text: str) -> int | None:
    """Return 6.2 as 6002000; None for an invalid version."""
    parts = text.strip().split(".")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and len(part) <= 3 for part in parts):
        return None
    numbers = [int(part) for part in parts] + [0] * (3 - len(parts))
    return numbers[0] * 10**6 + numbers[1] * 10**3 + numbers[2]
