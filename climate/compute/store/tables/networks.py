"""Tables of networks: their addresses, the interfaces of servers, floating addresses, and the hosts that serve them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, CIDR, INET, JSONB, UUID, ExcludeConstraint

from climate.compute.store.columns import metadata, time, uuid

networks = Table(
    "compute_networks",
    metadata,
    uuid("id", key=True, made=True),
    uuid("subnet_id", made=True, nullable=False),
    Column("label", Text, nullable=False, index=True),
    Column("manager", Text, nullable=False),
    Column("cidr", CIDR, nullable=False, unique=True),
    Column("cidr_v6", CIDR, unique=True),
    Column("gateway", INET, nullable=False),
    Column("gateway_v6", INET),
    Column("dhcp_start", INET, nullable=False),
    Column("dns", ARRAY(INET), nullable=False, server_default=text("'{}'")),
    Column("bridge", Text),
    Column("bridge_interface", Text),
    Column("vlan", Integer, unique=True),
    Column("vpn_private_address", INET),
    Column("vpn_public_address", INET),
    Column("vpn_public_port", Integer),
    Column("injected", Boolean, nullable=False, server_default=text("false")),
    Column("project_id", Text, index=True),
    Column("host", Text, index=True),
    time("created_at"),
    # Created by its project, which deletes it.
    Column("by_project", Boolean, nullable=False, server_default=text("false")),
    # NULL: the label.
    Column("subnet_name", Text),
    # False: DHCP offers no default gateway.
    Column("routed", Boolean, nullable=False, server_default=text("true")),
    # First and last address of each range that the pool assigns; empty: all that is not reserved.
    Column("ranges", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    # Destination and next hop of each further route that DHCP offers.
    Column("routes", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    UniqueConstraint("vpn_public_address", "vpn_public_port"),
    # No two networks share an address.
    ExcludeConstraint((text("cidr inet_ops"), "&&"), name="ex_compute_networks_cidr", using="gist"),
    CheckConstraint("manager IN ('flat', 'flat_dhcp', 'vlan')", name="manager"),
    CheckConstraint("vlan BETWEEN 1 AND 4094", name="vlan"),
    CheckConstraint("gateway << cidr AND dhcp_start << cidr", name="inside"),
    CheckConstraint("NOT by_project OR (project_id IS NOT NULL AND vlan IS NOT NULL)", name="by_project"),
)

vifs = Table(
    "compute_vifs",
    metadata,
    uuid("id", key=True),
    Column("mac", Text, nullable=False, unique=True),
    Column("network_id", UUID(as_uuid=False), ForeignKey("compute_networks.id")),
    Column("server_id", UUID(as_uuid=False), ForeignKey("compute_servers.id", ondelete="CASCADE")),
    Column("place", Integer),
    # The project that created the port. NULL: it was created with its server, and is deleted with it.
    Column("project_id", Text),
    # A network without a range, on which a port has no address. The port moves to the network that it becomes.
    Column(
        "outline_id",
        UUID(as_uuid=False),
        ForeignKey("compute_network_outlines.id", deferrable=True, initially="DEFERRED"),
    ),
    Column("name", Text, nullable=False, server_default=""),
    Column("description", Text, nullable=False, server_default=""),
    Column("admin_up", Boolean, nullable=False, server_default=text("true")),
    # The last server that had the port. Its compute service unplugs the interface with its next task.
    uuid("left_server_id"),
    # NULL: the groups of its server.
    Column("security_groups", ARRAY(UUID(as_uuid=False))),
    # The device and the host that a client named for a port without server.
    Column("device_id", Text, nullable=False, server_default=""),
    Column("device_owner", Text, nullable=False, server_default=""),
    Column("named_host", Text, nullable=False, server_default=""),
    time("created_at"),
    time("changed_at"),
    UniqueConstraint("server_id", "place"),
    Index(None, "network_id"),
    CheckConstraint("(server_id IS NULL) = (place IS NULL)", name="place"),
    CheckConstraint("server_id IS NOT NULL OR project_id IS NOT NULL", name="whose"),
    CheckConstraint("(network_id IS NULL) <> (outline_id IS NULL)", name="network"),
    CheckConstraint("outline_id IS NULL OR server_id IS NULL", name="outline"),
)
"""Ports: interfaces of servers, in the order of `place` (Nova's virtual_interfaces), and those without a server."""

Index("ix_compute_vifs_project_id", vifs.c.project_id, postgresql_where=text("project_id IS NOT NULL"))

Index("ix_compute_vifs_outline_id", vifs.c.outline_id, postgresql_where=text("outline_id IS NOT NULL"))

addresses = Table(
    "compute_addresses",
    metadata,
    Column("network_id", UUID(as_uuid=False), ForeignKey("compute_networks.id", ondelete="CASCADE"), primary_key=True),
    Column("address", INET, primary_key=True),
    Column("reserved", Boolean, nullable=False, server_default=text("false")),
    # The owner: a server, or the port that a project created. It keeps the address until the DHCP lease ends.
    Column("server_id", UUID(as_uuid=False), index=True),
    Column("vif_id", UUID(as_uuid=False), ForeignKey("compute_vifs.id", ondelete="SET NULL"), index=True),
    Column("leased", Boolean, nullable=False, server_default=text("false")),
    Column("mac", Text),
    time("changed_at"),
    # Granted over the queue, and held until the server is recorded.
    Column("grant_id", UUID(as_uuid=False)),
    CheckConstraint("vif_id IS NULL OR server_id IS NOT NULL", name="whose"),
    CheckConstraint("grant_id IS NULL OR (server_id IS NOT NULL AND vif_id IS NULL)", name="grant_id"),
)
"""Fixed addresses.

In the terms of Nova: associated means that server_id is set, allocated that vif_id is set as well.
"""

Index(
    "ix_compute_addresses_grant_id",
    addresses.c.grant_id,
    addresses.c.server_id,
    unique=True,
    postgresql_where=text("grant_id IS NOT NULL"),
)

Index(
    "ix_compute_addresses_free",
    addresses.c.network_id,
    addresses.c.address,
    postgresql_where=text("server_id IS NULL AND NOT reserved"),
)

Index(
    "ix_compute_addresses_waiting",
    addresses.c.network_id,
    addresses.c.changed_at,
    postgresql_where=text("server_id IS NOT NULL AND vif_id IS NULL"),
)

network_hosts = Table(
    "compute_network_hosts",
    metadata,
    Column("host", Text, primary_key=True),
    time("beat_at"),
    time("looked_at", nullable=True),
)
"""Network services."""

network_calls = Table(
    "compute_network_calls",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("host", Text, nullable=False, index=True),
    time("rung_at", nullable=True),
)
"""Pending calls of network hosts whose networks have changed; deleted when the host has handled them."""

network_messages = Table(
    "compute_network_messages",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("network_id", UUID(as_uuid=False), ForeignKey("compute_networks.id", ondelete="CASCADE"), nullable=False),
    Column("method", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    time("created_at"),
    time("rung_at", nullable=True),
    Index(None, "network_id", "id"),
)
"""Messages to the allocators of networks, kept until the host that serves the network has applied them."""

floating_pools = Table(
    "compute_floating_pools",
    metadata,
    uuid("id", key=True, made=True),
    uuid("subnet_id", made=True, nullable=False),
    Column("name", Text, nullable=False, unique=True),
    Column("cidr", CIDR, nullable=False, unique=True),
    Column("gateway", INET),
    Column("interface", Text),
    time("created_at"),
    CheckConstraint("gateway IS NULL OR gateway << cidr", name="inside"),
)
"""External networks that provide floating addresses."""

floating_addresses = Table(
    "compute_floating_addresses",
    metadata,
    uuid("id", key=True, made=True),
    Column("address", INET, nullable=False, unique=True),
    Column("pool_id", UUID(as_uuid=False), ForeignKey("compute_floating_pools.id"), nullable=False, index=True),
    Column("project_id", Text, index=True),
    Column("fixed_network_id", UUID(as_uuid=False)),
    Column("fixed_address", INET),
    Column("host", Text),
    Column("auto_assigned", Boolean, nullable=False, server_default=text("false")),
    Column("tags", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("description", Text, nullable=False, server_default=""),
    # The pool of a reservation that it was lent to, and exists as long as.
    Column("reservation", Text, index=True),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    # Created for its project by an administrator: the pool does not allocate it, and a release deletes it.
    Column("single", Boolean, nullable=False, server_default=text("false")),
    time("created_at"),
    time("changed_at"),
    ForeignKeyConstraint(
        ["fixed_network_id", "fixed_address"], ["compute_addresses.network_id", "compute_addresses.address"]
    ),
    UniqueConstraint("fixed_network_id", "fixed_address"),
    CheckConstraint("fixed_address IS NULL OR project_id IS NOT NULL", name="whose"),
    CheckConstraint("project_id IS NOT NULL OR NOT single", name="single"),
    CheckConstraint("(fixed_address IS NULL) = (fixed_network_id IS NULL)", name="fixed"),
)
"""Addresses of pools that projects may have, and their associated fixed ones."""

Index(
    "ix_compute_floating_addresses_free",
    floating_addresses.c.pool_id,
    floating_addresses.c.address,
    postgresql_where=text("project_id IS NULL"),
)
