"""Applications whose routes are registered once in a test run."""

from typing import Any

from flask import Flask

from api import bound, create_app

_KNOWN: dict[tuple[object, ...], Flask] = {}


def app_of(deployment: Any) -> Flask:
    """Return the application of a deployment, as `create_app` does, without registering its routes anew."""
    climate, settings = deployment.climate, deployment.settings
    named = [*sorted(climate.plugins.items()), *sorted(climate.power.items())]
    key = (settings.allow_admin_api, settings.identity, *((name, type(one)) for name, one in named))
    if key not in _KNOWN:
        _KNOWN[key] = create_app(deployment)
    return bound(_KNOWN[key], deployment)
