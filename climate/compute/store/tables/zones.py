"""Tables of zones: children, reports of services, servers placed in children. All names begin with compute_."""

from sqlalchemy import Boolean, Column, Float, ForeignKey, Identity, Index, Integer, Table, Text, text

from climate.compute.store.columns import json, metadata, time, uuid

zones = Table(
    "compute_zones",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("api_url", Text, nullable=False, unique=True),
    Column("username", Text, nullable=False),
    # Sealed: it is opened only for calls of the child.
    Column("password", Text, nullable=False),
    Column("weight_offset", Float, nullable=False, server_default="0.0"),
    Column("weight_scale", Float, nullable=False, server_default="1.0"),
    Column("name", Text),
    Column("capabilities", Text),
    Column("is_active", Boolean, nullable=False, server_default=text("true")),
    Column("attempts", Integer, nullable=False, server_default="0"),
    time("last_seen", nullable=True),
    Column("last_error", Text),
    time("last_error_at", nullable=True),
    # One poller asks a child in a period: the one that writes this first.
    time("polled_at", nullable=True),
    time("skipped_until", nullable=True),
    Column("deployment_id", Text),
    time("loop_at", nullable=True),
    time("created_at"),
    time("updated_at"),
)

service_capabilities = Table(
    "compute_service_capabilities",
    metadata,
    Column("host", Text, primary_key=True),
    Column("service", Text, primary_key=True),
    json("capabilities"),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    time("reported_at"),
)

zone_servers = Table(
    "compute_zone_servers",
    metadata,
    uuid("server_id", key=True),
    Column("zone_id", Integer, ForeignKey("compute_zones.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("build_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("vcpus", Integer, nullable=False),
    Column("ram_mb", Integer, nullable=False),
    time("created_at"),
    Index(None, "project_id"),
    Index(None, "build_id"),
)
"""Servers that this zone placed in a child, and their owners."""

zone_identity = Table(
    "compute_zone_identity",
    metadata,
    Column("one_row", Boolean, primary_key=True),
    uuid("id", made=True, nullable=False),
)
"""The random id of this deployment, by which it recognises its own requests when they return."""
