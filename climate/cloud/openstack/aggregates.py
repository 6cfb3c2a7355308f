"""Aggregates of the cloud as pools: read, made, filled, emptied and dropped, one request each.

A pool is the aggregate `freepool`, one with the metadata `blazar:owner`, or
another one of the KEPT names that is closed to every project; an aggregate that
an administrator has given such a name for a reason of his own is none.
All tokens but those of pools are kept in the aggregate BOOK, which has no host.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from climate.cloud import FREEPOOL, KEPT, Refused
from climate.cloud.openstack import hosts
from climate.cloud.openstack.fencing import Changes, Metadata
from climate.cloud.openstack.hosts import Names
from climate.cloud.openstack.http import Body, Clash, Missing, Remote

BOOK = "climate:fences"
OWNER, TENANT, CLOSED = "blazar:owner", "filter_tenant_id", "climate:closed"
GRANTED, RESERVATION = "climate:granted", "reservation"
"""Metadata of an aggregate that is no pool: whose the room on its hosts is, and by which reservation."""

PROMISED, WANTED = "climate:promised", "climate:wanted:"
"""Metadata of a pool that is promised and still empty; what its keys begin with that say what its hosts are like."""

NOBODY = "climate:nobody"
"""Stands where the id of a project would: there is none of that name, so nobody passes."""


@dataclass(frozen=True, slots=True)
class Pool:
    """An aggregate that is a pool, with the names of its hypervisors."""

    id: str
    name: str
    hosts: frozenset[str]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Look:
    """The pools and the book at one moment."""

    names: Names
    pools: Mapping[str, Pool]
    grants: Mapping[str, Pool]
    """What is granted on hosts that stay in their pool, by name."""

    @property
    def book(self) -> Metadata:
        return self.pools[BOOK].metadata if BOOK in self.pools else {}

    @property
    def inside(self) -> frozenset[str]:
        """Names of all hypervisors that are in a pool."""
        return frozenset[str]().union(*(pool.hosts for pool in self.pools.values()))

    def of(self, host: str) -> str | None:
        """The pool that a host is in; while it moves, the one where least may be done, and `freepool` last."""
        inside = self.all_of(host)
        return min(inside, key=lambda name: (name == FREEPOOL, name not in KEPT, name)) if inside else None

    def all_of(self, host: str) -> list[str]:
        """The pools that a host is in: two while it moves."""
        return [name for name, pool in self.pools.items() if host in pool.hosts]


def look(remote: Remote) -> Look:
    """What there is now.  The names are read first: a host that goes meanwhile is still known by its aggregates."""
    names = hosts.names(remote)
    found = [_pool(each, names) for each in remote.get("/os-aggregates")["aggregates"]]
    granted = {pool.name: pool for pool in found if GRANTED in pool.metadata}
    return Look(names, {pool.name: pool for pool in found if _is_pool(pool)}, granted)


def kept(remote: Remote, seen: Look, name: str) -> Pool:
    """One of the KEPT pools, made when there is none: closed to everybody."""
    pool = ensure(remote, seen, name)
    if name in seen.pools:
        return pool
    if not _is_pool(pool) and (pool.hosts or pool.metadata):
        raise Refused(f"the aggregate {name} is another one's: give it another name, as that is the name of a pool")
    set_metadata(remote, pool, {TENANT: NOBODY})
    return pool


def ensure(remote: Remote, seen: Look, name: str) -> Pool:
    """The pool of that name, made when there is none; somebody else may make it at the same time."""
    if name in seen.pools:
        return seen.pools[name]
    try:
        made = remote.post("/os-aggregates", {"aggregate": {"name": name}})["aggregate"]
    except Clash:
        all_of_them = remote.get("/os-aggregates")["aggregates"]
        made = next((each for each in all_of_them if each["name"] == name), None)
        if made is None:
            raise
    return _pool(made, seen.names)


def set_metadata(remote: Remote, pool: Pool, changes: Changes) -> Metadata:
    """Change the metadata of a pool; all of it as it is then."""
    answer = remote.post(f"/os-aggregates/{pool.id}/action", {"set_metadata": {"metadata": changes}})
    return dict(answer["aggregate"]["metadata"])


def move(remote: Remote, names: Names, host: str, source: Pool, target: Pool) -> None:
    """Take a host from one pool to the other: added before it is removed, it is in one of them at every moment.

    A cloud whose hosts are in one pool at most removes it by adding it.
    """
    host = names.spelled(host)
    _change(remote, target, "add_host", host)
    _leave(remote, source, host)


def join(remote: Remote, names: Names, host: str, pool: Pool) -> None:
    _change(remote, pool, "add_host", names.spelled(host))


def leave(remote: Remote, names: Names, host: str, pool: Pool) -> None:
    _leave(remote, pool, names.spelled(host))


def drop(remote: Remote, pool: Pool) -> None:
    """Delete a pool that has no hosts; nothing to do when somebody else has."""
    try:
        remote.delete(f"/os-aggregates/{pool.id}")
    except Missing:
        return


def _leave(remote: Remote, pool: Pool, host: str) -> None:
    try:
        _change(remote, pool, "remove_host", host)
    except Missing:
        return


def _change(remote: Remote, pool: Pool, verb: str, host: str) -> None:
    remote.post(f"/os-aggregates/{pool.id}/action", {verb: {"host": host}})


def _is_pool(pool: Pool) -> bool:
    closed = pool.metadata.get(TENANT) == NOBODY
    return pool.name in (FREEPOOL, BOOK) or OWNER in pool.metadata or (pool.name in KEPT and closed)


def _pool(seen: Body, names: Names) -> Pool:
    return Pool(str(seen["id"]), seen["name"], names.read(seen["hosts"] or ()), dict(seen["metadata"] or {}))
