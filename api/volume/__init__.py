"""Block Storage API v3, as far as clients need it to list, show and delete volumes."""

from flask import Flask

from api.volume import quotas, versions, volumes


def register(app: Flask) -> None:
    """Add the routes below /volume."""
    app.register_blueprint(versions.blueprint)
    app.register_blueprint(volumes.blueprint)
    app.register_blueprint(quotas.blueprint)
