"""Tables of servers in a tree of cells: those of all cells at the top, and in a child the reports of its own.

Triggers in a child record its changes. They exist only in a cell with a parent: a cell creates them when it joins a
tree, and drops them when it leaves.
"""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from climate.compute.store.columns import json, metadata, time, uuid

cell_servers = Table(
    "compute_cell_servers",
    metadata,
    uuid("id", key=True),
    # The routing path from here to the cell of the server; NULL until one has reported it.
    Column("cell", Text),
    Column("version", BigInteger, nullable=False, server_default="0"),
    Column("name", Text, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("task", Text),
    json("flavor"),
    Column("vcpus", Integer, nullable=False),
    Column("ram_mb", Integer, nullable=False),
    uuid("image_id"),
    json("metadata"),
    Column("zone", Text),
    Column("build_id", Text, nullable=False),
    Column("launch_index", Integer, nullable=False),
    Column("key_name", Text),
    Column("description", Text),
    Column("access_ipv4", Text),
    Column("access_ipv6", Text),
    Column("locked_by", Text),
    Column("locked_reason", Text),
    Column("tags", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("before", Text),
    # A digest that is equal for servers of one project on one node, and reveals nothing else.
    Column("place", Text),
    Column("addresses", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("fault", JSONB(none_as_null=True)),
    # Commands sent to the server's cell. A report from before the last one keeps the task that it set.
    Column("commands", BigInteger, nullable=False, server_default="0"),
    time("commanded_at", nullable=True),
    # Deleted here before a cell had reported it: a cell that reports it later is instructed to delete it.
    Column("unclaimed", Boolean, nullable=False, server_default=text("false")),
    time("created_at"),
    time("updated_at"),
    time("launched_at", nullable=True),
    # When the change was recorded in the cell, and when its report was stored here: by the clocks of both.
    time("changed_at", nullable=True),
    time("reported_at", nullable=True),
    Column("deleted_at", DateTime(timezone=True)),
    CheckConstraint("(status = 'DELETED') = (deleted_at IS NOT NULL)", name="deleted"),
    CheckConstraint("locked_by IN ('owner', 'admin')", name="locked_by"),
    Index(None, "build_id"),
)
"""The servers of all cells, in the top cell.

A deleted one leaves its row for a while as a tombstone, so that a late report

does not restore it.
"""

Index(
    "ix_compute_cell_servers_live",
    cell_servers.c.project_id,
    cell_servers.c.created_at,
    cell_servers.c.id,
    postgresql_where=text("deleted_at IS NULL"),
)

Index("ix_compute_cell_servers_reported", cell_servers.c.reported_at)

Index("ix_compute_cell_servers_deleted", cell_servers.c.deleted_at, postgresql_where=text("deleted_at IS NOT NULL"))

cell_changes = Table(
    "compute_cell_changes",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    uuid("server_id", nullable=False),
    time("changed_at"),
)
"""Servers of this cell that have changed since their last report; rows are only added, so that no writer waits."""

cell_versions = Table(
    "compute_cell_versions",
    metadata,
    uuid("server_id", key=True),
    Column("version", BigInteger, nullable=False, server_default="0"),
    # The last command of the top cell that was carried out, and the reason of its refusal.
    Column("command", BigInteger, nullable=False, server_default="0"),
    Column("refusal", Text),
    time("gone_at", nullable=True),
)
"""The last report of each server of this cell. A deleted server stays for a while, to be reported again."""

Index("ix_compute_cell_versions_gone", cell_versions.c.gone_at, postgresql_where=text("gone_at IS NOT NULL"))

FUNCTIONS = (
    """CREATE OR REPLACE FUNCTION compute_cell_server_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO compute_cell_changes (server_id) VALUES (coalesce(NEW.id, OLD.id));
    PERFORM pg_notify('climate_cells', 'changes');
    RETURN NULL;
END $$""",
    """CREATE OR REPLACE FUNCTION compute_cell_address_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO compute_cell_changes (server_id)
    SELECT DISTINCT server_id FROM (VALUES (NEW.server_id), (OLD.server_id)) AS s(server_id)
    WHERE server_id IS NOT NULL;
    PERFORM pg_notify('climate_cells', 'changes');
    RETURN NULL;
END $$""",
    """CREATE OR REPLACE FUNCTION compute_cell_floating_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO compute_cell_changes (server_id)
    SELECT DISTINCT a.server_id FROM compute_addresses a
    WHERE a.server_id IS NOT NULL
      AND (a.network_id, a.address) IN ((NEW.fixed_network_id, NEW.fixed_address),
                                        (OLD.fixed_network_id, OLD.fixed_address));
    PERFORM pg_notify('climate_cells', 'changes');
    RETURN NULL;
END $$""",
)

for function in FUNCTIONS:
    event.listen(metadata, "before_create", DDL(function))  # type: ignore[no-untyped-call]
