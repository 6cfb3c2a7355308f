"""Network v2.0, to look at: networks, their subnets, and ports in use."""

from flask import Flask

from api.network import networks, versions

NOUNS = (versions, networks)


def register(app: Flask) -> None:
    """Add the routes below /network."""
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
