"""The table of volumes. All names begin with compute_."""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import UUID

from climate.compute.store.columns import json, metadata, time, uuid

volumes = Table(
    "compute_volumes",
    metadata,
    uuid("id", key=True, made=True),
    Column("pool", Text),
    Column("number", Integer),
    Column("project_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    # NULL: a lease created it.
    Column("user_id", Text),
    Column("description", Text),
    json("metadata"),
    Column("backend", Text, nullable=False),
    Column("storage_class", Text, nullable=False),
    Column("size_gb", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("kept", Boolean, nullable=False, server_default=text("false")),
    # A deleted server has no volumes.
    Column("server_id", UUID(as_uuid=False), ForeignKey("compute_servers.id", ondelete="SET NULL")),
    Column("device", Integer),
    # The pending change of its server; null: none.
    Column("wish", Text),
    time("created_at"),
    time("updated_at"),
    CheckConstraint("status IN ('creating', 'available', 'deleting')", name="status_known"),
    CheckConstraint("size_gb > 0", name="has_size"),
    CheckConstraint("wish IN ('attach', 'detach')", name="wish_known"),
    Index("uq_compute_volumes_pool_number", "pool", "number", unique=True),
    Index("ix_compute_volumes_project_id", "project_id"),
    Index("uq_compute_volumes_device", "server_id", "device", unique=True),
)
"""`pool`: the reservation that a volume was created for, NULL without one; `device`: its index in a server, from 1."""
