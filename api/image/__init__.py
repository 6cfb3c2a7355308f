"""Image v2: a registry of names, with the contents of those that were uploaded or made from servers."""

from flask import Flask

from api.image import images, versions

NOUNS = (versions, images)


def register(app: Flask) -> None:
    """Add the routes below /image."""
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
