"""Identity v3, as far as OpenStack's clients need it."""

from flask import Flask


def register(app: Flask) -> None:
    """Add the routes below /identity."""
