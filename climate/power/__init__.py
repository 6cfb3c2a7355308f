"""The port: all that the engine may ask of a host's power supply.

Every verb is "make it so" and only asks: the machine follows later, or not at
all.  Whoever wants it on or off looks at its state until it is, and asks again
where it is not: a machine that shuts down kindly is ON until it has, and to ask
for ON in that time changes nothing.  No call lasts longer than the time-out of
the host's settings.

A target carries the token of the decision to switch it.  A driver whose
machines can remember refuses a lower one with PowerFenced.  Controllers by
IPMI and Redfish cannot: for them the engine compares the token with the last
decision just before it asks a driver for ON or OFF.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from marshmallow import Schema

from climate.entry_points import installed

GROUP = "climate.power_drivers"
FOLDER = "power"
"""Below CLIMATE_HOME: where drivers keep what they have to remember."""

ON, OFF = "on", "off"
UNKNOWN = "unknown"
"""On its way from one to the other, or its supply cannot tell."""


class PowerError(Exception):
    """It could not be done now; it may later.  The text holds no secret."""


class PowerRefused(PowerError):
    """It will never be done with these settings; another try is no use."""


class PowerFenced(PowerError):
    """A later decision about this host was made: whoever asks is late."""


@dataclass(frozen=True, slots=True)
class Target:
    """A host as a driver needs to know it: its name, and what its driver's schema has accepted."""

    host: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Those fields of the schema that the driver names as `secrets`."""
    token: int = 0
    """Of the decision under which it is switched: each is higher than all before."""


class PowerDriver(Protocol):
    """They raise PowerError."""

    schema: ClassVar[type[Schema]]
    """Validates the power settings of a host, secrets among them; appears in the API's document."""
    secrets: ClassVar[frozenset[str]]
    """The fields of the schema that are to be kept and shown as secrets are."""

    def state(self, target: Target) -> str:
        """ON, OFF or UNKNOWN, as its supply says now."""

    def on(self, target: Target) -> None:
        """Ask for it to be switched on; nothing to do when it is on, or on its way."""

    def off(self, target: Target, *, hard: bool = False) -> None:
        """Ask it to shut down, or hard: cut its power; nothing to do when it is off, or on its way."""


def load(folder: Path) -> dict[str, PowerDriver]:
    """The installed drivers by name, each made with the folder where it may keep what it has to remember.

    Ours are found in no other way than a stranger's.  Nothing is written yet.
    ValueError when two claim one name.
    """
    entries = list(installed(GROUP))
    drivers: dict[str, PowerDriver] = {entry.name: entry.load()(folder) for entry in entries}
    if len(drivers) < len(entries):
        raise ValueError("two power drivers claim one name")
    return drivers
