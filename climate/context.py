"""Context that is passed to every operation of the engine."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import random

from sqlalchemy import Connection, Engine

from climate.cloud import Cloud
from climate.cloud.children import CELL, ZONE, ChildDeployments, ChildrenOfKinds, NoChildren
from climate.cloud.zone_children import ZoneChildren
from climate.cloud.zones import ChildZones, NoZones
from climate.plugin import ResourcePlugin
from climate.power import PowerDriver
from climate.sealed_secrets import Vault
from climate.settings import Settings
from climate.store.engine import database_time


def no_addresses(user_ids: Collection[str]) -> Mapping[str, str]:
    """Return no address of any user."""
    return {}


def none_unknown(projects: Collection[str], users: Collection[str]) -> tuple[Collection[str], Collection[str]]:
    """Return that no project and no user is unknown."""
    return (), ()


@dataclass(frozen=True)
class Climate:
    """Dependencies of the engine; nothing is global."""

    engine: Engine
    cloud: Cloud
    plugins: Mapping[str, ResourcePlugin]
    settings: Settings = field(default_factory=Settings)
    now: Callable[[Connection], datetime] = database_time
    """Clock: the database's, read once per operation. Tests pass their own."""
    chance: Callable[[], float] = random
    """Random number in [0, 1) for back-off jitter."""
    power: Mapping[str, PowerDriver] = field(default_factory=dict)
    """Power drivers, by name."""
    zones: ChildZones = field(default_factory=NoZones)
    """The zones below this one."""
    cells: ChildDeployments = field(default_factory=NoChildren)
    """The cells below this one."""
    addresses: Callable[[Collection[str]], Mapping[str, str]] = no_addresses
    """Returns the mail addresses of users by their ids; without those that have none."""
    unknown_accounts: Callable[[Collection[str], Collection[str]], tuple[Collection[str], Collection[str]]] = (
        none_unknown
    )
    """Returns those of the ids of projects and of users that do not exist."""
    vault: Vault = field(default_factory=Vault.of_this_process)
    """Seals secrets that have to be read again."""

    def other_time(self, conn: Connection) -> datetime | None:
        """Return the time of a clock that was passed in; None for the database's, which any statement can read."""
        return None if self.now is database_time else self.now(conn)

    @property
    def children(self) -> ChildDeployments:
        """Return the deployments below this one that may hold parts of leases."""
        return ChildrenOfKinds({ZONE: ZoneChildren(self.zones), CELL: self.cells})
