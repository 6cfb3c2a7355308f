"""Indexes of the audit trail, typed causes of the pools of hosts, and tokens of decisions about power."""

from alembic import op

from migrations.scripts import alone, build_indexes, statements

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    # First what can be repeated: the rest is undone when it fails.
    build_indexes("0035_audit_indexes.sql")
    alone("0035_host_power.sql")
    for statement in statements("0035_audit.sql"):
        op.execute(statement)
