"""Reservation API v1, byte-compatible with Blazar's: one module per resource with its schema beside it."""

from flask import Flask

from api.openapi import document
from api.reservation import (
    audit,
    calendar_feeds,
    limits,
    mail_preferences,
    microversion,
    notices,
    openapi,
    plugins,
    usage,
    versions,
)
from api.reservation.hosts import allocations, host_health, maintenance, power, properties, timeline
from api.reservation.hosts import hosts as host_routes
from api.reservation.leases import availability, event_stream, events, series, subleases
from api.reservation.leases import leases as lease_routes
from api.reservation.pools import pools as pool_routes
from api.reservation.resources import floating_ips, storage

NOUNS = (
    *(
        versions,
        lease_routes,
        availability,
        series,
        subleases,
        host_routes,
        properties,
        allocations,
        plugins,
        events,
        notices,
        limits,
        maintenance,
        host_health,
    ),
    *(pool_routes, power, floating_ips, storage, audit, calendar_feeds, mail_preferences, usage),
    *(timeline, event_stream),
)


def register(app: Flask) -> None:
    """Add the routes below /reservation to the application and to the OpenAPI document."""
    microversion.install(app)
    openapi.prepare(app)
    for noun in NOUNS:
        document(app).register_blueprint(noun.blueprint, parameters=openapi.PARAMETERS)
    openapi.finish(app)
