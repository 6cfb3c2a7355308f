"""Tables of hosts, their maintenance, power and cleaning, and the settings of their pools."""

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

hosts = Table(
    "hosts",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("hypervisor_hostname", Text, nullable=False),
    Column("service_name", Text, nullable=False),
    Column("vcpus", Integer, nullable=False),
    Column("memory_mb", Integer, nullable=False),
    Column("local_gb", Integer, nullable=False),
    Column("cpu_info", Text, nullable=False),
    Column("hypervisor_type", Text, nullable=False),
    Column("hypervisor_version", BigInteger, nullable=False),
    Column("availability_zone", Text),
    Column("status", Text),
    Column("trust_id", Text),
    Column("reservable", Boolean, nullable=False),
    Column("extra", JSONB, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time),
    Column("removed_at", Time),
    # Pool membership, as its facts record it (climate.domain.hosts.pools.HostPlace).
    Column("stream", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    Column("version", Integer, nullable=False, server_default="1"),
    Column("pool", Text, nullable=False, server_default="reservation"),
    Column("pool_since", Time, nullable=False, server_default=text("clock_timestamp()")),
    Column("pool_reason", Text, nullable=False, server_default=""),
    Column("pool_cause", Text, nullable=False, server_default=""),
    Column("pool_token", BigInteger, nullable=False, server_default="0"),
    Column("pool_reservation", Uuid),
    Column("pool_until", Time),
    Column("home", Text, nullable=False, server_default="reservation"),
    Column("switched_on", Boolean, nullable=False, server_default="true"),
    # Process that has claimed the host for a round, and until when: not history, hence no facts.
    Column("tended_until", Time),
    # Reason why the cloud cannot have it in its pool; empty if it can.
    Column("drift", Text, nullable=False, server_default=""),
    # Time since which it has seemed unhealthy, or healthy again if it has failed.
    Column("doubted_since", Time),
    CheckConstraint("id BETWEEN 1 AND 9223372036854775806", name="id_has_a_successor"),
    CheckConstraint(
        "pool IN ('multi-tenant', 'reservation', 'lent', 'recycling', 'draining', 'cleaning', 'maintenance', 'failed')",
        name="pool_known",
    ),
    CheckConstraint(
        "pool_cause IN ('', 'declared_well', 'not_cleaned', 'maintenance_window')",
        name="pool_cause_known",
    ),
    CheckConstraint("home IN ('multi-tenant', 'reservation')", name="home_known"),
    CheckConstraint("pool <> 'lent' OR pool_reservation IS NOT NULL", name="lent_to_a_reservation"),
    Index("uq_hosts_name", "hypervisor_hostname", unique=True, postgresql_where=text("removed_at IS NULL")),
    Index("ix_hosts_pool", "pool", postgresql_where=text("removed_at IS NULL")),
    UniqueConstraint("stream"),
)

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
    # Settings of the pool's target (climate.domain.hosts.pool_scaling).
    Column("horizon", Integer),
    Column("spare", Integer),
    Column("margin", Integer),
    Column("slack", Integer),
    Column("dwell", Integer),
    Column("drain", Boolean),
    Column("move_servers", Boolean),
    Column("idle", Text),
    CheckConstraint("target >= 0 AND grace_period >= 0", name="not_negative"),
    CheckConstraint(
        "horizon >= 0 AND spare >= 0 AND margin >= 0 AND slack >= 0 AND dwell >= 0", name="filling_not_negative"
    ),
)
"""Settings of an administrator for a pool; NULL means the deployment's default."""

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
