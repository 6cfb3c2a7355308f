"""Planned pools of reservations: empty aggregates with the requirements as metadata."""

from collections.abc import Mapping

from climate.cloud import KEPT, LeasePool, Refused
from climate.cloud.openstack.fencing import Changes
from climate.cloud.openstack.http import Remote
from climate.cloud.openstack.pools import aggregates
from climate.cloud.openstack.pools.aggregates import BOOK, NOBODY, OWNER, PROMISED, TENANT, WANTED, AggregateState, Pool


def promise(remote: Remote, name: str, wanted: Mapping[str, str]) -> int:
    """Create the pool, or update its requirements; return the id of its aggregate."""
    if name in KEPT or name == BOOK:
        raise Refused(f"the pool {name} is lent to nobody")
    seen = aggregates.read_state(remote)
    pool = aggregates.ensure(remote, seen, name)
    if name not in seen.pools or PROMISED in pool.metadata:
        _write(remote, pool, {f"{WANTED}{key}": value for key, value in wanted.items()})
    return int(pool.id)


def _write(remote: Remote, pool: Pool, wanted: Mapping[str, str]) -> None:
    said: Changes = {PROMISED: "true", OWNER: NOBODY, TENANT: NOBODY, **wanted}
    outdated = {key for key in pool.metadata if key.startswith(WANTED)} - set(wanted)
    changes: Changes = {key: value for key, value in said.items() if pool.metadata.get(key) != value}
    changes |= dict.fromkeys(outdated)
    if changes:
        aggregates.set_metadata(remote, pool, changes)


def forget(remote: Remote, name: str) -> None:
    """Delete a pool that never had hosts."""
    pool = aggregates.read_state(remote).pools.get(name)
    if pool is not None and PROMISED in pool.metadata and not pool.hosts:
        aggregates.drop(remote, pool)


def listed(state: AggregateState) -> dict[str, LeasePool]:
    """Return all pools of reservations by name."""
    own = {name: pool for name, pool in state.pools.items() if name not in KEPT and name != BOOK}
    return {name: LeasePool(int(pool.id), _wanted_properties(pool)) for name, pool in own.items()}


def _wanted_properties(pool: Pool) -> Mapping[str, str] | None:
    if PROMISED not in pool.metadata:
        return None
    return {key.removeprefix(WANTED): value for key, value in pool.metadata.items() if key.startswith(WANTED)}
