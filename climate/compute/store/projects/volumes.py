"""Rows of volumes: created for reservations, listed, attached to servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

CREATING, AVAILABLE, DELETING = "creating", "available", "deleting"
ATTACH, DETACH = "attach", "detach"


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a project. `size_gb` is in GB of 2^30 bytes."""

    id: str
    pool: str
    """The reservation that it was created for."""
    number: int
    project_id: str
    name: str
    backend: str
    storage_class: str
    size_gb: int
    status: str
    kept: bool
    """Its reservation is over."""
    server_id: str | None
    device: int | None
    """Index among the attached disks of its server, from 1."""
    wish: str | None
    """The pending change of its server: ATTACH, DETACH; None: nothing."""
    created_at: datetime
    updated_at: datetime

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


_COLUMNS = """id::text, pool, number, project_id, name, backend, storage_class, size_gb, status, kept, server_id::text,
    device, wish, created_at, updated_at"""

_OFFER = text(f"""
    INSERT INTO compute_volumes AS v (pool, number, project_id, name, backend, storage_class, size_gb, status)
    VALUES (:pool, :number, :project_id, :name, :backend, :storage_class, :size_gb, 'creating')
    ON CONFLICT (pool, number) DO UPDATE
    SET size_gb = GREATEST(v.size_gb, excluded.size_gb), updated_at = clock_timestamp()
    RETURNING {_COLUMNS}
""")

_GET = f"SELECT {_COLUMNS} FROM compute_volumes WHERE id = CAST(:id AS uuid)"

_LISTED = text(f"""
    SELECT {_COLUMNS} FROM compute_volumes
    WHERE CAST(:project_id AS text) IS NULL OR project_id = :project_id ORDER BY created_at, id
""")

_OF_POOLS = f"SELECT {_COLUMNS} FROM compute_volumes WHERE pool = ANY(:pools) ORDER BY pool, number"

_OF_SERVER = text(f"SELECT {_COLUMNS} FROM compute_volumes WHERE server_id = CAST(:id AS uuid) ORDER BY device")

_IDS = text("""
    SELECT server_id::text, id::text FROM compute_volumes
    WHERE server_id = ANY(CAST(:ids AS uuid[])) ORDER BY server_id, device
""")

_MADE = text("""
    UPDATE compute_volumes SET status = 'available', updated_at = clock_timestamp()
    WHERE id = CAST(:id AS uuid) AND status = 'creating'
""")

_KEEP = text("UPDATE compute_volumes SET kept = true, updated_at = clock_timestamp() WHERE pool = :pool AND NOT kept")

_GIVE = text("""
    UPDATE compute_volumes
    SET server_id = CAST(:server_id AS uuid), device = :device, wish = 'attach', updated_at = clock_timestamp()
    WHERE id = CAST(:id AS uuid)
""")

_TAKE = text("""
    UPDATE compute_volumes SET wish = 'detach', updated_at = clock_timestamp() WHERE id = CAST(:id AS uuid)
""")

# On success, attaching volumes are attached and detaching ones are free; on failure, the other way round.
_SETTLE = text("""
    UPDATE compute_volumes
    SET server_id = CASE WHEN wish = :gone THEN NULL ELSE server_id END,
        device = CASE WHEN wish = :gone THEN NULL ELSE device END, wish = NULL, updated_at = clock_timestamp()
    WHERE server_id = CAST(:server_id AS uuid) AND wish IS NOT NULL
""")

_DELETING = text("UPDATE compute_volumes SET status = 'deleting' WHERE id = CAST(:id AS uuid)")

_DELETE = text("DELETE FROM compute_volumes WHERE id = CAST(:id AS uuid)")


def offer(conn: Connection, row: dict[str, Any]) -> Volume:
    """Insert or enlarge the row of a reservation's volume; return the row."""
    return Volume(*conn.execute(_OFFER, row).one())


def made(conn: Connection, volume_id: str) -> None:
    """Record that a volume was created."""
    conn.execute(_MADE, {"id": volume_id})


def get(conn: Connection, volume_id: str, *, lock: bool = False) -> Volume | None:
    """Return the volume of that id, or None."""
    row = conn.execute(text(_GET + (" FOR UPDATE" if lock else "")), {"id": volume_id}).first()
    return Volume(*row) if row else None


def listed(conn: Connection, project_id: str | None) -> list[Volume]:
    """Return the volumes of a project, None: of all; oldest first."""
    return [Volume(*row) for row in conn.execute(_LISTED, {"project_id": project_id})]


def of_pools(conn: Connection, pools: Sequence[str], *, lock: bool = False) -> list[Volume]:
    """Return the volumes that were created for these reservations."""
    statement = text(_OF_POOLS + (" FOR UPDATE" if lock else ""))
    return [Volume(*row) for row in conn.execute(statement, {"pools": list(pools)})]


def of_server(conn: Connection, server_id: str) -> list[Volume]:
    """Return the volumes of a server, in the order of their devices."""
    return [Volume(*row) for row in conn.execute(_OF_SERVER, {"id": server_id})]


def ids_of_servers(conn: Connection, server_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of the volumes of these servers, by the servers' ids; only servers with volumes."""
    result: dict[str, list[str]] = {}
    for server_id, volume_id in conn.execute(_IDS, {"ids": list(server_ids)}):
        result.setdefault(server_id, []).append(volume_id)
    return result


def keep(conn: Connection, pool: str) -> None:
    """Keep the volumes of a reservation for their project."""
    conn.execute(_KEEP, {"pool": pool})


def give(conn: Connection, volume_id: str, server_id: str, device: int) -> None:
    """Record that a volume is being attached to a server as one of its devices."""
    conn.execute(_GIVE, {"id": volume_id, "server_id": server_id, "device": device})


def take(conn: Connection, volume_id: str) -> None:
    """Record that a volume is being detached from its server."""
    conn.execute(_TAKE, {"id": volume_id})


def settle(conn: Connection, server_id: str, *, done: bool) -> None:
    """Record the end of a server's volume changes; `done` False: they have failed."""
    conn.execute(_SETTLE, {"server_id": server_id, "gone": DETACH if done else ATTACH})


def deleting(conn: Connection, volume_id: str) -> None:
    """Record that a volume is being deleted."""
    conn.execute(_DELETING, {"id": volume_id})


def delete(conn: Connection, volume_id: str) -> None:
    """Delete the row of a volume."""
    conn.execute(_DELETE, {"id": volume_id})
