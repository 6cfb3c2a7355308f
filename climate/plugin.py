"""What a resource plugin is, and how one is found.

A plugin knows one resource type.  Its database half (`reserve`) runs inside
the request's transaction and gets no cloud; its cloud half (`on_start`,
`before_end`, `on_end`) runs in a worker with no transaction open and gets no
connection.  The cloud half may be run again at any time after a crash: each
hook must end in the same place however often it is called, and raises NotYet
instead of waiting.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import entry_points
from typing import Any, Protocol
from uuid import UUID

from marshmallow import Schema
from sqlalchemy import Connection

from climate.cloud import Cloud
from climate.domain.facts import Hold
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.settings import Settings

GROUP = "climate.resource_plugins"


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for resources over a period, new or for a reservation that is there already."""

    spec: Mapping[str, Any]
    period: Period
    caller: Caller
    settings: Settings
    present: Reservation | None = None
    """The reservation as it is, on update."""
    active: bool = False
    """Whether that reservation has started: it may then only grow."""
    patient: bool = False
    """Wait for the rows of hosts that others are booking, instead of passing them over."""
    taken: tuple[int, ...] = ()
    """Hosts that were chosen a moment ago for other reservations of the same lease."""

    @property
    def margin(self) -> timedelta:
        """Cleaning time to be kept free on both sides of the period."""
        return timedelta(seconds=self.settings.cleaning_time)


@dataclass(frozen=True, slots=True)
class Allocation:
    """What to hold.  `spec` is kept with the reservation and shown to its owner."""

    spec: Mapping[str, Any]
    holds: tuple[Hold, ...] = ()
    resource_id: str | None = None
    exists_before_start: bool = False


@dataclass(frozen=True, slots=True)
class Lent:
    """A reservation as a worker sees it.  `hosts` are names; `token` goes with every change asked of the cloud."""

    lease_id: UUID
    project_id: str
    period: Period
    reservation: Reservation
    hosts: tuple[str, ...]
    token: int


class ResourcePlugin(Protocol):
    resource_type: str
    spec_schema: type[Schema]
    """Validates the plugin's part of a reservation; appears in the API's document."""

    def check(self, cloud: Cloud, ask: Ask) -> None:
        """Before any transaction: refuse what the cloud knows to be impossible."""

    def reserve(self, conn: Connection, ask: Ask) -> Allocation:
        """Choose what to hold; NotEnoughHosts where that much is not free.  Writes nothing."""

    def on_start(self, cloud: Cloud, lent: Lent) -> None:
        """Hand over what was reserved."""

    def before_end(self, cloud: Cloud, lent: Lent) -> None:
        """Do what was asked to be done ahead of the end."""

    def on_end(self, cloud: Cloud, lent: Lent) -> None:
        """Take everything back, whether or not the start ever succeeded."""


def load() -> dict[str, ResourcePlugin]:
    """The installed plugins by resource type; ours are found in no other way than a stranger's."""
    plugins = [entry.load()() for entry in entry_points(group=GROUP)]
    by_type: dict[str, ResourcePlugin] = {plugin.resource_type: plugin for plugin in plugins}
    if len(by_type) < len(plugins):
        raise ValueError("two plugins claim one resource type")
    return by_type
