"""Rows of volumes: created for reservations or without one, listed, attached to servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Text, case, cast, func, insert, null, select, text, update
from sqlalchemy import delete as delete_from
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.compute.store.columns import in_array, in_parameter
from climate.compute.store.tables.volumes import volumes
from climate.database.advisory_locks import Subject

CREATING, AVAILABLE, DELETING = "creating", "available", "deleting"
ATTACH, DETACH = "attach", "detach"


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a project. `size_gb` is in GB of 2^30 bytes."""

    id: str
    pool: str | None
    """The reservation that it was created for; None: it was created without one."""
    number: int | None
    project_id: str
    name: str
    backend: str
    storage_class: str
    size_gb: int
    status: str
    kept: bool
    """Its reservation is over, or it never had one: its project may delete it."""
    server_id: str | None
    device: int | None
    """Index among the attached disks of its server, from 1."""
    wish: str | None
    """The pending change of its server: ATTACH, DETACH; None: nothing."""
    created_at: datetime
    updated_at: datetime
    user_id: str | None
    """Who created it; None: a lease."""
    description: str | None
    metadata: Mapping[str, str]

    @property
    def state(self) -> str:
        """Return the status in the terms of Block Storage."""
        if self.server_id is None or self.status != AVAILABLE:
            return self.status
        return {ATTACH: "attaching", DETACH: "detaching"}.get(self.wish or "", "in-use")

    @property
    def path(self) -> str:
        """Return the device name in a virtual machine, whose own disk is /dev/vda; at most 25 are attached."""
        return f"/dev/vd{chr(ord('a') + (self.device or 0))}"


_COLUMNS = tuple(volumes.c[name] for name in Volume.__slots__)

_ALONE = text(Subject.BACKEND.lock("backend"))

_IDS = (
    select(volumes.c.server_id, volumes.c.id)
    .where(in_parameter(volumes.c.server_id, "servers"))
    .order_by(volumes.c.server_id, volumes.c.device)
)


def upsert_reserved(conn: Connection, row: dict[str, object]) -> Volume:
    """Insert or enlarge the row of a reservation's volume; return the row."""
    given = {
        name: row[name] for name in ("pool", "number", "project_id", "name", "backend", "storage_class", "size_gb")
    }
    new = upsert(volumes).values(**given, status=CREATING)
    size = func.greatest(volumes.c.size_gb, new.excluded.size_gb)
    statement = new.on_conflict_do_update(
        index_elements=["pool", "number"], set_={"size_gb": size, "updated_at": func.clock_timestamp()}
    )
    return Volume(*conn.execute(statement.returning(*_COLUMNS)).one())


def alone(conn: Connection, backend: str) -> None:
    """Wait until no other transaction creates a volume without reservation on a backend."""
    conn.execute(_ALONE, {"backend": backend})


def sizes(conn: Connection, backend: str) -> dict[str, int]:
    """Return the GB of all volumes of a backend by project."""
    query = select(volumes.c.project_id, func.sum(volumes.c.size_gb)).where(volumes.c.backend == backend)
    return {project_id: int(size) for project_id, size in conn.execute(query.group_by(volumes.c.project_id))}


def add(conn: Connection, row: Mapping[str, object]) -> Volume:
    """Insert the row of a volume without reservation; return it."""
    new = insert(volumes).values(**row, status=CREATING, kept=True)
    return Volume(*conn.execute(new.returning(*_COLUMNS)).one())


def mark_available(conn: Connection, volume_id: str) -> bool:
    """Record that a volume was created; False if it was deleted, or is being deleted."""
    _change(conn, volumes.c.id == volume_id, volumes.c.status == CREATING, status=AVAILABLE)
    return conn.scalar(select(volumes.c.status).where(volumes.c.id == volume_id)) == AVAILABLE


def get(conn: Connection, volume_id: str, *, lock: bool = False) -> Volume | None:
    """Return the volume of that id, or None."""
    query = select(*_COLUMNS).where(volumes.c.id == volume_id)
    row = conn.execute(query.with_for_update() if lock else query).first()
    return Volume(*row) if row else None


def listed(conn: Connection, project_id: str | None) -> list[Volume]:
    """Return the volumes of a project, None: of all; oldest first."""
    query = select(*_COLUMNS).order_by(volumes.c.created_at, volumes.c.id)
    if project_id is not None:
        query = query.where(volumes.c.project_id == project_id)
    return [Volume(*row) for row in conn.execute(query)]


def of_pools(conn: Connection, pools: Sequence[str], *, lock: bool = False) -> list[Volume]:
    """Return the volumes that were created for these reservations."""
    query = select(*_COLUMNS).where(in_array(volumes.c.pool, pools)).order_by(volumes.c.pool, volumes.c.number)
    return [Volume(*row) for row in conn.execute(query.with_for_update() if lock else query)]


def of_server(conn: Connection, server_id: str) -> list[Volume]:
    """Return the volumes of a server, in the order of their devices."""
    query = select(*_COLUMNS).where(volumes.c.server_id == server_id).order_by(volumes.c.device)
    return [Volume(*row) for row in conn.execute(query)]


def servers_of(conn: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the servers of those of these volumes that are attached to one, by the ids of the volumes."""
    own = volumes.c
    query = select(own.id, own.server_id).where(in_array(cast(own.id, Text), ids), own.server_id.is_not(None))
    return {row.id: row.server_id for row in conn.execute(query)}


def ids_of_servers(conn: Connection, server_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of the volumes of these servers, by the servers' ids; only servers with volumes."""
    result: dict[str, list[str]] = {}
    for server_id, volume_id in conn.execute(_IDS, {"servers": list(server_ids)}):
        result.setdefault(server_id, []).append(volume_id)
    return result


def retain(conn: Connection, pool: str) -> None:
    """Keep the volumes of a reservation for their project."""
    _change(conn, volumes.c.pool == pool, ~volumes.c.kept, kept=True)


def begin_attachment(conn: Connection, volume_id: str, server_id: str, device: int) -> None:
    """Record that a volume is being attached to a server as one of its devices."""
    _change(conn, volumes.c.id == volume_id, server_id=server_id, device=device, wish=ATTACH)


def begin_detachment(conn: Connection, volume_id: str) -> None:
    """Record that a volume is being detached from its server."""
    _change(conn, volumes.c.id == volume_id, wish=DETACH)


def settle(conn: Connection, server_id: str, *, done: bool) -> None:
    """Record the end of a server's volume changes; `done` False: they have failed."""
    # On success, attaching volumes are attached and detaching ones are free; on failure, the other way round.
    own = volumes.c
    is_gone = own.wish == (DETACH if done else ATTACH)
    freed = {column.name: case((is_gone, null()), else_=column) for column in (own.server_id, own.device)}
    _change(conn, own.server_id == server_id, own.wish.is_not(None), wish=None, **freed)


def deleting(conn: Connection, volume_id: str) -> None:
    """Record that a volume is being deleted."""
    conn.execute(update(volumes).where(volumes.c.id == volume_id).values(status=DELETING))


def delete(conn: Connection, volume_id: str) -> None:
    """Delete the row of a volume."""
    conn.execute(delete_from(volumes).where(volumes.c.id == volume_id))


def _change(conn: Connection, *conditions: ColumnElement[bool], **values: object) -> None:
    """Update the volumes that fulfil all conditions."""
    conn.execute(update(volumes).where(*conditions).values(**values, updated_at=func.clock_timestamp()))
