"""Requirements of a flavor's extra specs beyond its size: traits and amounts of resource classes.

The keys are Placement's: `trait:<NAME>` is `required` or `forbidden`, `resources:<CLASS>` an amount for each
server. Hosts have extra capabilities of the same names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from climate.domain.errors import InvalidInput
from climate.domain.hosts.requirements import AllOf, Compare, Not, Requirement
from climate.domain.hosts.shared_capacity import Size

TRAIT, RESOURCES = "trait:", "resources:"
REQUIRED, FORBIDDEN = "required", "forbidden"

SIZES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
"""Classes that are counted against columns of a host. PCPU counts like VCPU, because a CPU is allocated once."""

NAME = re.compile("[A-Z0-9_]{1,255}")
AMOUNT = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Demand:
    """Demand of one server. `classes` are nonzero amounts of classes other than SIZES."""

    size: Size
    classes: Mapping[str, int] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()

    @property
    def requirement(self) -> Requirement:
        """Return the requirement that a host must meet to have room for one such server."""
        has = [Compare("!=", TRAIT + name, None) for name in sorted(self.required)]
        lacks = [Not(Compare("!=", TRAIT + name, None)) for name in sorted(self.forbidden)]
        enough = [Compare(">=", RESOURCES + name, float(count)) for name, count in sorted(self.classes.items())]
        return AllOf((*has, *lacks, *enough))


def of(size: Size, extra_specs: Mapping[str, str]) -> Demand:
    """Return the demand of a flavor of that size; raise InvalidInput for an invalid extra spec."""
    traits = {name: word for name, word in _named(extra_specs, TRAIT).items() if _check_trait(name, word)}
    amounts = {name: _amount(name, text) for name, text in _named(extra_specs, RESOURCES).items()}
    counted = Size(
        vcpus=amounts.get("VCPU", size.vcpus) + amounts.get("PCPU", 0),
        memory_mb=amounts.get("MEMORY_MB", size.memory_mb),
        disk_gb=amounts.get("DISK_GB", size.disk_gb),
    )
    return Demand(
        counted,
        {name: count for name, count in amounts.items() if name not in SIZES and count},
        frozenset(name for name, word in traits.items() if word == REQUIRED),
        frozenset(name for name, word in traits.items() if word == FORBIDDEN),
    )


def capabilities(extra_specs: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the host capabilities that such extra specs rely on."""
    return frozenset(key for key in extra_specs if key.startswith((TRAIT, RESOURCES)))


def _named(extra_specs: Mapping[str, str], prefix: str) -> dict[str, str]:
    result = {key.removeprefix(prefix): str(value) for key, value in extra_specs.items() if key.startswith(prefix)}
    for name in result:
        if not NAME.fullmatch(name):
            raise InvalidInput(f"Extra spec {prefix}{name[:64]}: a name has capital letters, digits and _ only")
    return result


def _check_trait(name: str, word: str) -> bool:
    if word not in (REQUIRED, FORBIDDEN):
        raise InvalidInput(f"Extra spec {TRAIT}{name[:64]} must be {REQUIRED} or {FORBIDDEN}, not {word[:64]!r}")
    return True


def _amount(name: str, text: str) -> int:
    if not AMOUNT.fullmatch(text):
        raise InvalidInput(f"Extra spec {RESOURCES}{name[:64]} must be a number from 0 to 999999999, not {text[:64]!r}")
    return int(text)
