"""Tables of security groups and their rules; the groups of a server are in its row."""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import CIDR, UUID

from climate.compute.store.columns import metadata, time, uuid

security_groups = Table(
    "compute_security_groups",
    metadata,
    uuid("id", key=True),
    Column("project_id", Text, nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    time("created_at"),
    time("updated_at"),
)
"""Security groups. A project whose group `default` was never changed has no row for it."""

Index(
    "uq_compute_security_groups_default",
    security_groups.c.project_id,
    unique=True,
    postgresql_where=text("name = 'default'"),
)

GROUP = "compute_security_groups.id"

security_group_rules = Table(
    "compute_security_group_rules",
    metadata,
    uuid("id", key=True),
    Column("group_id", UUID(as_uuid=False), ForeignKey(GROUP, ondelete="CASCADE"), nullable=False, index=True),
    Column("direction", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("protocol", Text),
    # Ports, or the type and the code of ICMP.
    Column("first", Integer),
    Column("last", Integer),
    Column("remote_cidr", CIDR),
    Column("remote_group_id", UUID(as_uuid=False), ForeignKey(GROUP, ondelete="CASCADE"), index=True),
    Column("description", Text, nullable=False, server_default=""),
    time("created_at"),
    CheckConstraint("direction IN ('ingress', 'egress')", name="direction"),
    CheckConstraint("version IN (4, 6)", name="version"),
    CheckConstraint("remote_cidr IS NULL OR remote_group_id IS NULL", name="remote"),
)
