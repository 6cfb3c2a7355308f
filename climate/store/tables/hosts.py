"""Tables of maintenance, power, cleaning, limits, notifications, rounds and journal checks.

The table `hosts` itself is in the module `leases`.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TSTZRANGE

from climate.store.schema import Time, metadata

windows = Table(
    "maintenance_windows",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("host", ForeignKey("hosts.id"), nullable=False, index=True),
    Column("during", TSTZRANGE, nullable=False),
    Column("reason", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time),
    Column("move_servers", Boolean, nullable=False, server_default=false()),
    CheckConstraint("state IN ('planned', 'active', 'done', 'cancelled')", name="state_known"),
)
"""Maintenance windows of hosts; one without an end lasts until the end of the calendar
(climate.store.hosts.maintenance).
"""

host_power = Table(
    "host_power",
    metadata,
    Column("host", ForeignKey("hosts.id"), primary_key=True),
    Column("driver", Text, nullable=False),
    Column("settings", JSONB, nullable=False),
    Column("secrets", Text, nullable=False),
    Column("watts", Integer),
    Column("wanted", Text),
    Column("wanted_at", Time),
    # Token of the last power decision; a command under an earlier one is outdated.
    Column("token", BigInteger, nullable=False, server_default="0"),
    Column("asked_at", Time),
    Column("state", Text, nullable=False, server_default="unknown"),
    Column("seen_at", Time),
    Column("changed_at", Time),
    Column("used_at", Time),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("error", Text, nullable=False, server_default=""),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time),
    CheckConstraint("state IN ('on', 'off', 'unknown')", name="state_known"),
    CheckConstraint("wanted IN ('on', 'off')", name="wanted_known"),
)
"""Power settings and power states of hosts. `secrets` is ciphertext."""

cleanings = Table(
    "cleanings",
    metadata,
    Column("host", ForeignKey("hosts.id"), primary_key=True),
    Column("ends_at", Time, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Text, nullable=False, server_default=""),
    Column("next_at", Time, nullable=False),
    Column("run", Uuid),
    Column("machine", Text),
    Column("worker", Text),
    Column("pid", BigInteger),
    Column("started", Text),
    CheckConstraint("state IN ('running', 'done', 'failed')", name="state_known"),
)
"""State of the hook for a host in the cleaning that ends at `ends_at`; retried at `next_at`.

`machine`, `worker`, `pid` and `started` are those of the supervisor of its last run; NULL until that has started.
"""

pool_terms = Table(
    "pool_terms",
    metadata,
    Column("pool", Text, primary_key=True),
    Column("target", Integer),
    Column("on_end", Text),
    Column("grace_period", Integer),
    Column("recycle_deadline", Text),
    Column("updated_at", Time, nullable=False),
    # Settings of the pool's target (climate.domain.hosts.pool_filling).
    Column("horizon", Integer),
    Column("spare", Integer),
    Column("margin", Integer),
    Column("slack", Integer),
    Column("dwell", Integer),
    Column("drain", Boolean),
    Column("move_servers", Boolean),
    CheckConstraint("target >= 0 AND grace_period >= 0", name="not_negative"),
    CheckConstraint(
        "horizon >= 0 AND spare >= 0 AND margin >= 0 AND slack >= 0 AND dwell >= 0", name="filling_not_negative"
    ),
)
"""Settings of an administrator for a pool; NULL means the deployment's default."""

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
    CheckConstraint("audience IN ('people', 'hook', 'enforcement')", name="audience_known"),
    Index("ix_notices_project", "project_id", "id"),
    Index("ix_notices_at", "at"),
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

properties = Table(
    "properties",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("resource_type", Text, nullable=False),
    Column("property_name", Text, nullable=False),
    Column("private", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time),
    UniqueConstraint("resource_type", "property_name"),
)

journal_checks = Table(
    "journal_checks",
    metadata,
    Column("one_row", Boolean, CheckConstraint("one_row", name="one_row"), primary_key=True),
    Column("after", Uuid, nullable=False),
    Column("began_at", Time, nullable=False),
    Column("streams", BigInteger, nullable=False),
    Column("whole_since", Time),
)
"""One row: progress of the present pass of the journal check, and the start of the last one."""

journal_differences = Table(
    "journal_differences",
    metadata,
    Column("stream", Uuid, primary_key=True),
    Column("found_at", Time, nullable=False),
    Column("what", Text, nullable=False),
)
"""Streams that differed from their rows in their last comparison."""

healing_waits = Table(
    "healing_waits",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    Column("tries", Integer, nullable=False),
    Column("tried_at", Time, nullable=False),
    # Time of the last try if resources were released since then.
    Column("next_at", Time, nullable=False),
    Index("ix_healing_waits_tried_at", "tried_at"),
)
"""Failed tries of healing. Not history, hence not in the journal."""
