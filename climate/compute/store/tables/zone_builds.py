"""Tables of builds over zones: the request, the zone of each server, and offers of this zone that were used."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import UUID

from climate.compute.store.columns import json, metadata, time, uuid

zone_builds = Table(
    "compute_zone_builds",
    metadata,
    uuid("id", key=True),
    Column("reservation_id", Text, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    json("request"),
    Column("requested", Integer, nullable=False),
    # Servers that count against the quota and are not in any other table yet.
    Column("pending", Integer, nullable=False),
    Column("vcpus", Integer, nullable=False),
    Column("ram_mb", Integer, nullable=False),
    Column("state", Text, nullable=False, server_default="queued"),
    json("report"),
    Column("fault", Text),
    uuid("worker"),
    Column("worker_until", DateTime(timezone=True)),
    time("due_at"),
    Column("rung_at", DateTime(timezone=True)),
    time("created_at"),
    time("finished_at", nullable=True),
    UniqueConstraint("project_id", "reservation_id"),
    Index("ix_compute_zone_builds_under_way", "due_at", postgresql_where=text("state <> 'done'")),
    Index("ix_compute_zone_builds_pending", "project_id", postgresql_where=text("pending > 0")),
    CheckConstraint("state IN ('queued', 'running', 'waiting', 'done')", name="state"),
    CheckConstraint("requested > 0 AND pending BETWEEN 0 AND requested", name="counts_make_sense"),
)

zone_build_items = Table(
    "compute_zone_build_items",
    metadata,
    Column(
        "build_id",
        UUID(as_uuid=False),
        ForeignKey("compute_zone_builds.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("launch_index", Integer, primary_key=True),
    # NULL: this zone.
    Column("zone_id", Integer),
    Column("state", Text, nullable=False),
    # Kept while the child may not have received it.
    Column("blob", Text),
    uuid("server_id"),
    Index(None, "server_id"),
    CheckConstraint("state IN ('sent', 'placed', 'lost')", name="state"),
    CheckConstraint("(state = 'placed') = (server_id IS NOT NULL)", name="placed_has_a_server"),
)
"""Servers of a build by their number. `sent`: a child was asked for it, and its answer is not known."""

zone_offers = Table(
    "compute_zone_offers",
    metadata,
    Column("item_id", Text, primary_key=True),
    Column("project_id", Text, nullable=False),
    Column("build_id", Text, nullable=False),
    Column("launch_index", Integer, nullable=False),
    Column("owner_project", Text),
    Column("owner_user", Text),
    Column("vcpus", Integer, nullable=False),
    Column("ram_mb", BigInteger, nullable=False),
    # NULL: the child has not reported its server yet.
    uuid("server_id"),
    time("expires_at"),
    UniqueConstraint("project_id", "build_id", "launch_index"),
    Index(None, "expires_at"),
    Index(None, "server_id"),
)
"""Offers of this zone that parents have used: each for one server, with its build and owner."""
