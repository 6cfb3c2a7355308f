"""Network API v2.0: networks, subnets, ports, floating IPs and security groups."""

from flask import Flask

from api.network import agents, extensions, floating_ips, networks, ports, quotas, security_groups, subnets, versions

NOUNS = (versions, networks, subnets, ports, floating_ips, quotas, security_groups, agents, extensions)


def register(app: Flask) -> None:
    """Add the routes below /network."""
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
