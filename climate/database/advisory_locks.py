"""Keys of all advisory locks in a database.

Engine, identity, bundled cloud and migrations share one database and therefore one set of lock keys. Processes of two
releases may run side by side, so the value of a key never changes.
"""

import hashlib
from enum import StrEnum

HOSTS = 42
"""Held by an allocation that waits for rows of hosts, so that such allocations run one at a time, in order of arrival.
"""

MIGRATION = 4242
FIRST_START = 0x1DE2717E

SERVER_PLACEMENT = "hashtext('climate: placing servers')"
"""SQL of the key that placements of servers share, and hold exclusively after too many lost races."""

ARCHIVES = "hashtextextended('archives of leases', 0)"
"""SQL of the key that the process which archives leases holds for the length of its connection."""


class Subject(StrEnum):
    """Prefixes of the names under which objects without a row are locked one by one."""

    LIMITS = "limits of "
    JOURNAL = "journal "
    RESOURCE = ""
    """The name is the id of the resource."""
    KEYPAIRS = "keypairs of "
    CERTIFICATES = "vpn of "
    PROJECT_NETWORK = "climate network of "
    NETWORK_GRANT = "climate network grant "
    ZONE_OFFER = "offer "
    POOL = "pool "
    BACKEND = "backend of volumes "
    SERVER_MOVES = "server moves from node "
    NODE_REPORT = "report of nodes of "
    """The host name of the compute service is the name."""

    def named(self, thing: object) -> str:
        """Return the name under which an object is locked."""
        return f"{self.value}{thing}"

    def lock(self, parameter: str) -> str:
        """Return a statement that waits for the lock of the thing in a bound parameter, until the transaction ends."""
        return f"SELECT {self.locked(parameter)}"

    def locked(self, parameter: str) -> str:
        """Return the expression that waits for that lock, for a statement that does more."""
        return f"pg_advisory_xact_lock(hashtextextended('{self.value}' || :{parameter}, 0))"


def idempotent_request(*words: str) -> int:
    """Return the lock key of an idempotent request: 64 bits of the hash of its identifying words."""
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8], signed=True)
