"""Network API v2.0: networks, subnets, ports, floating IPs and security groups."""

from flask import Flask, Response

from api.errors import answer
from api.network import (
    agents_and_ip_availability,
    extensions,
    floating_ips,
    networks,
    ports,
    quotas,
    security_groups,
    subnets,
    versions,
)
from climate.compute.errors import Conflict, QuotaExceeded

NOUNS = (
    versions,
    networks,
    subnets,
    ports,
    floating_ips,
    quotas,
    security_groups,
    agents_and_ip_availability,
    extensions,
)


def _over_quota(error: QuotaExceeded) -> Response:
    """Return the answer of Neutron, which is 409 where Compute has 403."""
    return answer(Conflict(str(error)))


for noun in NOUNS:
    noun.blueprint.register_error_handler(QuotaExceeded, _over_quota)


def register(app: Flask) -> None:
    """Add the routes below /network."""
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
