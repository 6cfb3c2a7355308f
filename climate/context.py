"""What the verbs of the engine work with: handed in, never looked up."""

from collections.abc import Callable, Mapping
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


@dataclass(frozen=True)
class Climate:
    """Everything the engine needs, and nothing global."""

    engine: Engine
    cloud: Cloud
    plugins: Mapping[str, ResourcePlugin]
    settings: Settings = field(default_factory=Settings)
    now: Callable[[Connection], datetime] = database_time
    """The one clock: the database's, asked once per verb or beat.  Tests hand in their own."""
    chance: Callable[[], float] = random
    """A number in [0, 1) for back-off jitter."""
    power: Mapping[str, PowerDriver] = field(default_factory=dict)
    """The drivers of power supplies, by name."""
    zones: ChildZones = field(default_factory=NoZones)
    """The zones below this one."""
    cells: ChildDeployments = field(default_factory=NoChildren)
    """The cells below this one."""
    vault: Vault = field(default_factory=Vault.of_this_process)
    """Where secrets are sealed that have to be used again."""

    def other_time(self, conn: Connection) -> datetime | None:
        """Return what a clock that was handed in says; None for the database's, which any statement can read."""
        return None if self.now is database_time else self.now(conn)

    @property
    def children(self) -> ChildDeployments:
        """The deployments below this one, of which leases may have parts."""
        return ChildrenOfKinds({ZONE: ZoneChildren(self.zones), CELL: self.cells})
