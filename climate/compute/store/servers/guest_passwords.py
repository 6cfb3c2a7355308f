"""Password of a server that its guest posted."""

from sqlalchemy import Connection, select, update

from climate.compute.store.tables.servers import servers


def get(conn: Connection, server_id: str) -> str:
    """Return the password of a server; an empty text without one."""
    return conn.execute(select(servers.c.guest_password).where(servers.c.id == server_id)).scalar() or ""


def add(conn: Connection, server_id: str, password: str) -> bool:
    """Record the password of a server; return False if it has one already."""
    none = (servers.c.id == server_id) & servers.c.guest_password.is_(None)
    return conn.execute(update(servers).where(none).values(guest_password=password)).rowcount == 1


def clear(conn: Connection, server_id: str) -> None:
    """Delete the password of a server."""
    conn.execute(update(servers).where(servers.c.id == server_id).values(guest_password=None))
