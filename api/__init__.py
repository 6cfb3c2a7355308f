"""The REST face of climate: parse, call one verb, answer."""

from typing import TYPE_CHECKING

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from api import (
    auth,
    body,
    compute,
    document,
    errors,
    identity,
    image,
    negotiation,
    network,
    ops,
    requests,
    reservation,
)
from api.current import DEPLOYMENT
from api.ops import tally
from api.paths import Paths

if TYPE_CHECKING:
    from climate.bootstrap import Deployment

ROOMS = (ops, identity, reservation, compute, image, network)
"""Each has `register(app)`, which adds its blueprints."""


def create_app(deployment: "Deployment") -> Flask:
    """The application that serves all APIs of a deployment on one port."""
    app = Flask("api", static_folder=None)
    app.config.update(
        BASE_URL=deployment.settings.base_url,
        MAX_CONTENT_LENGTH=body.LONGEST,
        PROVIDE_AUTOMATIC_OPTIONS=False,
        TRAP_HTTP_EXCEPTIONS=False,
    )
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.extensions[DEPLOYMENT] = deployment
    document.install(app)
    errors.install(app)
    tally.install(app, deployment.settings.home / "figures")
    requests.install(app)
    negotiation.install(app)
    auth.install(app)
    for room in ROOMS:
        room.register(app)
    known = ProxyFix(app.wsgi_app, x_for=deployment.settings.trusted_proxies, x_proto=0)
    app.wsgi_app = Paths(known)  # type: ignore[method-assign]
    return app
