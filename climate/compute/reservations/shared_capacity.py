"""Shared capacity: slots for servers of one size, granted to a project on nodes of the reservation pool.

A grant has a private flavor through which its capacity is used: on each node as many servers as it has slots there.
Changes of a grant and claims of a slot hold the same row locks of nodes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Busy, Conflict, NotFound, StaleToken
from climate.compute.models.flavor import GROUP, RESERVATION, Flavor
from climate.compute.models.node import FREEPOOL, KEPT
from climate.compute.models.request import Slots, Spec
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.store.nodes.nodes import Held
from climate.compute.store.projects import flavors
from climate.compute.store.reservations import shared_capacity as rows
from climate.compute.store.servers import server_groups

OWNER_OF_GROUP = "climate"
"""The user id of the server group, which belongs to the reservation and no user."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant to be created. Sizes: MB of memory, GB of disk."""

    pool: str
    project_id: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    slots: Mapping[str, int]
    """Node -> number of its slots."""
    group_id: str | None = None
    policy: str | None = None
    """The policy of the server group; None: no group."""
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    shared_with: tuple[str, ...] = ()
    """Further projects that may use the capacity."""

    @property
    def projects(self) -> tuple[str, ...]:
        return (self.project_id, *self.shared_with)

    @property
    def flavor(self) -> Flavor:
        """Return the private flavor through which the capacity is used; its names are those of Blazar."""
        resource = "resources:CUSTOM_RESERVATION_" + self.pool.upper().replace("-", "_")
        specs = {**self.extra_specs, RESERVATION: self.pool, resource: "1"}
        specs |= {GROUP: self.group_id} if self.group_id and self.policy else {}
        return Flavor(
            id=self.pool,
            name=f"reservation:{self.pool}",
            vcpus=self.vcpus,
            ram_mb=self.memory_mb,
            disk_gb=self.disk_gb,
            is_public=False,
            projects=self.projects,
            extra_specs=specs,
        )


def grant(compute: Compute, grant: Grant, token: int) -> None:
    """Create or update a grant; a closed one is opened again.

    Raises StaleToken, NotFound for an unknown node, Busy while one is not in the reservation pool.
    """
    with compute.engine.begin() as conn:
        held = rows.lock(conn, grant.pool, list(grant.slots))
        nodes = _nodes(grant, held, token)
        if not rows.write(conn, grant.pool, grant.projects, grant.group_id if grant.policy else None, token):
            raise StaleToken
        rows.replace_slots(conn, grant.pool, nodes)
        if not flavors.write(conn, grant.flavor):
            raise Conflict(f"There is another flavor named {grant.flavor.name}.")
        if grant.group_id and grant.policy:
            owner = {"project_id": grant.project_id, "user_id": OWNER_OF_GROUP}
            server_groups.ensure(conn, grant.group_id, grant.flavor.name, owner, grant.policy)


def close(compute: Compute, pool: str, token: int) -> None:
    """Refuse further servers of a grant; nothing to do if there is none. Raises StaleToken."""
    with compute.engine.begin() as conn:
        rows.lock(conn, pool)
        if _known(conn, pool, token):
            rows.close(conn, pool, token)


def revoke(compute: Compute, pool: str, token: int) -> None:
    """Delete a grant, its flavor and its group; lower tokens cannot create it again.

    Raises StaleToken, and Busy while servers use it or wait for its capacity.
    """
    with compute.engine.begin() as conn:
        before = next(iter(rows.get(conn, [pool])), None)
        group_id = before.group_id if before else None
        if group_id is not None:
            server_groups.lock_to_drop(conn, group_id)
        rows.lock(conn, pool)
        result = _known(conn, pool, token)
        if result is not None and result.group_id != group_id:
            raise Busy(f"The reservation {pool} is being changed; try again shortly.")
        left = rows.servers(conn, pool) if result else 0
        if left:
            raise Busy(f"{left} servers still use {pool}")
        if not rows.revoke(conn, pool, token):
            raise StaleToken
        if result:
            flavors.delete(conn, pool)
        if result and result.group_id:
            server_groups.delete(conn, result.group_id)


