"""Compute v2.1, as far as OpenStack's clients need it for what this cloud does."""

from flask import Flask

from api.compute import (
    actions,
    aggregates,
    cells,
    child_zones,
    cloudpipes,
    flavors,
    floating_bulk,
    floating_ips,
    hosts,
    hypervisors,
    instance_actions,
    keypairs,
    live_migrations,
    migrations,
    networks,
    projects,
    scheduling,
    server_addresses,
    server_groups,
    server_metadata,
    servers,
    services,
    versions,
    volume_attachments,
    zone_builds,
    zone_chain,
    zones,
)
from api.current import DEPLOYMENT
from api.errors import teach
from climate.compute import errors
from climate.compute.cells.errors import CellError, CellTimeout, InstanceUnknownCell

NOUNS = (
    servers,
    actions,
    server_metadata,
    instance_actions,
    scheduling,
    flavors,
    projects,
    keypairs,
    hypervisors,
    hosts,
    services,
    aggregates,
    server_groups,
    zones,
    cells,
    networks,
    cloudpipes,
    floating_ips,
    floating_bulk,
    server_addresses,
    volume_attachments,
    migrations,
    live_migrations,
)

STATUS: dict[type[Exception], int] = {
    errors.BadRequest: 400,
    errors.QuotaExceeded: 403,
    errors.NoImageRoom: 413,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.VirtError: 503,
    errors.MacsCollide: 503,
    errors.NetworkUnavailable: 503,
    errors.ZoneLoop: 508,
    errors.ZoneUnavailable: 503,
    CellTimeout: 504,
    CellError: 503,
    InstanceUnknownCell: 409,
}
"""What the bundled cloud's errors are in HTTP."""


def register(app: Flask) -> None:
    """Add the routes below /compute."""
    teach(app, STATUS)
    app.before_request(zone_chain.check)
    app.register_blueprint(versions.blueprint)
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
    app.register_blueprint(zone_builds.owners)
    if app.extensions[DEPLOYMENT].settings.allow_admin_api:
        app.register_blueprint(child_zones.blueprint)
        app.register_blueprint(zone_builds.blueprint)
