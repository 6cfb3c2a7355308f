"""Identity v3, as far as OpenStack's clients need it."""

from flask import Flask

from api.identity import catalog, credentials, discovery, projects, roles, tokens, users

NOUNS = (discovery, tokens, catalog, projects, users, roles, credentials)


def register(app: Flask) -> None:
    """Add the routes below /identity."""
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
