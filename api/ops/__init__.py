"""Is it alive, is it ready, what are its figures, what can be asked of it: for operators and their machines."""

from flask import Flask

from api.ops.health import blueprint


def register(app: Flask) -> None:
    """Add /healthz, /readyz, /metrics and /openapi.json."""
    app.register_blueprint(blueprint)
