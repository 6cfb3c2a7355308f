"""Capacity on hosts of the reservation pool, granted to a project by a private flavor and an aggregate.

The hosts stay in the reservation pool. `reservation` and `filter_tenant_id` of the aggregate, and the flavor's extra
spec, restrict access. Nova does not count how many servers of a flavor are on a host; the filter of climate does.
"""

from climate.cloud import FREEPOOL, KEPT, Capacity, NotYet, Refused
from climate.cloud.openstack import fence_store, fencing, flavors, servers, slots
from climate.cloud.openstack.fencing import Changes
from climate.cloud.openstack.http import Body, Remote
from climate.cloud.openstack.pools import aggregates
from climate.cloud.openstack.pools.aggregates import (
    BOOK,
    CLOSED,
    GRANTED,
    NOBODY,
    OWNER,
    RESERVATION,
    TENANT,
    AggregateState,
    Pool,
)

SLOTS = "climate:slots:"
"""Prefix of the keys with the number of servers that each host has room for."""


def grant(remote: Remote, capacity: Capacity, token: int) -> None:
    """Let a project boot with the flavor of a pool on hosts; called again, replace the hosts.

    Raise Refused for affinity or anti-affinity across hosts: that needs a server group with a chosen id, which Nova
    cannot create.
    """
    _check_affinity(capacity)
    seen, result = _read_grant(remote, capacity.pool, token)
    _check_hosts(seen, capacity, token)
    fence_store.fence_pool(remote, seen, capacity.pool, token)
    result = result or aggregates.ensure(remote, seen, capacity.pool)
    project = capacity.project_id
    projects = (project, *capacity.shared_with)
    mark: Changes = {GRANTED: project, RESERVATION: capacity.pool, CLOSED: None, OWNER: None}
    expelled = [one for one in _further(result) if one not in projects]
    _mark(remote, result, mark | aggregates.sharing(result, projects) | _slots(seen, result, capacity))
    for host in sorted(capacity.slots.keys() - result.hosts):
        aggregates.join(remote, seen.names, host, result)
    former = _hosts(seen, result) - capacity.slots.keys()
    for host in sorted(former & result.hosts):
        aggregates.remove_host(remote, seen.names, host, result)
    is_counted = slots.are_counted(remote)
    if is_counted:
        slots.offer(remote, capacity.pool, {**capacity.slots, **dict.fromkeys(former, 0)})
    flavors.create(remote, capacity, slots.class_of(capacity.pool) if is_counted else None)
    for one in projects:
        flavors.admit(remote, capacity.pool, one)
    for one in expelled:
        flavors.expel(remote, capacity.pool, one)


def close(remote: Remote, name: str, token: int) -> None:
    """Refuse further boots on shared capacity; do nothing if there is none."""
    seen, result = _read_grant(remote, name, token)
    if result is not None:
        fence_store.fence_pool(remote, seen, name, token)
        _shut(remote, result)


def revoke(remote: Remote, name: str, token: int) -> None:
    """Delete the flavor and the aggregate. Close the capacity before the check for servers."""
    seen, result = _read_grant(remote, name, token)
    fence_store.fence_pool(remote, seen, name, token)
    if result is None:
        return
    _shut(remote, result)
    left = len(used_by(remote, name))
    if left:
        raise NotYet(f"{left} servers still use {name}")
    flavors.drop(remote, name)
    if slots.are_counted(remote):
        slots.drop(remote, name, _hosts(seen, result))
    for host in sorted(result.hosts):
        aggregates.remove_host(remote, seen.names, host, result)
    aggregates.drop(remote, result)


def used_by(remote: Remote, name: str) -> list[Body]:
    """Return the servers of all projects with the flavor of shared capacity."""
    result = remote.each("/servers/detail", all_tenants="1", flavor=name)
    return [each for each in result if each["flavor"].get("original_name") == flavors.name_of(name)]


def other_servers(remote: Remote, state: AggregateState, host: str) -> list[Body]:
    """Return the servers on a host, except those that use shared capacity there."""
    here = {flavors.name_of(name) for name, pool in state.grants.items() if host in pool.hosts}
    return [each for each in servers.on(remote, [host]) if each["flavor"].get("original_name") not in here]


def _read_grant(remote: Remote, name: str, token: int) -> tuple[AggregateState, Pool | None]:
    seen = aggregates.read_state(remote)
    if name in KEPT or name == BOOK:
        raise Refused(f"no capacity is granted for the pool {name}")
    fencing.check(seen.book, [fencing.of_pool(name)], token)
    return seen, seen.grants.get(name)


def _check_affinity(capacity: Capacity) -> None:
    alone = len(capacity.slots) <= 1 if capacity.affinity else sum(capacity.slots.values()) <= 1
    if capacity.affinity is not None and not alone:
        raise Refused("this cloud supports neither anti-affinity of a reservation, nor affinity over several hosts")


def _check_hosts(state: AggregateState, capacity: Capacity, token: int) -> None:
    hosts = sorted(capacity.slots)
    for host in hosts:
        if host not in state.names.services:
            raise Refused(f"there is no host {host}")
        if state.of(host) != FREEPOOL:
            raise NotYet(f"host {host} is not in the reservation pool")
    fencing.check(state.book, map(fencing.of_host, hosts), token)


def _slots(state: AggregateState, pool: Pool, capacity: Capacity) -> Changes:
    """Return the changes that store the number of slots per host, for the filter that counts them.

    Former hosts have none, and stay known: servers may still use their inventories in Placement.
    """
    wanted: Changes = {f"{SLOTS}{state.names.spelled(host)}": str(count) for host, count in capacity.slots.items()}
    return dict.fromkeys((key for key in pool.metadata if key.startswith(SLOTS)), "0") | wanted


def _hosts(state: AggregateState, pool: Pool) -> frozenset[str]:
    """Return the hosts that have slots or had them."""
    former = (key.removeprefix(SLOTS) for key in pool.metadata if key.startswith(SLOTS))
    return pool.hosts | state.names.read(former)


def _shut(remote: Remote, pool: Pool) -> None:
    # Blazar names the project only as the tenant.
    project = pool.metadata.get(GRANTED) or pool.metadata.get(TENANT, NOBODY)
    further = _further(pool)
    _mark(remote, pool, {GRANTED: project, TENANT: NOBODY, CLOSED: "true", **aggregates.unshared(pool)})
    for one in (project, *further):
        flavors.expel(remote, pool.name, one)


def _further(pool: Pool) -> list[str]:
    """Return the projects beside the owner that may use shared capacity."""
    prefix = aggregates.SHARED
    return [key.removeprefix(prefix) for key in pool.metadata if key.startswith(prefix)]


def _mark(remote: Remote, pool: Pool, wanted: Changes) -> None:
    changes = {key: value for key, value in wanted.items() if pool.metadata.get(key) != value}
    if changes:
        aggregates.set_metadata(remote, pool, changes)
