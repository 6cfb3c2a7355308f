"""OpenAPI descriptions of all routes below /compute/v2.1."""

from collections.abc import Mapping

from api.compute.openapi import (
    actions,
    cells,
    cloudpipes,
    flavors_and_keypairs,
    images,
    migrations,
    networks,
    nodes,
    projects,
    servers,
    zone_builds,
    zones,
)
from api.schema.shapes import Operation

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    **servers.OPERATIONS,
    **actions.OPERATIONS,
    **flavors_and_keypairs.OPERATIONS,
    **flavors_and_keypairs.KEYPAIRS,
    **projects.OPERATIONS,
    **nodes.OPERATIONS,
    **networks.OPERATIONS,
    **zones.OPERATIONS,
    **zone_builds.OPERATIONS,
    **cells.OPERATIONS,
    **migrations.OPERATIONS,
    **cloudpipes.OPERATIONS,
    **images.OPERATIONS,
}