def check_hints(conn: Connection, spec: Spec) -> None:
    """Check that a request which names a grant by the hint `reservation` uses its flavor; else BadRequest."""
    meant = spec.flavor.reservation if spec.flavor else None
    others = [pool for pool in spec.pools if pool != meant]
    if meant is not None and others:
        raise BadRequest(f"The flavor is of the reservation {meant}, and the hint 'reservation' names another one.")
    granted = [result.pool for result in rows.get(conn, others) if not result.revoked] if others else []
    if granted:
        raise BadRequest(
            f"Servers of the reservation {granted[0]} are booted with its flavor, reservation:{granted[0]}."
        )


def check_ordinary(*sizes: Flavor) -> None:
    """Check that none of these flavors belongs to a reservation, whose servers keep their size; else BadRequest."""
    for flavor in sizes:
        if flavor.reservation is not None:
            raise BadRequest(f"The flavor {flavor.name} belongs to a reservation, whose servers keep their size.")


def check_own(conn: Connection, flavor_id: str) -> None:
    """Check that a flavor does not belong to a grant, which only a lease changes; else Conflict."""
    if any(not result.revoked for result in rows.get(conn, [flavor_id])):
        raise Conflict(f"Flavor {flavor_id} belongs to an active reservation: change its lease instead.")


def slots(conn: Connection, hosts: Hosts, spec: Spec) -> Slots | None:
    """Return the capacity that is granted to a request; None if the request uses no grant."""
    pool = spec.flavor.reservation if spec.flavor else None
    use = rows.use(conn, pool) if pool is not None else None
    if pool is None or use is None:
        return None
    if use.closed or spec.project_id not in use.projects:
        return Slots(pool, {}, f"The reservation {pool} is over or ending, or another project's.")
    there = dict(zip(hosts.ids.tolist(), hosts.servers.tolist(), strict=True)) if use.slots else {}
    most = {node: there[node] + size - used for node, (size, used) in use.slots.items() if node in there}
    total, taken = (sum(numbers) for numbers in zip((0, 0), *use.slots.values(), strict=True))
    return Slots(pool, most, f"Of the {total} slots of the reservation {pool}, {taken} are in use.")


def lacking(conn: Connection, spec: Spec, counts: Mapping[int, int]) -> Iterable[str]:
    """Return the reasons why locked nodes cannot take so many servers of a grant."""
    use = rows.use(conn, spec.slots.pool) if spec.slots else None
    if spec.slots is None:
        return []
    if use is None or use.closed or spec.project_id not in use.projects:
        return [f"the reservation {spec.slots.pool} was closed"]
    free = {node: size - used for node, (size, used) in use.slots.items()}
    short = [node for node, count in counts.items() if count > free.get(node, 0)]
    return [f"node {node} has {max(0, free.get(node, 0))} free slots of the reservation" for node in short]


def _nodes(grant: Grant, held: Sequence[Held], token: int) -> dict[int, int]:
    """Return the slots of a grant by the ids of nodes."""
    named = {node.name: node for node in sorted(held, key=lambda node: node.pool == FREEPOOL)}
    missing = set(grant.slots) - set(named)
    if missing:
        raise NotFound(f"Host {min(missing)} could not be found.")
    _check_lendable([named[name] for name in grant.slots], token)
    return {named[name].id: count for name, count in grant.slots.items() if count > 0}


def _check_lendable(nodes: Sequence[Held], token: int) -> None:
    """Raise StaleToken if a later request has changed a node, and Busy if one is not in the reservation pool."""
    if any(node.fence > token for node in nodes):
        raise StaleToken
    astray = [node.name for node in nodes if node.outside or node.pool != FREEPOOL]
    if astray:
        raise Busy(f"Host {min(astray)} is not in the reservation pool.")


def _known(conn: Connection, pool: str, token: int) -> rows.Grant | None:
    """Return the grant of that name, unless it is over. Raises StaleToken."""
    if pool in KEPT:
        raise Conflict(f"The pool {pool} has no grant.")
    result = next(iter(rows.get(conn, [pool])), None)
    if result is not None and result.fence > token:
        raise StaleToken
    return result if result and not result.revoked else None
