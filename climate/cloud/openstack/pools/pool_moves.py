"""Hosts between the pools of a cloud: KEPT pools, lease pools, close, take back, and single moves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from climate.cloud import FREEPOOL, KEPT, NotYet, Refused
from climate.cloud.openstack import blazar_filter, fence_store, fencing, lease_servers, servers, shared_capacity
from climate.cloud.openstack.fencing import Changes, Metadata
from climate.cloud.openstack.http import Clash, Remote
from climate.cloud.openstack.lease_servers import PROJECT
from climate.cloud.openstack.pools import aggregates
from climate.cloud.openstack.pools.aggregates import BOOK, CLOSED, OWNER, PROMISED, AggregateState, Pool


def members(state: AggregateState) -> Mapping[str, frozenset[str]]:
    """Return names of hosts by pool, each host in one pool; KEPT pools without hosts are left out, except the first."""
    there = {name: pool for name, pool in state.pools.items() if name != BOOK and PROMISED not in pool.metadata}
    shown = {name for name, pool in there.items() if name not in KEPT or pool.hosts}
    return {
        name: frozenset(host for host in state.pools[name].hosts if state.of(host) == name)
        if name in state.pools
        else frozenset()
        for name in shown | {FREEPOOL}
    }


def enrol(remote: Remote, host: str, token: int) -> None:
    """Add a host to the reservation pool; check for servers again afterwards, since they may arrive meanwhile."""
    seen = aggregates.read_state(remote)
    if host not in seen.names.services:
        raise Refused(f"there is no host {host}")
    subject = [fencing.of_host(host)]
    fencing.check(seen.book, subject, token)
    pool = seen.of(host)
    if pool not in (None, FREEPOOL):
        raise Refused(f"host {host} is in the pool {pool}")
    if pool is None:
        _refuse_used(remote, host)
    fence_store.fence(remote, seen, subject, token)
    free = aggregates.ensure_pool(remote, seen, FREEPOOL)
    if pool is None:
        _join_free(remote, seen, host, free)


def _join_free(remote: Remote, state: AggregateState, host: str, free: Pool) -> None:
    aggregates.join(remote, state.names, host, free)
    try:
        _refuse_used(remote, host)
    except Refused:
        aggregates.remove_host(remote, state.names, host, free)
        raise


def withdraw(remote: Remote, host: str, token: int) -> None:
    """Return a host of the reservation pool to the ordinary scheduler."""
    seen = aggregates.read_state(remote)
    subject = [fencing.of_host(host)]
    fencing.check(seen.book, subject, token)
    pool = seen.of(host)
    if pool not in (None, FREEPOOL):
        raise Refused(f"host {host} is lent")
    if host in seen.names.services:
        fence_store.fence(remote, seen, subject, token)
    if pool == FREEPOOL:
        aggregates.remove_host(remote, seen.names, host, seen.pools[FREEPOOL])


def lend(remote: Remote, name: str, projects: Sequence[str], hosts: Sequence[str], token: int, marks: Metadata) -> None:
    """Create an open pool for projects, its owner first, and move hosts of the reservation pool into it.

    `marks` is the metadata that BlazarFilter reads: with it, preemptible servers leave the hosts first.
    """
    seen = aggregates.read_state(remote)
    _check(seen, name, hosts, token)
    for host in hosts:
        if host not in seen.names.services:
            raise Refused(f"there is no host {host}")
        if seen.of(host) not in (FREEPOOL, name):
            raise NotYet(f"host {host} is not in the reservation pool")
    lease_servers.check_empty(remote, seen, name, hosts)
    fence_store.fence(remote, seen, map(fencing.of_host, hosts), token)
    pool = aggregates.ensure(remote, seen, name)
    access: Changes = {OWNER: projects[0], PROJECT: projects[0], CLOSED: None, PROMISED: None}
    shared = {**lease_servers.expelled(pool, projects), **aggregates.sharing(pool, projects)}
    _mark(remote, pool, {**access, **shared, **marks}, token)
    if marks:
        _evict_preemptibles(remote, seen, pool, hosts)
        pool = replace(pool, hosts=pool.hosts | set(hosts))
    for host in hosts:
        _complete_move(remote, seen, host, FREEPOOL, pool)


def _evict_preemptibles(remote: Remote, state: AggregateState, pool: Pool, hosts: Sequence[str]) -> None:
    """Delete the preemptible servers of hosts from the reservation pool, then add the hosts to the lease pool.

    Nova adds a host to a pool with a zone of its own only if no server is on it. Until then BlazarFilter admits further
    servers, which the next attempt deletes. Raise NotYet while there are any.
    """
    coming = [host for host in hosts if _is_coming(state, host)]
    _evict(remote, coming)
    for host in coming:
        if host not in pool.hosts:
            try:
                aggregates.join(remote, state.names, host, pool)
            except Clash as refusal:
                raise NotYet(f"host {host} cannot join its pool yet: {refusal}") from None
    _evict(remote, coming)  # a server that Nova placed before, and that was on no host then


def _evict(remote: Remote, hosts: Sequence[str]) -> None:
    left = blazar_filter.evict(remote, hosts)
    if left:
        raise NotYet(f"{left} preemptible servers are being deleted")


def close(remote: Remote, name: str, token: int) -> None:
    """Refuse further boots in a pool."""
    seen = aggregates.read_state(remote)
    pool = seen.pools.get(name)
    _check(seen, name, pool.hosts if pool else (), token)
    if pool is not None:
        fence_store.fence(remote, seen, map(fencing.of_host, sorted(pool.hosts)), token)
        _mark(remote, pool, lease_servers.shut(pool), token)


def take_back(remote: Remote, name: str, hosts: Sequence[str], token: int, to: str | None) -> None:
    """Move a pool's hosts to a KEPT pool or to none, and delete it. Close it before the check for servers."""
    seen = aggregates.read_state(remote)
    pool = seen.pools.get(name)
    inside = sorted(pool.hosts) if pool else []
    held = {*inside, *(host for host in hosts if seen.of(host) == FREEPOOL)}
    _check(seen, name, held, token)
    fence_store.fence(remote, seen, map(fencing.of_host, sorted(held)), token)
    if pool is None:
        return
    _mark(remote, pool, lease_servers.shut(pool), token)
    left = len(servers.on(remote, inside)) if to == FREEPOOL else 0
    if left:
        raise NotYet(f"{left} servers are still on the hosts of {name}")
    target = aggregates.ensure_pool(remote, seen, to) if to is not None else None
    for host in inside:
        if target is not None:
            _complete_move(remote, seen, host, name, target)
        else:
            aggregates.remove_host(remote, seen.names, host, pool)
    aggregates.drop(remote, pool)


