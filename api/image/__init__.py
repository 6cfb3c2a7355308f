"""Image API v2: images without content, and images that were uploaded or created from servers."""

from flask import Flask

from api.image import images, imports, members, metadefs, schemas, upload_slots, versions

NOUNS = (versions, images, imports, members, metadefs, schemas)


def register(app: Flask) -> None:
    """Add the routes below /image."""
    upload_slots.install(app)
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
