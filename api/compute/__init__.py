"""Compute API v2.1, as far as OpenStack's clients need it."""

from flask import Flask

from api.compute import extensions, image_proxy, versions
from api.compute.cells import cells as cell_routes
from api.compute.networks import floating_ips, floating_ips_bulk, security_groups
from api.compute.networks import networks as network_routes
from api.compute.nodes import aggregates, availability_zones, hosts, hypervisors, services, usage_audit
from api.compute.projects import cloudpipes, flavors, keypairs, quota_classes, quotas, server_groups, tenant_usage
from api.compute.servers import addresses, instance_actions, metadata, server_password, tags, volume_attachments
from api.compute.servers import servers as server_routes
from api.compute.servers.actions import actions
from api.compute.servers.admin import diagnostics, external_events, live_migrations, migrations, scheduler_decisions
from api.compute.zones import builds, child_zones, zone_chain
from api.errors import teach
from api.request_context import DEPLOYMENT
from climate.compute import errors
from climate.compute.cells.errors import CellError, CellTimeout, InstanceUnknownCell

NOUNS = (
    extensions,
    server_routes,
    actions,
    metadata,
    tags,
    instance_actions,
    scheduler_decisions,
    diagnostics,
    external_events,
    server_password,
    flavors,
    quotas,
    quota_classes,
    tenant_usage,
    keypairs,
    hypervisors,
    hosts,
    services,
    usage_audit,
    aggregates,
    server_groups,
    availability_zones,
    cell_routes,
    network_routes,
    cloudpipes,
    floating_ips,
    floating_ips_bulk,
    security_groups,
    addresses,
    volume_attachments,
    migrations,
    live_migrations,
    image_proxy,
)

STATUS: dict[type[Exception], int] = {
    errors.BadRequest: 400,
    errors.QuotaExceeded: 403,
    errors.NoImageRoom: 413,
    errors.NoVolumeRoom: 413,
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
"""HTTP status of each error of the bundled cloud."""


def register(app: Flask) -> None:
    """Add the routes below /compute."""
    teach(app, STATUS)
    app.before_request(zone_chain.check)
    app.register_blueprint(versions.blueprint)
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
    app.register_blueprint(builds.owners)
    if app.extensions[DEPLOYMENT].settings.allow_admin_api:
        app.register_blueprint(child_zones.blueprint)
        app.register_blueprint(builds.blueprint)
