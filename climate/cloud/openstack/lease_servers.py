"""Servers of a lease and those of others, on the hosts of its pool; and the pool that a failed host came from.

Only servers of the projects that may boot in a pool are of the lease. All others on its hosts stay: they arrived while
the pool was open to everybody, or without a filter in Nova.
"""

from collections.abc import Sequence

from climate.cloud import FREEPOOL, KEPT, NotYet
from climate.cloud.openstack import blazar_filter, hosts, servers
from climate.cloud.openstack.fencing import Changes
from climate.cloud.openstack.http import Body, Remote
from climate.cloud.openstack.pools import aggregates
from climate.cloud.openstack.pools.aggregates import CLOSED, NOBODY, OWNER, TENANT, AggregateState, Pool

PROJECT, ADMITTED = "climate:project", "climate:admitted:"
"""Metadata of a pool: the project of its lease, and the prefix of the keys with projects that were admitted."""

ORIGIN = "climate:from:"
"""Prefix of the keys with the lease pool of each host, in a KEPT pool."""


def is_of(pool: Pool | None, server: Body) -> bool:
    """Return whether a server on the pool's hosts is of its lease; always so for a pool of an unknown project."""
    projects = _projects(pool) if pool else frozenset[str]()
    return not projects or server["tenant_id"] in projects


def shut(pool: Pool) -> Changes:
    """Return the changes after which a pool refuses boots, for either filter; it remembers its projects."""
    closed: Changes = {CLOSED: "true", OWNER: NOBODY, TENANT: NOBODY}
    owner = pool.metadata.get(OWNER, NOBODY)
    project: Changes = {PROJECT: owner} if PROJECT not in pool.metadata and owner != NOBODY else {}
    expelled = blazar_filter.closing_metadata(pool)
    former = {f"{ADMITTED}{key}": "true" for key in (*expelled, *_shared(pool))}
    return {**closed, **project, **former, **expelled, **aggregates.unshared(pool)}


def expelled(pool: Pool, projects: Sequence[str]) -> Changes:
    """Return the changes after which no filter admits the further projects of a pool that are not among these.

    The pool remembers them: their servers are of the lease until its end. Projects that an administrator let in stay.
    """
    lost = [one for one in _shared(pool) if one not in projects]
    return {**dict.fromkeys(lost), **{f"{ADMITTED}{one}": "true" for one in lost}}


def _shared(pool: Pool) -> list[str]:
    """Return the further projects that a pool is open to."""
    prefix = aggregates.SHARED
    return [key.removeprefix(prefix) for key in pool.metadata if key.startswith(prefix)]


def check_empty(remote: Remote, state: AggregateState, name: str, wanted: Sequence[str]) -> None:
    """Raise NotYet if servers are on hosts that a lease pool is to get from the reservation pool.

    The reservation pool is closed before, so that no further ones arrive. Preemptible servers do not count where
    BlazarFilter admits them: they are deleted when their host joins the lease pool.
    """
    there = state.pools[name].hosts if name in state.pools else frozenset[str]()
    coming = [host for host in wanted if host not in there and state.of(host) == FREEPOOL]
    if not coming:
        return
    aggregates.ensure_pool(remote, state, FREEPOOL)
    left = servers.on(remote, coming)
    if remote.blazar_filter:
        left = [each for each in left if not blazar_filter.is_preemptible(each)]
    if left:
        used = ", ".join(sorted({str(each[servers.NODE]) for each in left}))
        raise NotYet(f"{len(left)} servers that are not of the lease are still on {used}")


def note_origin(remote: Remote, state: AggregateState, host: str, target: Pool) -> None:
    """Note the lease pool that a host leaves for a KEPT pool; its servers are evacuated to that pool."""
    lease = next((name for name in state.all_of(host) if name not in KEPT), None)
    key = f"{ORIGIN}{host}"
    if target.name in KEPT - {FREEPOOL} and lease is not None and target.metadata.get(key) != lease:
        aggregates.set_metadata(remote, target, {key: lease})


def forget_origin(remote: Remote, host: str, source: Pool) -> None:
    key = f"{ORIGIN}{host}"
    if key in source.metadata:
        aggregates.set_metadata(remote, source, {key: None})


def destination(remote: Remote, state: AggregateState, host: str) -> str | None:
    """Return the service host for servers of a failed host: in the pool of their lease, with the fewest servers.

    Return None if the host had no lease, or the pool is closed or deleted. Raise NotYet if no host of the pool is up.
    """
    pool = next((pool for name in _origins(state, host) if (pool := state.pools.get(name))), None)
    if pool is None or CLOSED in pool.metadata:
        return None
    able = sorted(pool.hosts - hosts.down_hypervisors(remote) - {host})
    if not able:
        raise NotYet(f"no host of the pool {pool.name} is up")
    load = {name: len(servers.on(remote, [name])) for name in able}
    return state.names.services[min(able, key=lambda name: (load[name], name))]


def _origins(state: AggregateState, host: str) -> list[str]:
    kept = [state.pools[name] for name in state.all_of(host) if name in KEPT]
    return [pool.metadata[key] for pool in kept if (key := f"{ORIGIN}{host}") in pool.metadata]


def _projects(pool: Pool) -> frozenset[str]:
    open_to = {key for key, value in pool.metadata.items() if value == blazar_filter.ADMITTED}
    former = {key.removeprefix(ADMITTED) for key in pool.metadata if key.startswith(ADMITTED)}
    owners = {pool.metadata.get(PROJECT, NOBODY), pool.metadata.get(OWNER, NOBODY)} - {NOBODY}
    return frozenset(owners | open_to | former | set(_shared(pool)))
