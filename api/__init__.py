"""REST APIs of climate: each view parses a request, calls one operation, and returns the answer."""

from collections.abc import Callable
from copy import copy
from types import MethodType
from typing import TYPE_CHECKING

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from api import (
    auth,
    body,
    compute,
    errors,
    identity,
    image,
    network,
    openapi,
    ops,
    path_aliases,
    request_checks,
    request_log,
    reservation,
    volume,
    web,
)
from api.ops import request_counters
from api.path_aliases import Paths, nouns
from api.request_context import DEPLOYMENT, DISK_WATCH, IDENTITY_URL
from api.reservation.leases import event_stream
from climate.service.disk_space import DiskWatch
from climate.web import upload_pace

if TYPE_CHECKING:
    from climate.bootstrap import Deployment


class Application(Flask):
    """Flask application without coroutine views, so that Flask need not check each view at each call."""

    def ensure_sync(self, func: Callable[..., object]) -> Callable[..., object]:
        """Return the function itself."""
        return func


ROOMS = (ops, identity, reservation, compute, image, network, volume, web)
"""Each has `register(app)`, which adds its blueprints."""


def create_app(deployment: "Deployment") -> Flask:
    """Return the application that serves all APIs of a deployment on one port."""
    app = Application("api", static_folder=None)
    app.config.update(
        MAX_CONTENT_LENGTH=body.LONGEST,
        PROVIDE_AUTOMATIC_OPTIONS=False,
        TRAP_HTTP_EXCEPTIONS=False,
    )
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.extensions[DEPLOYMENT] = deployment
    for part in (openapi, errors, request_log, request_checks, auth, path_aliases):
        part.install(app)
    for room in ROOMS:
        room.register(app)
    return bound(app, deployment)


def bound(app: Flask, deployment: "Deployment") -> Flask:
    """Return an application with the routes of `app` that serves `deployment`; `app` keeps serving its own deployment.

    Registering the routes takes half a second.  It depends on the names of plugins
    and power drivers, on the identity service, and on whether administrators are served.
    """
    made = copy(app)
    made.config = copy(app.config)
    made.config["BASE_URL"] = deployment.settings.base_url
    made.config[upload_pace.SETTING] = deployment.settings.upload_bytes_per_second
    made.config[IDENTITY_URL] = _identity_url(deployment)
    made.extensions = {**app.extensions, DEPLOYMENT: deployment, DISK_WATCH: DiskWatch(deployment.settings.home)}
    request_counters.install(made, deployment.settings.home / "figures")
    auth.allow(made)
    event_stream.install(made)
    known = ProxyFix(MethodType(Flask.wsgi_app, made), x_for=deployment.settings.trusted_proxies, x_proto=0)
    made.wsgi_app = Paths(known, nouns(made.url_map))  # type: ignore[method-assign]
    return made


def _identity_url(deployment: "Deployment") -> str:
    """Return the URL of Identity v3 for clients: the bundled one, or that of another service."""
    if deployment.settings.identity == "bundled" or deployment.identity.external is None:
        return f"{deployment.settings.base_url}/identity/v3"
    return deployment.identity.external.public_url
