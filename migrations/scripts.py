"""SQL scripts beside the migrations, one statement at a time."""

import re
from pathlib import Path

from alembic import op
from sqlalchemy import TextClause, text

VERSIONS = Path(__file__).parent / "versions"

PATIENCE = "10min"
"""How long the building of an index waits for open transactions; meanwhile it holds up neither reads nor writes."""

_NAME = re.compile(r"IF NOT EXISTS (\w+)")
_INVALID = text("SELECT FROM pg_index WHERE indexrelid = to_regclass(:name) AND NOT indisvalid")


def statements(name: str) -> list[TextClause]:
    """The statements of a script; each ends with a semicolon and a blank line."""
    script = (VERSIONS / name).read_text(encoding="utf-8")
    # A colon is SQL's here (casts), never a parameter.
    return [text(part.replace(":", "\\:")) for part in script.split(";\n\n") if part.strip()]


def alone(name: str) -> None:
    """Run each statement of a script in a transaction of its own, so that it holds no lock while it waits for another.

    A migration that fails later runs again from its start: each statement can be repeated.
    """
    with op.get_context().autocommit_block():
        for statement in statements(name):
            op.execute(statement)


def build_indexes(name: str) -> None:
    """Build the indexes of a script while others write to their tables; those that exist already are left alone."""
    with op.get_context().autocommit_block():
        conn = op.get_bind()
        timeout = conn.exec_driver_sql("SHOW lock_timeout").scalar_one()
        conn.exec_driver_sql(f"SET lock_timeout = '{PATIENCE}'")
        try:
            for statement in statements(name):
                _drop_invalid(str(statement))
                op.execute(statement)
        finally:
            conn.exec_driver_sql(f"SET lock_timeout = '{timeout}'")


def _drop_invalid(statement: str) -> None:
    """Drop what an interrupted run left of an index: nobody can use it, and it would count as existing."""
    found = _NAME.search(statement)
    if found and op.get_bind().execute(_INVALID, {"name": found[1]}).first() is not None:
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {found[1]}")
