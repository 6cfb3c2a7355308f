"""Tables of cells: the neighbours of this one, and the messages from and to them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from climate.compute.store.columns import json, metadata, time, uuid

cells = Table(
    "compute_cells",
    metadata,
    Column("name", Text, primary_key=True),
    Column("id", Integer, Identity(), nullable=False),
    Column("is_parent", Boolean, nullable=False),
    Column("username", Text),
    Column("rpc_host", Text),
    Column("rpc_port", Integer),
    Column("rpc_virtual_host", Text),
    # Password, transport URL and secret of the link, encrypted together.
    Column("sealed", Text, nullable=False),
    Column("weight_offset", Float, nullable=False, server_default="0"),
    Column("weight_scale", Float, nullable=False, server_default="1"),
    json("capabilities"),
    json("capacities"),
    json("offers"),
    Column("children", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    time("last_seen", nullable=True),
    # Of the last report, by the clock of the child.
    time("reported_at", nullable=True),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("last_error", Text),
    time("retry_at", nullable=True),
    time("created_at"),
    CheckConstraint("name ~ '^[A-Za-z0-9_-]{1,64}$'", name="name"),
    CheckConstraint("rpc_port BETWEEN 1 AND 65535", name="rpc_port"),
)

outbox = Table(
    "compute_cell_outbox",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("cell", Text, ForeignKey("compute_cells.name", ondelete="CASCADE"), nullable=False),
    uuid("delivery", made=True, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("tries", Integer, nullable=False, server_default="0"),
    # A question that is sent again until it is answered.
    Column("repeats", Boolean, nullable=False, server_default=text("false")),
    Column("due_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    time("created_at"),
    Index(None, "cell", "due_at"),
    Index(None, "delivery"),
    CheckConstraint("kind IN ('targeted', 'broadcast', 'response')", name="kind"),
)
"""Messages that a neighbour has not confirmed yet."""

inbox = Table(
    "compute_cell_inbox",
    metadata,
    Column("id", BigInteger, Identity(), nullable=False),
    Column("sender", Text, nullable=False),
    uuid("delivery", nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("due_at", DateTime(timezone=True)),
    time("received_at"),
    PrimaryKeyConstraint("sender", "delivery"),
    Index("ix_compute_cell_inbox_due", "kind", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    Index(None, "received_at"),
    CheckConstraint("kind IN ('targeted', 'broadcast', 'response')", name="kind"),
)
"""Messages that have arrived; without `due_at` they are done and only their id is kept. Sender '': this cell."""

responses = Table(
    "compute_cell_responses",
    metadata,
    uuid("uuid", key=True),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("body", JSONB(none_as_null=True)),
)
"""Awaited responses, by the message that they answer."""

builds = Table(
    "compute_cell_builds",
    metadata,
    Column("build_id", Text, primary_key=True),
    time("made_at"),
    Column("cell", Text),
    Column("server_ids", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Index(None, "cell"),
)
"""Builds that were booted here, or sent on to the neighbour `cell`."""
