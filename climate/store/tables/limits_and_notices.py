"""Tables of limits, notifications, heartbeats and round locks."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from climate.store.schema import Time, metadata

limits = Table(
    "limits",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
    Column("updated_at", Time, nullable=False),
)
"""Limits of projects; those of the project '' are the defaults. -1: no limit."""

notices = Table(
    "notices",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", Time, nullable=False),
    Column("audience", Text, nullable=False, server_default="people"),
    Column("kind", Text, nullable=False),
    Column("project_id", Text),
    Column("user_id", Text),
    Column("lease_id", Uuid),
    Column("host", BigInteger),
    Column("message", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    Column("next_at", Time),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("error", Text, nullable=False, server_default=""),
    CheckConstraint("audience IN ('people', 'hook', 'enforcement', 'mail')", name="audience_known"),
    Index("ix_notices_project", "project_id", "id"),
    Index("ix_notices_at", "at"),
    # Deliveries that were given up.
    Index("ix_notices_dead", "id", postgresql_where=text("next_at IS NULL AND error <> ''")),
    Index("ix_notices_due", "next_at", postgresql_where=text("next_at IS NOT NULL")),
    # Notifications of a lease are delivered in order.
    Index("ix_notices_lease_due", "lease_id", "id", postgresql_where=text("next_at IS NOT NULL")),
)
"""Notifications to owners and, without a project, to administrators.

`next_at` is the time of the next delivery, or NULL.
"""

beats = Table(
    "beats",
    metadata,
    Column("role", Text, primary_key=True),
    Column("process", Text, primary_key=True),
    Column("at", Time, nullable=False),
)

round_locks = Table(
    "round_locks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("expires_at", Time, nullable=False),
)
"""The process that runs each kind of rounds; its heartbeat moves `expires_at`."""
