"""The table of networks with a name and no range yet."""

from sqlalchemy import Boolean, CheckConstraint, Column, Integer, Table, Text, text

from climate.compute.store.columns import metadata, time, uuid

network_outlines = Table(
    "compute_network_outlines",
    metadata,
    uuid("id", key=True, made=True),
    Column("label", Text, nullable=False),
    Column("manager", Text),
    Column("interface", Text),
    Column("vlan", Integer, unique=True),
    Column("project_id", Text),
    time("created_at"),
    Column("by_project", Boolean, nullable=False, server_default=text("false")),
    CheckConstraint("manager IN ('flat', 'flat_dhcp', 'vlan')", name="manager"),
    CheckConstraint("vlan IS NULL OR manager = 'vlan' AND vlan BETWEEN 1 AND 4094", name="vlan"),
    CheckConstraint("project_id IS NULL OR manager = 'vlan'", name="whose"),
    CheckConstraint("NOT by_project OR (project_id IS NOT NULL AND vlan IS NOT NULL)", name="by_project"),
)
"""Clients name a network first and give its range later. Without a manager: an external network, a floating pool."""
