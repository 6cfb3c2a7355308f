"""Aggregates as administrators manage them: groups of nodes, and pools for an external reservation service.

A pool that a lease of this deployment uses is refused here (Conflict): change the lease instead. The engine moves
those nodes under fencing tokens, and a change here would confuse its records. The same holds for nodes of the
reservation pool that are registered for leases. Nodes that were added to the pool by this API belong to an external
service, and the engine leaves them alone.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from climate.compute.audit_trail import AGGREGATE, Change
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.models.aggregate import INTERNAL, POOL, ZONE, Aggregate, kind_of
from climate.compute.models.node import FREEPOOL, KEPT, OWNER, SHARED, admits
from climate.compute.store.nodes import aggregates as rows
from climate.compute.store.nodes.aggregates import Member
from climate.database.connections import reading
from climate.database.violated_constraints import translated


def listed(compute: Compute) -> list[Aggregate]:
    """Return all aggregates in the order of their creation."""
    with reading(compute.engine) as conn:
        return rows.listed(conn)


def get(compute: Compute, aggregate_id: int) -> Aggregate:
    """Return an aggregate. Raise NotFound if there is none."""
    with reading(compute.engine) as conn:
        return _read(conn, aggregate_id)


def create(compute: Compute, name: str, zone: str | None = None) -> Aggregate:
    """Create an aggregate without nodes. Conflict if the name is taken, BadRequest for an invalid zone."""
    metadata = {} if zone is None else {ZONE: zone}
    kind = kind_of(name, metadata)
    _check_metadata(name, kind, metadata)
    with compute.engine.begin() as conn:
        made = rows.insert(conn, name, kind, metadata)
        if made is None:
            raise _taken(name)
        return _changed(compute, conn, made, None)


def update(compute: Compute, aggregate_id: int, name: str | None = None, zone: str | None = None) -> Aggregate:
    """Update the name or the availability zone of an aggregate; None: unchanged.

    Raises NotFound, BadRequest, Conflict.
    """
    with compute.engine.begin() as conn:
        aggregate = _lock(conn, aggregate_id)
        wanted = name or aggregate.name
        if wanted != aggregate.name:
            _check_rename(conn, aggregate, wanted)
        # Another aggregate may have got the name since it was checked.
        with translated({}, None if wanted == aggregate.name else _taken(wanted)):
            _write(conn, aggregate, wanted, dict(aggregate.metadata) | ({} if zone is None else {ZONE: zone}))
        return _changed(compute, conn, aggregate_id, aggregate)


def set_metadata(compute: Compute, aggregate_id: int, changes: Mapping[str, str | None]) -> Aggregate:
    """Update the metadata of an aggregate; the value None deletes a key.

    The key `blazar:owner` turns it into a pool that contains its nodes. Raises NotFound, BadRequest, Conflict if a
    node cannot be in that pool.
    """
    with compute.engine.begin() as conn:
        aggregate = _lock(conn, aggregate_id)
        changed = {key: value for key, value in (dict(aggregate.metadata) | dict(changes)).items() if value is not None}
        _write(conn, aggregate, aggregate.name, changed)
        return _changed(compute, conn, aggregate_id, aggregate)


def delete(compute: Compute, aggregate_id: int) -> None:
    """Delete an aggregate without nodes. NotFound, BadRequest if it has nodes, Conflict for the reservation pool."""
    with compute.engine.begin() as conn:
        aggregate = _lock(conn, aggregate_id, drop=True)
        if aggregate.name == FREEPOOL:
            raise Conflict(f"Aggregate {FREEPOOL} is the reservation pool and cannot be deleted.")
        if aggregate.nodes:
            raise BadRequest(f"Aggregate {aggregate.name} is not empty: remove its {len(aggregate.nodes)} hosts first.")
        rows.delete(conn, aggregate.id)
        compute.tell_change(conn, Change(AGGREGATE, str(aggregate.id), aggregate.name, _fields(aggregate), None))


def add_host(compute: Compute, aggregate_id: int, host: str) -> Aggregate:
    """Add a node, or all nodes of a service host, to an aggregate.

    Nodes move in one step between pools without owner and pools lent from outside, so that nobody can boot on them in
    between. Raises NotFound, and Conflict if they are in the aggregate already, are in another pool, or have another
    zone elsewhere. Raises Conflict also if they have servers that may not be in the pool.
    """
    with compute.engine.begin() as conn:
        aggregate = _lock(conn, aggregate_id)
        held = _matching(rows.lock_named(conn, host), host)
        new = [node for node in held if node.pool != aggregate.name and aggregate.id not in node.aggregates]
        if not new:
            raise Conflict(f"Aggregate {aggregate.name} already has host {host}.")
        if aggregate.kind == POOL:
            _check_free(aggregate.name, aggregate.metadata, new, _sources(conn, aggregate.name, new))
        else:
            _check_zone(conn, aggregate.id, aggregate.zone, new)
        rows.join(conn, aggregate, aggregate.kind, _ids(new))
        return _changed(compute, conn, aggregate_id, aggregate)


def remove_host(compute: Compute, aggregate_id: int, host: str) -> Aggregate:
    """Remove a node, or all nodes of a service host, from an aggregate. NotFound if they are not in it."""
    with compute.engine.begin() as conn:
        aggregate = _lock(conn, aggregate_id)
        inside = rows.lock_members(conn, aggregate)
        left = [member for member in inside if host == member.name] or [
            member for member in inside if host == member.service_host
        ]
        if not left:
            raise NotFound(f"Aggregate {aggregate.name} has no host {host}.")
        if aggregate.kind == POOL:
            _check_outside(left)
        rows.remove_nodes(conn, aggregate, _ids(left))
        return _changed(compute, conn, aggregate_id, aggregate)


def _changed(compute: Compute, conn: Connection, aggregate_id: int, before: Aggregate | None) -> Aggregate:
    """Record the change of an aggregate; return the aggregate."""
    after = _read(conn, aggregate_id)
    was = None if before is None else _fields(before)
    compute.tell_change(conn, Change(AGGREGATE, str(after.id), after.name, was, _fields(after)))
    return after


def _fields(of: Aggregate) -> dict[str, object]:
    return {"name": of.name, "metadata": dict(of.metadata), "hosts": list(of.nodes)}


def _write(conn: Connection, aggregate: Aggregate, name: str, metadata: Mapping[str, str]) -> None:
    kind, held = kind_of(name, metadata), rows.lock_members(conn, aggregate)
    _check_metadata(name, kind, metadata)
    if kind == POOL and aggregate.kind != POOL:
        _check_free(name, metadata, held)
    if kind != POOL:
        _check_zone(conn, aggregate.id, metadata.get(ZONE), held)
    moves = kind != aggregate.kind
    if moves:
        rows.remove_nodes(conn, aggregate, _ids(held))
    rows.change(conn, aggregate.id, name, kind, metadata)
    if moves:
        rows.join(conn, aggregate, kind, _ids(held))
    elif kind == POOL:
        rows.rewrite(conn, _ids(held))


def _check_rename(conn: Connection, aggregate: Aggregate, name: str) -> None:
    if aggregate.kind == POOL and (aggregate.nodes or aggregate.name in KEPT):
        raise Conflict(f"Aggregate {aggregate.name} is a pool with hosts or a fixed name: it cannot be renamed.")
    if name in KEPT - {FREEPOOL}:
        # Such a rename would wait for the name while it holds hosts; whoever creates the pool holds the name first.
        raise Conflict(f"{name} is the name of a pool: create an aggregate of that name, and add the hosts to it.")
    if name == FREEPOOL or rows.is_taken(conn, name, aggregate.id):
        raise _taken(name)


def _check_metadata(name: str, kind: str, metadata: Mapping[str, str]) -> None:
    zone = metadata.get(ZONE)
    if name in KEPT and OWNER in metadata:
        raise Conflict(f"Aggregate {name} is a pool without an owner.")
    if zone is None:
        return
    if kind == POOL:
        raise BadRequest(f"Aggregate {name} is a pool: put its hosts into another aggregate for their zone.")
    if not zone.strip() or zone == INTERNAL or {":", ","} & set(zone):
        raise BadRequest(f"availability_zone must be the name of one zone, without ':' and ',', and not {INTERNAL!r}.")


def _sources(conn: Connection, pool: str, nodes: Sequence[Member]) -> frozenset[str]:
    """Return the pools from which nodes may move into this one."""
    if pool not in KEPT:
        return KEPT
    return rows.foreign_pools(conn, [node.pool for node in nodes if node.pool is not None])


def _check_outside(nodes: Sequence[Member]) -> None:
    for node in nodes:
        if not node.outside:
            raise Conflict(f"Host {node.name} is registered for leases: remove it by the reservation API.")


def _check_free(
    pool: str, metadata: Mapping[str, str], nodes: Sequence[Member], sources: frozenset[str] = frozenset()
) -> None:
    """Check that nodes may enter a pool: they are in none or a source, and have servers of its owner only.

    Pools for hosts out of use accept servers of any owner.
    """
    for node in nodes:
        if node.pool is not None and node.pool not in sources:
            raise Conflict(f"Host {node.name} is in the pool {node.pool}: remove it from there first.")
        if node.pool is not None:
            _check_outside([node])
        foreign = node.strangers if pool in KEPT else _strangers(node, metadata)
        if foreign and (pool == FREEPOOL or pool not in KEPT):
            raise Conflict(f"Host {node.name} has servers that may not be in the pool {pool}.")


def _strangers(node: Member, metadata: Mapping[str, str]) -> set[str]:
    """Return the projects with servers on a node to which a pool is not lent."""
    owner, shared = metadata.get(OWNER), metadata.get(SHARED)
    return {project for project in node.projects if not admits(owner, shared, project)}


def _check_zone(conn: Connection, aggregate_id: int, zone: str | None, nodes: Sequence[Member]) -> None:
    other = zone and rows.zoned_otherwise(conn, aggregate_id, _ids(nodes), zone)
    if other:
        raise Conflict(
            f"Host {other[0]} is in the availability zone {other[2]} by aggregate {other[1]}: "
            f"it cannot be in {zone} as well."
        )


def _matching(known: Sequence[Member], host: str) -> Sequence[Member]:
    present = [member for member in known if member.present]
    named = [member for member in present if member.name == host]
    if len(named) > 1:
        owners = ", ".join(member.service_host for member in named)
        raise Conflict(f"There are {len(named)} hosts named {host}, of the services {owners}.")
    if not present:
        raise NotFound(f"Compute host {host} could not be found.")
    return named or present


def _lock(conn: Connection, aggregate_id: int, *, drop: bool = False) -> Aggregate:
    aggregate = rows.lock(conn, aggregate_id, drop=drop)
    if aggregate is None:
        raise _none(aggregate_id)
    if aggregate.fence > 0:
        raise Conflict(f"Aggregate {aggregate.name} is in use by a lease: change the lease instead.")
    return aggregate


def _read(conn: Connection, aggregate_id: int) -> Aggregate:
    aggregates = rows.listed(conn, aggregate_id)
    if not aggregates:
        raise _none(aggregate_id)
    return aggregates[0]


def _ids(members: Sequence[Member]) -> list[int]:
    return [member.id for member in members]


def _none(aggregate_id: int) -> NotFound:
    return NotFound(f"Aggregate {aggregate_id} could not be found.")


def _taken(name: str) -> Conflict:
    return Conflict(f"Aggregate {name} already exists.")
