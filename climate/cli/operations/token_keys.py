"""climate keys: keys that encrypt tokens."""

import click

from climate.cli.connection.session import current


@click.group("keys")
def group() -> None:
    """Keys that encrypt tokens."""


@group.command("rotate")
def rotate() -> None:
    """Rotate to a new key; tokens of the last keys stay valid until they expire."""
    session = current()
    from climate.identity.keys import KeyRing

    KeyRing(session.settings.home / "keys").rotate()
    session.say("new tokens are encrypted with a new key")