def place(remote: Remote, host: str, to: str | None, token: int) -> None:
    """Move one host to a KEPT pool, an existing lease pool, or none; complete an interrupted move."""
    seen = aggregates.read_state(remote)
    if host not in seen.names.services:
        raise Refused(f"there is no host {host}")
    if to is not None and to not in KEPT and (to == BOOK or not _is_lent(seen, to)):
        raise Refused(f"there is no pool {to}")
    subject = [fencing.of_host(host)]
    fencing.check(seen.book, subject, token)
    if to == FREEPOOL and seen.of(host) != FREEPOOL:
        _wait_for_servers(remote, seen, host)
    fence_store.fence(remote, seen, subject, token)
    _move(remote, seen, host, to)


def _is_lent(state: AggregateState, name: str) -> bool:
    return name in state.pools and PROMISED not in state.pools[name].metadata


def _move(remote: Remote, state: AggregateState, host: str, to: str | None) -> None:
    target = aggregates.ensure_pool(remote, state, to) if to in KEPT else state.pools[to] if to is not None else None
    sources = [state.pools[name] for name in state.all_of(host) if name != to]
    if to is not None and to not in KEPT:
        lease_servers.check_empty(remote, state, to, [host])
    if target is not None:
        lease_servers.note_origin(remote, state, host, target)
        _join(remote, state, host, target)
    for source in sources:
        aggregates.remove_host(remote, state.names, host, source)
        lease_servers.forget_origin(remote, host, source)


def _join(remote: Remote, state: AggregateState, host: str, target: Pool) -> None:
    if remote.blazar_filter and target.name not in KEPT and _is_coming(state, host):
        _evict_preemptibles(remote, state, target, [host])
    elif host not in target.hosts:
        aggregates.join(remote, state.names, host, target)
        if target.name == FREEPOOL:
            _undo_move(remote, state, host, target)


def _is_coming(state: AggregateState, host: str) -> bool:
    return FREEPOOL in state.pools and host in state.pools[FREEPOOL].hosts


def _undo_move(remote: Remote, state: AggregateState, host: str, free: Pool) -> None:
    """Undo a move if servers arrived meanwhile; the host has not left its former pools yet."""
    try:
        _wait_for_servers(remote, state, host)
    except NotYet:
        aggregates.remove_host(remote, state.names, host, free)
        raise


def _wait_for_servers(remote: Remote, state: AggregateState, host: str) -> None:
    if shared_capacity.other_servers(remote, state, host):
        raise NotYet(f"servers are still on {host}")


def _check(state: AggregateState, name: str, hosts: Iterable[str], token: int) -> None:
    if name in KEPT or name == BOOK:
        raise Refused(f"the pool {name} is lent to nobody")
    fencing.check(state.book, map(fencing.of_host, hosts), token)
    if name in state.pools:
        fencing.check(state.pools[name].metadata, [fencing.of_pool(name)], token)


def _mark(remote: Remote, pool: Pool, wanted: Changes, token: int) -> None:
    """Change a pool's metadata and its token in one request; send nothing if both are stored already."""
    subject = [fencing.of_pool(pool.name)]
    changes = {key: value for key, value in wanted.items() if pool.metadata.get(key) != value}
    changes |= fencing.raising(pool.metadata, subject, token)
    if changes:
        fencing.check(aggregates.set_metadata(remote, pool, changes), subject, token)


def _complete_move(remote: Remote, state: AggregateState, host: str, source: str, target: Pool) -> None:
    """Move a host, or complete an interrupted move."""
    if host not in target.hosts:
        aggregates.move(remote, state.names, host, state.pools[source], target)
    elif source in state.pools and host in state.pools[source].hosts:
        aggregates.remove_host(remote, state.names, host, state.pools[source])


def _refuse_used(remote: Remote, host: str) -> None:
    if servers.on(remote, [host]):
        raise Refused(f"host {host} has servers")
