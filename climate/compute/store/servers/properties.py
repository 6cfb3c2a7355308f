"""Changes of a server's row that take effect at once: name, description, lock, state reset."""

import json
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, TextClause, text, update

from climate.compute.store.servers.tasks import FAILED
from climate.compute.store.tables.servers import servers


def change_in(table: str) -> TextClause:
    """Return the statement that updates a server in a table; a key that is absent leaves its column."""
    return text(f"""
    UPDATE {table} s
    SET name = CASE WHEN c.new ? 'name' THEN c.new ->> 'name' ELSE s.name END,
        description = CASE WHEN c.new ? 'description' THEN c.new ->> 'description' ELSE s.description END,
        metadata = CASE WHEN c.new ? 'metadata' THEN c.new -> 'metadata' ELSE s.metadata END,
        key_name = CASE WHEN c.new ? 'key_name' THEN c.new ->> 'key_name' ELSE s.key_name END,
        image_id = CASE WHEN c.new ? 'image_id' THEN CAST(c.new ->> 'image_id' AS uuid) ELSE s.image_id END,
        access_ipv4 = CASE WHEN c.new ? 'access_ipv4' THEN c.new ->> 'access_ipv4' ELSE s.access_ipv4 END,
        access_ipv6 = CASE WHEN c.new ? 'access_ipv6' THEN c.new ->> 'access_ipv6' ELSE s.access_ipv6 END,
        locked_by = CASE WHEN c.new ? 'locked_by' THEN c.new ->> 'locked_by' ELSE s.locked_by END,
        locked_reason = CASE WHEN c.new ? 'locked_reason' THEN c.new ->> 'locked_reason' ELSE s.locked_reason END,
        tags = CASE WHEN c.new ? 'tags' THEN ARRAY(SELECT jsonb_array_elements_text(c.new -> 'tags')) ELSE s.tags END,
        updated_at = :now
    FROM (SELECT CAST(:changes AS jsonb) AS new) AS c
    WHERE s.id = CAST(:id AS uuid)
""")


_CHANGE = change_in("compute_servers")

_DECREE = text("""
    WITH told AS (
        UPDATE compute_actions SET finished_at = :now, message = :failed
        WHERE server_id = CAST(:id AS uuid) AND finished_at IS NULL)
    UPDATE compute_servers
    SET status = :status, task = NULL, task_image = NULL, task_details = '{}', worker = NULL, worker_until = NULL,
        fault = CASE WHEN :status = 'ERROR' THEN fault END, updated_at = :now
    WHERE id = CAST(:id AS uuid)
""")


def change(conn: Connection, server_id: str, changes: Mapping[str, object], now: datetime) -> None:
    """Update the named columns of a server: name, description, metadata, image_id, access_ipv4, locked_by, tags, …"""
    conn.execute(_CHANGE, {"id": server_id, "changes": json.dumps(changes, default=dict), "now": now})


def set_boot_data(
    conn: Connection, server_id: str, values: Mapping[str, str | None], public_key: str | None = None
) -> None:
    """Set the key_name and the user_data of a server, as far as they are given; user data needs a config drive.

    `public_key`: that of the new key_name, empty for none; None: the key pair is one of this deployment.
    """
    if not values:
        return
    more: dict[str, bool | str | None] = {"config_drive": True} if values.get("user_data") is not None else {}
    if "key_name" in values:
        more["public_key"] = public_key
    conn.execute(update(servers).where(servers.c.id == server_id).values(**values, **more))


def set_disk_config(conn: Connection, server_id: str, value: str) -> None:
    """Set the disk configuration of a server."""
    conn.execute(update(servers).where(servers.c.id == server_id).values(disk_config=value))


def reset_state(conn: Connection, server_id: str, status: str, now: datetime) -> None:
    """Set the status of a server, and clear its task."""
    conn.execute(_DECREE, {"id": server_id, "status": status, "failed": FAILED, "now": now})
