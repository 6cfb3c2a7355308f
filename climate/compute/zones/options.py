"""Options of zones, as the settings give them, and the client that calls children."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from climate.compute.zones.builds.blobs import BlobKeys
from climate.compute.zones.client import ChildClient
from climate.compute.zones.forwarded_servers import ForwardedServers

NAME = "nova"


def _no_vault(text: str) -> str:
    raise RuntimeError("Zones of this process have no vault: hand one in")


@dataclass(frozen=True, slots=True)
class Zones:
    """Zones of this deployment.  With the defaults there is no client, and no child is ever called."""

    name: str = NAME
    capabilities: Mapping[str, str] = field(default_factory=dict)
    """Static capabilities: key -> `value;value`."""
    admin_api: bool = True
    """True: the routes below /zones exist."""
    routing: bool = True
    """True: servers that are not here are looked for in child zones."""
    poll_seconds: float = 30.0
    report_seconds: float = 60.0
    """Time between two reports of a service whose capabilities do not change."""
    timeout_seconds: float = 5.0
    """Deadline of one talk with a child."""
    failures_to_offline: int = 3
    client: ChildClient | None = None
    forwarded: ForwardedServers = field(default_factory=ForwardedServers, repr=False)
    """Servers that children have answered for, in this process."""
    own_id: Callable[[], str] = field(default=str, repr=False)
    """Gives the random id by which this zone recognises requests that come back to it."""
    seal: Callable[[str], str] = field(default=_no_vault, repr=False)
    """Turns a password into what the database keeps."""
    unseal: Callable[[str], str] = field(default=_no_vault, repr=False)
    """Opens a sealed password; ComputeError when its key is gone."""
    blobs: BlobKeys = field(default_factory=BlobKeys)
    """Keys that seal the items of build plans; without a key this zone makes no estimates."""
