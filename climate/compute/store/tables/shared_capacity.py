"""Tables of capacity that is granted to projects on shared nodes. All names begin with compute_."""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY

from climate.compute.store.columns import count, metadata, time, uuid

grants = Table(
    "compute_grants",
    metadata,
    # The id of the flavor that uses the capacity, and of its reservation.
    Column("pool", Text, primary_key=True),
    Column("project_id", Text, nullable=False),
    # Further projects that may use it.
    Column("shared_with", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    uuid("group_id"),
    Column("closed", Boolean, nullable=False, server_default=text("false")),
    # It is over; the row stays, so that late workers are refused by its token.
    Column("revoked", Boolean, nullable=False, server_default=text("false")),
    Column("fence", BigInteger, nullable=False),
    time("updated_at"),
)

Index("ix_compute_grants_group_id", grants.c.group_id, postgresql_where=grants.c.group_id.is_not(None))

slots = Table(
    "compute_grant_slots",
    metadata,
    Column("pool", Text, ForeignKey("compute_grants.pool", ondelete="CASCADE"), primary_key=True),
    Column("node_id", Integer, ForeignKey("compute_nodes.id", ondelete="CASCADE"), primary_key=True, index=True),
    count("slots"),
    CheckConstraint("slots > 0", name="slots_make_sense"),
)
"""Maximum number of servers of a grant on a node."""
