"""Interface between the engine and a host's power supply.

Every method is an idempotent request: the machine follows later, or not at all. The caller polls the state and repeats
the request if it does not change. A machine that shuts down gracefully is ON until it is off, and a request for ON in
that time changes nothing. No call lasts longer than the time-out of the host's settings.

A target carries the token of the power decision. A driver whose machines can store it refuses a lower one with
PowerFenced. IPMI and Redfish controllers cannot. For them the engine compares the token with the last decision just
before it calls a driver for ON or OFF.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from marshmallow import Schema

from climate.entry_points import installed

GROUP = "climate.power_drivers"
FOLDER = "power"
"""Folder below CLIMATE_HOME in which drivers keep their state."""

ON, OFF = "on", "off"
UNKNOWN = "unknown"
"""The machine is between the two states, or its supply cannot report its state."""


class PowerError(Exception):
    """The request failed now; a retry may succeed. The text holds no secret."""


class PowerRefused(PowerError):
    """The request fails with these settings; a retry is useless."""


class PowerFenced(PowerError):
    """A later decision about this host exists, so the request is outdated."""


@dataclass(frozen=True, slots=True)
class Target:
    """A host as its driver sees it: its name, and the settings that its driver's schema has accepted."""

    host: str
    settings: Mapping[str, object] = field(default_factory=dict)
    secrets: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Fields of the schema that the driver lists in `secrets`."""
    token: int = 0
    """Token of the power decision; each is higher than all before."""


class PowerDriver(Protocol):
    """A power driver; its methods raise PowerError."""

    schema: ClassVar[type[Schema]]
    """Validates the power settings of a host, including secrets; appears in the OpenAPI document."""
    secrets: ClassVar[frozenset[str]]
    """Fields of the schema that are stored and shown as secrets."""

    def state(self, target: Target) -> str:
        """Return ON, OFF or UNKNOWN, as the supply reports now."""

    def on(self, target: Target) -> None:
        """Request power on; do nothing when it is on, or on its way."""

    def off(self, target: Target, *, hard: bool = False) -> None:
        """Request a shutdown, or with `hard` cut the power; do nothing when it is off, or on its way."""


def load(folder: Path) -> dict[str, PowerDriver]:
    """Return the installed drivers by name, each with the folder for its state.

    Built-in drivers are loaded through the same entry points as others. Write nothing yet. Raise ValueError when two
    drivers claim one name.
    """
    entries = list(installed(GROUP))
    drivers: dict[str, PowerDriver] = {entry.name: entry.load()(folder) for entry in entries}
    if len(drivers) < len(entries):
        raise ValueError("two power drivers claim one name")
    return drivers
