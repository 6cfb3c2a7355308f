"""Web pages: Jinja templates over the same services as the REST APIs; each page works without JavaScript."""

from flask import Flask

from api.web import assets, blueprint, rendering, sessions
from api.web.views import (
    administration,
    calendar,
    find,
    home,
    hosts,
    leases,
    preference_forms,
    series,
    servers,
    settings,
    sign_in,
    subleases,
    usage,
    waiting_list,
)

PAGES = (
    *(
        home,
        leases,
        subleases,
        find,
        series,
        waiting_list,
        calendar,
        servers,
        usage,
        settings,
        preference_forms,
        sign_in,
    ),
    *(hosts, administration),
)
"""Modules whose import registers the pages."""


def register(app: Flask) -> None:
    """Add the pages below /ui to the application."""
    assets.install(app)
    sessions.install(app)
    rendering.install(app)
    app.register_blueprint(blueprint.blueprint)
