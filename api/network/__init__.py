"""Network v2.0: networks, their subnets, ports in use, floating addresses, and what guards them."""

from flask import Flask

from api.network import extensions, floating, networks, operators, ports, quotas, security, subnets, versions

NOUNS = (versions, networks, subnets, ports, floating, quotas, security, operators, extensions)


def register(app: Flask) -> None:
    """Add the routes below /network."""
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
