"""Capabilities of a zone: static ones from settings, and numbers reported by its services."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from climate.compute.errors import BadRequest

KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,254}")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,254}")
LONGEST = 1024

EXPORTED = frozenset(
    {
        "host_memory_total",
        "host_memory_overhead",
        "host_memory_free",
        "host_memory_free_computed",
        "disk_available",
        "disk_total",
        "disk_used",
        "vcpus",
        "vcpus_used",
        "networks",
        "fixed_ips",
        "fixed_ips_free",
    }
)
"""Numbers that may leave a zone, as (min, max) over its hosts; other reported values stay inside."""

PERIODS = 3
"""Number of periods for which a report is valid."""


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """Capabilities reported by one service of one host. Memory and disk are in bytes."""

    host: str
    service: str
    reported_at: datetime
    capabilities: Mapping[str, float] = field(default_factory=dict)
    enabled: bool = True


def parse(text: str) -> dict[str, str]:
    """Return the static capabilities of `key=value;value, key=value`. Raise BadRequest with the invalid entry.

    The values of a key remain one string, as other zones see them.
    """
    result: dict[str, str] = {}
    for entry in (part.strip() for part in text.split(",")):
        if not entry and not text.strip():
            return {}
        key, equals, values = (word.strip() for word in entry.partition("="))
        if not equals or not KEY.fullmatch(key) or not _is_value(values):
            raise BadRequest(f"{entry[:80]!r} is not like key=value;value")
        if key in result or key == "name":
            raise BadRequest(f"{key[:80]!r} must be given once, and must not be 'name'")
        result[key] = values
    return result


def is_name(text: str) -> bool:
    """Return whether a zone may have this name; `!` and `@` are reserved for paths of cells."""
    return bool(NAME.fullmatch(text)) and text.strip() == text


def fresh(report: ServiceReport, now: datetime, period: float) -> bool:
    """Return whether a report is still valid at `now`, with one report per `period` seconds."""
    return now - report.reported_at <= timedelta(seconds=PERIODS * period)


def aggregate(reports: Iterable[ServiceReport], now: datetime, period: float) -> dict[str, tuple[float, float]]:
    """Return (min, max) of `<service>_<capability>` over the hosts with valid reports of enabled services."""
    result: dict[str, tuple[float, float]] = {}
    for report in reports:
        if not report.enabled or not fresh(report, now, period):
            continue
        for name, value in report.capabilities.items():
            if name in EXPORTED:
                key = f"{report.service}_{name}"
                low, high = result.get(key, (value, value))
                result[key] = (min(low, value), max(high, value))
    return result


def written(bounds: tuple[float, float]) -> str:
    """Return `min,max` as sent to other zones; whole numbers have no decimal point."""
    return ",".join(f"{bound:.0f}" if float(bound).is_integer() else f"{bound:g}" for bound in bounds)


def _is_value(values: str) -> bool:
    parts = values.split(";")
    return len(values) <= LONGEST and values.isprintable() and all(part.strip() for part in parts)
