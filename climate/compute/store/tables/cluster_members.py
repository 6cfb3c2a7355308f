"""Tables of members of clusters behind other compute services. All names begin with compute_."""

from sqlalchemy import Column, Index, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from climate.compute.store.columns import count, metadata, time, uuid

members = Table(
    "compute_cluster_members",
    metadata,
    Column("service_host", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("cluster", Text, nullable=False),
    Column("driver", Text, nullable=False),
    Column("machine", Text, nullable=False),
    Column("disks", Text, nullable=False, server_default=""),
    count("vcpus"),
    count("memory_mb"),
    count("local_gb"),
    time("seen_at"),
)
"""Offers of services to clusters.

`machine` tells whether a service's processes can be ended from another one, `disks` whether the disks of its servers
are found from another one.
"""

orders = Table(
    "compute_member_orders",
    metadata,
    uuid("id", key=True, made=True),
    Column("service_host", Text, nullable=False),
    Column("verb", Text, nullable=False),
    Column("said", JSONB, nullable=False),
    time("asked_at"),
    time("until"),
    time("rung_at", nullable=True),
    time("begun_at", nullable=True),
    time("done_at", nullable=True),
    Column("answer", JSONB),
    Column("error", Text),
    Index("ix_compute_member_orders_open", "asked_at", postgresql_where=text("begun_at IS NULL")),
)
"""Orders of the service of a cluster to the service of a member. After `until` an order is not begun any more."""
