"""The table of migrations. All names begin with compute_."""

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Identity, Index, Integer, Table, Text, text

from climate.compute.store.columns import json, metadata, taken, time, uuid

PAIRS = (
    *(("source_host", "dest_host"), ("status", "source_host"), ("status", "dest_host")),
    *(("type", "source_host"), ("type", "dest_host"), ("status", "type")),
)
"""Columns of lists whose pairs are indexed."""

migrations = Table(
    "compute_migrations",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    uuid("uuid", made=True, nullable=False, unique=True),
    # Without a foreign key: a migration is shown after its server is deleted.
    uuid("server_id", nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("source_host", Text, nullable=False),
    Column("source_node", Text, nullable=False),
    Column("dest_host", Text, nullable=False),
    Column("dest_node", Text, nullable=False),
    Column("dest_ip", Text, nullable=False),
    Column("source_node_id", Integer, ForeignKey("compute_nodes.id", ondelete="SET NULL"), index=True),
    Column("dest_node_id", Integer, ForeignKey("compute_nodes.id", ondelete="SET NULL"), index=True),
    Column("old_flavor", Text, nullable=False),
    Column("new_flavor", Text, nullable=False),
    # The one of the two nodes that its server is not on, while capacity is held there for it.
    Column("held_node_id", Integer, ForeignKey("compute_nodes.id", ondelete="SET NULL")),
    taken("vcpus"),
    taken("ram_mb"),
    taken("disk_mb"),
    Column("error", Text),
    json("progress"),
    time("created_at"),
    time("updated_at"),
    CheckConstraint("type IN ('migration', 'resize', 'evacuation', 'live-migration')", name="type_known"),
    Index(None, "server_id", "created_at", "id"),
    # No list with a filter can use it, since those order by the column itself: the planner would prefer it to theirs.
    Index("ix_compute_migrations_newest", text("timezone('UTC', created_at)"), "id"),
    Index(None, "status", "created_at", "id"),
    Index(None, "type", "created_at", "id"),
    Index(None, "source_host", "created_at", "id"),
    Index(None, "dest_host", "created_at", "id"),
    # Two filters of a list may match few rows together, though each matches many. An array keeps the planner from the
    # indexes of single columns.
    *(
        Index(f"ix_compute_migrations_{'_'.join(pair)}", text(f"(ARRAY[{', '.join(pair)}])"), "created_at", "id")
        for pair in PAIRS
    ),
    Index(None, "updated_at"),
    Index(
        "ix_compute_migrations_period",
        text("tstzrange(created_at, greatest(created_at, updated_at), '[]')"),
        postgresql_using="gist",
    ),
    Index("ix_compute_migrations_held", "held_node_id", postgresql_where=text("held_node_id IS NOT NULL")),
)
"""`vcpus`, `ram_mb` and `disk_mb` are held on `held_node_id`; `progress` is of live migrations (bytes)."""
