"""Aggregates of the cloud as pools: read, create, fill, empty and delete, one request each.

A pool is the aggregate `freepool`, one with the metadata `blazar:owner`, or another KEPT name that is closed to every
project. An aggregate that an administrator named so for another purpose is not a pool. All tokens except those of pools
are stored in the aggregate BOOK, which has no host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from climate.cloud import FREEPOOL, KEPT, NotYet, Refused
from climate.cloud.openstack import hosts
from climate.cloud.openstack.fencing import Changes, Metadata
from climate.cloud.openstack.hosts import Names
from climate.cloud.openstack.http import Body, Clash, Missing, Remote, unless_gone

BOOK = "climate:fences"
OWNER, TENANT, CLOSED = "blazar:owner", "filter_tenant_id", "climate:closed"
GRANTED, RESERVATION = "climate:granted", "reservation"
"""Metadata of an aggregate of shared capacity: its project, and its reservation."""

PROMISED, WANTED = "climate:promised", "climate:wanted:"
"""Metadata of a planned, empty pool, and the prefix of the keys with its requirements."""

SHARED = "climate:shared:"
"""Prefix of the keys with further projects that may boot in a pool, or use shared capacity."""

LONGEST_VALUE = 255
"""Characters of a value of metadata."""

NOBODY = "climate:nobody"
"""Placeholder for a project id; no project has it, so that the filter admits nobody."""


@dataclass(frozen=True, slots=True)
class Pool:
    """An aggregate that is a pool, with the names of its hypervisors."""

    id: str
    name: str
    hosts: frozenset[str]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class AggregateState:
    """The pools and the token book at one moment."""

    names: Names
    pools: Mapping[str, Pool]
    grants: Mapping[str, Pool]
    """Shared capacity on hosts that stay in their pool, by name."""

    @property
    def book(self) -> Metadata:
        return self.pools[BOOK].metadata if BOOK in self.pools else {}

    @property
    def inside(self) -> frozenset[str]:
        """Names of all hypervisors that are in a pool."""
        return frozenset[str]().union(*(pool.hosts for pool in self.pools.values()))

    def of(self, host: str) -> str | None:
        """Return the pool of a host. While it moves, return the most restrictive one, with `freepool` last."""
        inside = self.all_of(host)
        return min(inside, key=lambda name: (name == FREEPOOL, name not in KEPT, name)) if inside else None

    def all_of(self, host: str) -> list[str]:
        """Return the pools of a host: two while it moves."""
        return [name for name, pool in self.pools.items() if host in pool.hosts]


def read_state(remote: Remote) -> AggregateState:
    """Read the present state. Names are read first, so that a host deleted meanwhile is known by its aggregates."""
    names = hosts.names(remote)
    result = [_pool(each, names) for each in remote.get("/os-aggregates")["aggregates"]]
    granted = {pool.name: pool for pool in result if _is_capacity(pool)}
    return AggregateState(names, {pool.name: pool for pool in result if _is_pool(pool)}, granted)


def ensure_pool(remote: Remote, state: AggregateState, name: str) -> Pool:
    """Return one of the KEPT pools; create it, closed to everybody, if there is none.

    A reservation pool that somebody else created is closed too. With BlazarFilter, which protects it, it stays as it
    is: an administrator removes `filter_tenant_id` to admit preemptible servers.
    """
    pool = ensure(remote, state, name)
    if name in state.pools and (remote.blazar_filter or pool.metadata.get(TENANT) == NOBODY):
        return pool
    if not _is_pool(pool) and (pool.hosts or pool.metadata):
        raise Refused(f"the aggregate {name} is not a pool of climate, but has the name of one; rename the aggregate")
    set_metadata(remote, pool, {TENANT: NOBODY})
    return pool


def ensure(remote: Remote, state: AggregateState, name: str) -> Pool:
    """Return the pool of that name; create it if there is none. Another process may create it at the same time."""
    if name in state.pools:
        return state.pools[name]
    try:
        made = remote.post("/os-aggregates", {"aggregate": {"name": name}})["aggregate"]
    except Clash:
        all_of_them = remote.get("/os-aggregates")["aggregates"]
        made = next((each for each in all_of_them if each["name"] == name), None)
        if made is None:
            raise
    # Nova leaves hosts and metadata out of the answer to POST: a new aggregate has none.
    return _pool({"hosts": [], "metadata": {}, **made}, state.names)


def set_metadata(remote: Remote, pool: Pool, changes: Changes) -> Metadata:
    """Change the metadata of a pool; return all of it after the change."""
    answer = remote.post(f"/os-aggregates/{pool.id}/action", {"set_metadata": {"metadata": changes}})
    return dict(answer["aggregate"]["metadata"])


def sharing(pool: Pool, projects: Sequence[str]) -> Changes:
    """Return the changes of metadata after which the filters of climate and of Nova admit these projects, owner first.

    AggregateMultiTenancyIsolation reads one list of all; the filter of Placement reads a key for each. Raise Refused
    for more projects than the list has room for.
    """
    listed = ",".join(projects)
    if len(listed) > LONGEST_VALUE:
        raise Refused(f"{TENANT} of the pool {pool.name} has no room for {len(projects)} projects")
    further = {f"{SHARED}{project}": "true" for project in projects[1:]}
    single = {f"{TENANT}:{number}": one for number, one in enumerate(projects)} if further else {}
    return {**unshared(pool), TENANT: listed, **further, **single}


def unshared(pool: Pool) -> Changes:
    """Return the changes after which no filter admits further projects to a pool."""
    return {key: None for key in pool.metadata if key.startswith((SHARED, f"{TENANT}:"))}


def move(remote: Remote, names: Names, host: str, source: Pool, target: Pool) -> None:
    """Move a host between pools, adding before removing, so that it is in a pool at every moment.

    A cloud that allows one pool per host removes it from the old pool when it is added.
    """
    host = names.spelled(host)
    _change(remote, target, "add_host", host)
    _remove_host(remote, source, host)


def join(remote: Remote, names: Names, host: str, pool: Pool) -> None:
    _change(remote, pool, "add_host", names.spelled(host))


def remove_host(remote: Remote, names: Names, host: str, pool: Pool) -> None:
    _remove_host(remote, pool, names.spelled(host))


def drop(remote: Remote, pool: Pool) -> None:
    """Delete a pool without hosts; do nothing if it is deleted already. Raise NotYet if it got a host meanwhile.

    Nova refuses that with 400, as it refuses requests for which a retry is useless.
    """
    try:
        remote.delete(f"/os-aggregates/{pool.id}")
    except Missing:
        return
    except Refused:
        present = remote.get("/os-aggregates")["aggregates"]
        if any(str(each["id"]) == pool.id and each["hosts"] for each in present):
            raise NotYet(f"another host is in the pool {pool.name}") from None
        raise


def _remove_host(remote: Remote, pool: Pool, host: str) -> None:
    unless_gone(lambda: _change(remote, pool, "remove_host", host))


def _change(remote: Remote, pool: Pool, verb: str, host: str) -> None:
    remote.post(f"/os-aggregates/{pool.id}/action", {verb: {"host": host}})


def _is_capacity(pool: Pool) -> bool:
    """Return whether an aggregate is shared capacity, of climate or of Blazar, which gives it an owner as well."""
    return GRANTED in pool.metadata or (OWNER in pool.metadata and pool.metadata.get(RESERVATION) == pool.name)


def _is_pool(pool: Pool) -> bool:
    closed = pool.metadata.get(TENANT) == NOBODY
    is_owned = OWNER in pool.metadata and not _is_capacity(pool)
    return pool.name in (FREEPOOL, BOOK) or is_owned or (pool.name in KEPT and closed)


def _pool(body: Body, names: Names) -> Pool:
    return Pool(str(body["id"]), body["name"], names.read(body["hosts"] or ()), dict(body["metadata"] or {}))
