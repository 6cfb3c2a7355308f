"""Application credentials as rows."""

from dataclasses import asdict

from sqlalchemy import Connection, Row, delete, insert, select

from climate.identity.models import Credential, NameOrId
from climate.identity.store.tables import application_credentials as table

COLUMNS = (
    table.c.id,
    table.c.name,
    table.c.user_id,
    table.c.project_id,
    table.c.roles,
    table.c.description,
    table.c.unrestricted,
    table.c.expires_at,
    table.c.secret_hash,
)


def for_sign_in(conn: Connection, who: NameOrId, user_id: str | None) -> tuple[Credential, str] | None:
    """Return the credential of that id, or of that name of a user, with the hash of its secret."""
    named = (table.c.user_id == (user_id or "")) & (table.c.name == (who.name or ""))
    row = conn.execute(select(*COLUMNS).where(table.c.id == who.id if who.id else named)).one_or_none()
    return row and (_credential(row), row.secret_hash)


def listing(conn: Connection, user_id: str, name: str | None = None) -> list[Credential]:
    """Return a user's credentials by name."""
    question = select(*COLUMNS).where(table.c.user_id == user_id).order_by(table.c.name)
    if name is not None:
        question = question.where(table.c.name == name)
    return [_credential(row) for row in conn.execute(question)]


def of_project(conn: Connection, project_id: str) -> list[Credential]:
    """Return all credentials for a project, by user and name."""
    question = select(*COLUMNS).where(table.c.project_id == project_id).order_by(table.c.user_id, table.c.name)
    return [_credential(row) for row in conn.execute(question)]


def find(conn: Connection, user_id: str, credential_id: str) -> Credential | None:
    """Return one of a user's credentials."""
    mine = (table.c.user_id == user_id) & (table.c.id == credential_id)
    row = conn.execute(select(*COLUMNS).where(mine)).one_or_none()
    return row and _credential(row)


def add(conn: Connection, credential: Credential, secret_hash: str) -> None:
    conn.execute(insert(table).values(**asdict(credential), secret_hash=secret_hash))


def remove(conn: Connection, user_id: str, credential_id: str) -> bool:
    """Delete a credential; return whether it existed."""
    mine = (table.c.user_id == user_id) & (table.c.id == credential_id)
    return conn.execute(delete(table).where(mine)).rowcount == 1


def _credential(row: Row[*tuple[object, ...]]) -> Credential:
    values = {column.name: row._mapping[column.name] for column in COLUMNS[:-1]}
    return Credential(**{**values, "roles": tuple(row.roles)})
