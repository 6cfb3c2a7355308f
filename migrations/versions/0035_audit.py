"""Indexes of the audit trail, typed causes of the pools of hosts, and tokens of decisions about power."""

from alembic import op

from migrations.scripts import statements

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    for statement in statements("0035_audit.sql"):
        op.execute(statement)
