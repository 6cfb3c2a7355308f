"""Tables of usage: host hours of leases, and the times at which servers ran on leased hosts."""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    Uuid,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import TSTZRANGE

from climate.store.schema import Time, metadata

lease_usage = Table(
    "lease_usage",
    metadata,
    Column("lease_id", Uuid, nullable=False, index=True),
    Column("reservation_id", Uuid, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("host", BigInteger, nullable=False),
    Column("slots", Integer, nullable=False, server_default="0"),
    Column("during", TSTZRANGE, nullable=False),
    CheckConstraint("NOT isempty(during)", name="during_is_not_empty"),
    Index("ix_lease_usage_during", "during", postgresql_using="gist"),
)
"""Projection of the facts of leases (climate.domain.host_hours). It outlasts the archival of a lease."""

host_activity = Table(
    "host_activity",
    metadata,
    Column("host", BigInteger, primary_key=True),
    Column("starts_at", Time, primary_key=True),
    Column("ends_at", Time, nullable=False),
    CheckConstraint("starts_at < ends_at", name="ends_after_start"),
    Index("ix_host_activity_ends", "ends_at"),
)
"""Times at which at least one server ran on a host, by samples. A measurement, hence not in the journal."""

usage_progress = Table(
    "usage_progress",
    metadata,
    Column("only_row", Boolean, primary_key=True, server_default=text("true")),
    Column("position", BigInteger, nullable=False, server_default="0"),
    Column("sampled_at", Time),
    Column("measured_since", Time),
    # Time since which no sample is missing.
    Column("watched_since", Time),
    Column("next_at", Time, nullable=False, server_default=text("clock_timestamp()")),
    CheckConstraint("only_row", name="one_row"),
)
"""Position of the journal up to which usage is computed, and the times of the samples."""

idle_leases = Table(
    "idle_leases",
    metadata,
    Column("lease_id", Uuid, primary_key=True),
    Column("notices", SmallInteger, nullable=False),
    Column("at", Time, nullable=False),
)
"""Number of notices that an idle lease got, and the time of the last one."""

FIRST_ROW = "INSERT INTO usage_progress DEFAULT VALUES ON CONFLICT DO NOTHING"
event.listen(usage_progress, "after_create", DDL(FIRST_ROW))  # type: ignore[no-untyped-call]
