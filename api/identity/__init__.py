"""Identity v3, as far as OpenStack's clients need it."""

from flask import Flask

from api.identity import (
    catalog,
    credentials,
    discovery,
    moved_to_keystone,
    project_tags,
    projects,
    roles,
    tokens,
    users,
)
from api.identity.domains import domains, groups
from api.request_context import DEPLOYMENT

NOUNS = (discovery, tokens, catalog, domains, projects, project_tags, users, groups, roles, credentials)


def register(app: Flask) -> None:
    """Add the routes below /identity; with another identity service they only answer where it is."""
    is_bundled = app.extensions[DEPLOYMENT].settings.identity == "bundled"
    for noun in NOUNS if is_bundled else (moved_to_keystone,):
        app.register_blueprint(noun.blueprint)
