"""A neighbour in the tree of cells: how to reach it, and the last it said of itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Broker:
    """The message broker of a neighbour, and the secret that both ends of the link sign with."""

    host: str | None = None
    port: int | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    virtual_host: str | None = None
    """The number of the database in Redis."""
    transport_url: str | None = field(default=None, repr=False)
    """Stands for all of the above: redis://, rediss:// or unix://."""
    secret: str | None = field(default=None, repr=False)

    def server_params(self) -> dict[str, Any]:
        """Return the parameters of a connection to the broker; what is not known is left out."""
        named = {
            "hostname": self.host,
            "port": self.port,
            "username": self.username,
            "password": self.password,
            "virtual_host": self.virtual_host,
        }
        return {key: value for key, value in named.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class Cell:
    """A parent or child of this cell."""

    name: str
    is_parent: bool = False
    broker: Broker = field(default_factory=Broker)
    weight_offset: float = 0.0
    weight_scale: float = 1.0
    capabilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Capabilities of the cell and all below it."""
    capacities: Mapping[str, Any] = field(default_factory=dict)
    """Capacities of the cell and all below it, as `capacities.own` writes them."""
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the flavors, images and reservations in the cell and all below it."""
    children: tuple[Mapping[str, Any], ...] = ()
    """The cells below it, as it told of them."""
    last_seen: datetime | None = None
    """Time of the last message from it; None: it has never sent one."""
    failures: int = 0
    """Attempts in a row at which its broker could not be reached."""
    last_error: str | None = None
