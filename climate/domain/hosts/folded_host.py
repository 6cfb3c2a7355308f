"""Capabilities and power settings of a host, folded from its facts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from climate.domain.facts import HostDescribed, HostEnrolled, HostFact, HostPowerCleared, HostPowerSet


@dataclass(frozen=True, slots=True)
class HostPowerSettings:
    """Power settings of a host, without the secrets."""

    driver: str
    settings: Mapping[str, object]
    watts: int | None
    secrets: bool


@dataclass(frozen=True, slots=True)
class HostCare:
    """Capabilities and power settings of a host; `power` is None for a host without power settings."""

    extra: Mapping[str, str] = field(default_factory=dict)
    power: HostPowerSettings | None = None


def fold(facts: Iterable[HostFact]) -> HostCare:
    """Return the capabilities and power settings after the facts of one host."""
    care = HostCare()
    for fact in facts:
        care = _after(care, fact)
    return care


def _after(care: HostCare, fact: HostFact) -> HostCare:
    match fact:
        case HostEnrolled():
            return replace(care, extra=dict(fact.extra or {}))
        case HostDescribed():
            known = {**care.extra, **fact.extra}
            return replace(care, extra={name: value for name, value in known.items() if value is not None})
        case HostPowerSet():
            return replace(care, power=HostPowerSettings(fact.driver, fact.settings, fact.watts, fact.secrets))
        case HostPowerCleared():
            return replace(care, power=None)
    return care
