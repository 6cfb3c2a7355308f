"""Tables of services, their nodes, and groups of nodes. All names begin with compute_.

The scheduler keeps a snapshot of these rows. `changed` marks the rows that are new since its last reading;
`compute_structure` marks changes of many rows at once.
"""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Identity,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from climate.compute.store.columns import changed, count, json, metadata, taken, time, uuid

services = Table(
    "compute_services",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    uuid("uuid", made=True, nullable=False, unique=True),
    Column("host", Text, nullable=False, unique=True),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("disabled_reason", Text),
    Column("forced_down", Boolean, nullable=False, server_default=text("false")),
    time("beat_at"),
    time("created_at"),
    changed(),
)

aggregates = Table(
    "compute_aggregates",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    uuid("uuid", made=True, nullable=False),
    Column("name", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False, server_default="pool"),
    json("metadata"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    time("created_at"),
    time("updated_at"),
    CheckConstraint("kind IN ('pool', 'aggregate')", name="kind"),
)

nodes = Table(
    "compute_nodes",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    uuid("uuid", made=True, nullable=False, unique=True),
    Column("service_host", Text, ForeignKey("compute_services.host"), nullable=False),
    Column("name", Text, nullable=False),
    count("vcpus"),
    count("memory_mb"),
    count("local_gb"),
    Column("cpu_info", Text, nullable=False),
    Column("hypervisor_type", Text, nullable=False),
    Column("hypervisor_version", Integer, nullable=False),
    Column("zone", Text),
    Column("driver", Text, nullable=False, server_default=""),
    Column("host_ip", Text, nullable=False, server_default="127.0.0.1"),
    Column("supported", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    json("stats"),
    json("metrics"),
    Column("disk_least_gb", Integer),
    Column("maintenance", Text),
    Column("present", Boolean, nullable=False, server_default=text("true")),
    # A node is in one pool at most, which a column enforces.
    Column("pool", Text, ForeignKey("compute_aggregates.name"), index=True),
    # It was added to its pool by the compute API, not by a lease of this deployment.
    Column("outside", Boolean, nullable=False, server_default=text("false")),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    taken("used_vcpus"),
    taken("used_ram_mb"),
    taken("used_disk_mb"),
    taken("used_servers"),
    taken("reserved_ram_mb"),
    taken("reserved_disk_mb"),
    Column("ram_ratio", Float, nullable=False, server_default="1.5"),
    Column("cpu_ratio", Float, nullable=False, server_default="16.0"),
    Column("disk_ratio", Float, nullable=False, server_default="1.0"),
    UniqueConstraint("name", "service_host"),
    CheckConstraint("used_vcpus >= 0 AND used_ram_mb >= 0 AND used_disk_mb >= 0", name="never_below_zero"),
    CheckConstraint("used_servers >= 0", name="servers_never_below_zero"),
    changed(),
)

aggregate_nodes = Table(
    "compute_aggregate_nodes",
    metadata,
    Column("aggregate_id", Integer, ForeignKey("compute_aggregates.id", ondelete="CASCADE"), primary_key=True),
    Column("node_id", Integer, ForeignKey("compute_nodes.id", ondelete="CASCADE"), primary_key=True, index=True),
)
"""Members of ordinary aggregates. Pools have no rows here: a node's pool is a column, so that it has only one."""

structure = Table(
    "compute_structure",
    metadata,
    Column("one_row", Boolean, primary_key=True),
    changed(),
    CheckConstraint("one_row", name="one_row"),
)
"""The last deletion of nodes, or change of an ordinary aggregate, its metadata or its members."""

FUNCTIONS = (
    """CREATE OR REPLACE FUNCTION compute_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed := pg_current_xact_id();
    RETURN NEW;
END $$""",
    """CREATE OR REPLACE FUNCTION compute_restructured() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO compute_structure (one_row) VALUES (true)
    ON CONFLICT (one_row) DO UPDATE SET changed = pg_current_xact_id();
    RETURN NULL;
END $$""",
)

TRIGGERS = (
    (
        services,
        """CREATE TRIGGER compute_services_stamp BEFORE UPDATE ON compute_services
FOR EACH ROW EXECUTE FUNCTION compute_stamp()""",
    ),
    (
        nodes,
        """CREATE TRIGGER compute_nodes_stamp BEFORE UPDATE ON compute_nodes
FOR EACH ROW EXECUTE FUNCTION compute_stamp()""",
    ),
    (
        nodes,
        """CREATE TRIGGER compute_nodes_gone AFTER DELETE ON compute_nodes
FOR EACH ROW EXECUTE FUNCTION compute_restructured()""",
    ),
    # Pools change with every lease: a transaction that moves nodes between them writes the nodes' rows too.
    (
        aggregates,
        """CREATE TRIGGER compute_aggregates_made AFTER INSERT OR UPDATE ON compute_aggregates
FOR EACH ROW WHEN (NEW.kind = 'aggregate') EXECUTE FUNCTION compute_restructured()""",
    ),
    (
        aggregates,
        """CREATE TRIGGER compute_aggregates_gone AFTER UPDATE OR DELETE ON compute_aggregates
FOR EACH ROW WHEN (OLD.kind = 'aggregate') EXECUTE FUNCTION compute_restructured()""",
    ),
    (
        aggregate_nodes,
        """CREATE TRIGGER compute_aggregate_nodes_changed AFTER INSERT OR UPDATE OR DELETE ON compute_aggregate_nodes
FOR EACH ROW EXECUTE FUNCTION compute_restructured()""",
    ),
)

for function in FUNCTIONS:
    event.listen(metadata, "before_create", DDL(function))  # type: ignore[no-untyped-call]
for table, trigger in TRIGGERS:
    event.listen(table, "after_create", DDL(trigger))  # type: ignore[no-untyped-call]
