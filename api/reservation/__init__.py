"""The reservation API v1: byte-compatible with the peer's, one module per noun with its schema beside it."""

from flask import Flask

from api.openapi import document
from api.reservation import (
    allocations,
    audit,
    events,
    floatingips,
    host_health,
    hosts,
    leases,
    limits,
    maintenance,
    microversion,
    notices,
    openapi,
    plugins,
    pools,
    power,
    properties,
    storage,
    versions,
)

NOUNS = (
    *(versions, leases, hosts, properties, allocations, plugins, events, notices, limits, maintenance, host_health),
    *(pools, power, floatingips, storage, audit),
)


def register(app: Flask) -> None:
    """Add the routes below /reservation, and what they are to the OpenAPI document."""
    microversion.install(app)
    openapi.prepare(app)
    for noun in NOUNS:
        document(app).register_blueprint(noun.blueprint, parameters=openapi.PARAMETERS)
    openapi.finish(app)
