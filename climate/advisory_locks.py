"""The keys of all advisory locks in a database.

Engine, identity, bundled cloud and migrations share one database, and with it
the keys of its advisory locks.  Processes of two releases may run beside each
other for a while, so a key never changes its value.
"""

import hashlib
from enum import StrEnum

HOSTS = 42
"""Held by a booking that waits for rows of hosts: one at a time, in the order in which they come."""

MIGRATION = 4242
FIRST_START = 0x1DE2717E

SERVER_PLACEMENT = "hashtext('climate: placing servers')"
"""SQL of the key that whoever places servers shares, or holds alone after losing too often."""

ARCHIVES = "hashtextextended('archives of leases', 0)"
"""SQL of the key that whoever archives leases holds for the length of its connection."""


class Subject(StrEnum):
    """Beginnings of the names under which things without a row are locked one by one."""

    LIMITS = "limits of "
    JOURNAL = "journal "
    RESOURCE = ""
    """The id of the resource is the name."""
    KEYPAIRS = "keypairs of "
    CERTIFICATES = "vpn of "
    PROJECT_NETWORK = "climate network of "
    NETWORK_GRANT = "climate network grant "
    ZONE_OFFER = "offer "
    POOL = "pool "
    SERVER_MOVES = "server moves from node "
    NODE_REPORT = "report of nodes of "
    """The host name of the compute service is the name."""

    def named(self, thing: object) -> str:
        """Return the name under which a thing is locked."""
        return f"{self.value}{thing}"

    def lock(self, parameter: str) -> str:
        """Return a statement that waits for the lock of the thing in a bound parameter, until the transaction ends."""
        return f"SELECT {self.locked(parameter)}"

    def locked(self, parameter: str) -> str:
        """Return the expression that waits for that lock, for a statement that does more."""
        return f"pg_advisory_xact_lock(hashtextextended('{self.value}' || :{parameter}, 0))"


def idempotent_request(*words: str) -> int:
    """Return the key of a request that must not be carried out twice: 64 bits of the hash of what tells it apart."""
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8], signed=True)
