"""Liveness, readiness, metrics and the OpenAPI document, for operators and monitoring."""

from flask import Flask

from api.ops.health import blueprint


def register(app: Flask) -> None:
    """Add /healthz, /readyz, /metrics and /openapi.json."""
    app.register_blueprint(blueprint)
