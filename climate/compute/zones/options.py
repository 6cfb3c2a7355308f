"""Options of zones from settings, and the client of children."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from climate.compute.zones.builds.blobs import BlobKeys
from climate.compute.zones.client_interface import ChildClient
from climate.compute.zones.server_zone_cache import ServerZoneCache

NAME = "nova"


def _no_vault(text: str) -> str:
    raise RuntimeError("Zones of this process have no vault: pass one")


@dataclass(frozen=True, slots=True)
class Zones:
    """Zones of this deployment. By default there is no client, and no child is ever called."""

    name: str = NAME
    capabilities: Mapping[str, str] = field(default_factory=dict)
    """Static capabilities: key -> `value;value`."""
    admin_api: bool = True
    """True: the routes below /zones exist."""
    routing: bool = True
    """True: unknown servers are searched in child zones."""
    poll_seconds: float = 30.0
    report_seconds: float = 60.0
    """Seconds between two reports of a service with unchanged capabilities."""
    timeout_seconds: float = 5.0
    """Deadline in seconds of one exchange with a child."""
    failures_to_offline: int = 3
    client: ChildClient | None = None
    forwarded: ServerZoneCache = field(default_factory=ServerZoneCache, repr=False)
    """Cache of servers that children answered for, in this process."""
    own_id: Callable[[], str] = field(default=str, repr=False)
    """Function that returns the random id by which this zone detects loops."""
    seal: Callable[[str], str] = field(default=_no_vault, repr=False)
    """Function that encrypts a password for the database."""
    unseal: Callable[[str], str] = field(default=_no_vault, repr=False)
    """Function that decrypts a password. Raises ComputeError if its key is missing."""
    blobs: BlobKeys = field(default_factory=BlobKeys)
    """Keys that encrypt items of build plans; without a key this zone makes no estimates."""
