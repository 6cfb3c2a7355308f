"""Neighbour in the tree of cells: its broker, and its last report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Broker:
    """Message broker of a neighbour, and the shared secret that signs the link's messages."""

    host: str | None = None
    port: int | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    virtual_host: str | None = None
    """Number of the database in Redis."""
    transport_url: str | None = field(default=None, repr=False)
    """URL that replaces all of the above: redis://, rediss:// or unix://."""
    secret: str | None = field(default=None, repr=False)

    def server_params(self) -> dict[str, object]:
        """Return the parameters of a connection to the broker, without unknown ones."""
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
    """Parent or child of this cell."""

    name: str
    is_parent: bool = False
    broker: Broker = field(default_factory=Broker)
    weight_offset: float = 0.0
    weight_scale: float = 1.0
    capabilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Capabilities of the cell and all below it."""
    capacities: Mapping[str, object] = field(default_factory=dict)
    """Capacities of the cell and all below it, in the form of `capacities.own`."""
    offers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the flavors, images and reservations in the cell and all below it."""
    children: tuple[Mapping[str, object], ...] = ()
    """Cells below it, from its report."""
    last_seen: datetime | None = None
    """Time of its last message; None: it has never sent one."""
    failures: int = 0
    """Number of consecutive failed connections to its broker."""
    last_error: str | None = None
