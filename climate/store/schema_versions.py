"""Migrations: revisions of the database, and the newest available ones."""

from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, column, func, select, table

TABLE = "alembic_version"


def present(conn: Connection) -> frozenset[str]:
    """Return the revisions of the database; none before the first migration."""
    if conn.execute(select(func.to_regclass(TABLE))).scalar_one() is None:
        return frozenset()
    return frozenset(conn.scalars(select(column("version_num")).select_from(table(TABLE))))


@cache
def newest(folder: Path) -> frozenset[str]:
    """Return the newest revisions among the migrations in a folder."""
    config = Config()
    config.set_main_option("script_location", str(folder))
    return frozenset(ScriptDirectory.from_config(config).get_heads())
