"""The reservation API v1: byte-compatible with the peer's, one module per noun with its schema beside it."""

from flask import Flask

from api.document import document
from api.reservation import (
    allocations,
    audit,
    described,
    events,
    floatingips,
    health,
    hosts,
    leases,
    limits,
    maintenance,
    microversion,
    notices,
    plugins,
    pools,
    power,
    properties,
    storage,
    versions,
)

NOUNS = (
    *(versions, leases, hosts, properties, allocations, plugins, events, notices, limits, maintenance, health),
    *(pools, power, floatingips, storage, audit),
)


def register(app: Flask) -> None:
    """Add the routes below /reservation, and what they are to the OpenAPI document."""
    microversion.install(app)
    described.prepare(app)
    for noun in NOUNS:
        document(app).register_blueprint(noun.blueprint, parameters=described.PARAMETERS)
    described.finish(app)
