"""Tables of the bundled cloud. Importing the package declares all of them in `metadata`."""

from climate.compute.store.columns import metadata
from climate.compute.store.tables import (
    cell_servers,
    cells,
    cluster_members,
    floating_ip_fences,
    migrations,
    networks,
    networks_without_subnet,
    nodes,
    security_groups,
    servers,
    shared_capacity,
    volumes,
    vpn,
    zone_builds,
    zones,
)

__all__ = [
    "cell_servers",
    "cells",
    "cluster_members",
    "floating_ip_fences",
    "metadata",
    "migrations",
    "networks",
    "networks_without_subnet",
    "nodes",
    "security_groups",
    "servers",
    "shared_capacity",
    "volumes",
    "vpn",
    "zone_builds",
    "zones",
]
