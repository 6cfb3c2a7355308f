"""Interface between the engine and a cloud: one protocol per capability, and `Cloud`, which has all of them.

| protocol | capability | module |
|---|---|---|
| HostPools | hosts, and the pools that they are in | `host_pools` |
| Servers | servers, and actions on them | `servers` |
| SharedCapacity | room for servers on hosts that leases share | `shared_capacity` |
| FloatingIps | addresses of external networks | `floating_ips` |
| Volumes | storage of reservations; a cloud without any has no backend | `volumes` |

A function takes the narrowest protocol that it needs.

Every method that changes something is idempotent: a repeated call ends in the same state. It carries the fencing token
of the claim. The cloud stores the highest token per host and per server and refuses a lower one with Fenced. A worker
that was presumed dead therefore cannot undo the work of its successor.
"""

from typing import Protocol

from climate.cloud.errors import (
    CloudError,
    Fenced,
    InUse,
    NotYet,
    Refused,
    Trouble,
)
from climate.cloud.floating_ips import (
    ExternalNetwork,
    ExternalSubnet,
    FloatingIps,
)
from climate.cloud.host_pools import (
    CLEANING,
    COUNTED,
    DRAINING,
    FAILED,
    FREEPOOL,
    KEPT,
    LONGEST_CAPABILITY,
    MAINTENANCE,
    RECYCLING,
    RESOURCES,
    TRAIT,
    CloudHost,
    HostPools,
    LeasePool,
    LendsTogether,
    Loan,
    Return,
    TakesBackTogether,
    provided,
)
from climate.cloud.servers import (
    ACTIVE,
    BUILD,
    ERROR,
    IMAGEABLE,
    PAUSED,
    RESERVED,
    RESIZED,
    RUNNING,
    SHELVED,
    SHUTOFF,
    SUSPENDED,
    CloudServer,
    Servers,
)
from climate.cloud.shared_capacity import (
    Capacity,
    CloudFlavor,
    SharedCapacity,
)
from climate.cloud.volumes import (
    Volumes,
)

__all__ = [
    "ACTIVE",
    "BUILD",
    "CLEANING",
    "COUNTED",
    "DRAINING",
    "ERROR",
    "FAILED",
    "FREEPOOL",
    "IMAGEABLE",
    "KEPT",
    "LONGEST_CAPABILITY",
    "MAINTENANCE",
    "PAUSED",
    "RECYCLING",
    "RESERVED",
    "RESIZED",
    "RESOURCES",
    "RUNNING",
    "SHELVED",
    "SHUTOFF",
    "SUSPENDED",
    "TRAIT",
    "Capacity",
    "Cloud",
    "CloudError",
    "CloudFlavor",
    "CloudHost",
    "CloudServer",
    "ExternalNetwork",
    "ExternalSubnet",
    "Fenced",
    "FloatingIps",
    "HostPools",
    "InUse",
    "LeasePool",
    "LendsTogether",
    "Loan",
    "NotYet",
    "Refused",
    "Return",
    "Servers",
    "SharedCapacity",
    "TakesBackTogether",
    "Trouble",
    "Volumes",
    "provided",
]


class Cloud(HostPools, Servers, SharedCapacity, FloatingIps, Volumes, Protocol):
    """A cloud with all capabilities, such as the bundled one, OpenStack, and the fake of the tests."""
