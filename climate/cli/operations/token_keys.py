"""climate keys: the keys that seal tokens."""

import click

from climate.cli.session import current


@click.group("keys")
def group() -> None:
    """The keys that seal tokens."""


@group.command("rotate")
def rotate() -> None:
    """Seal tokens with a new key from now on; those sealed by the last keys stay good until they expire."""
    session = current()
    from climate.identity.keys import KeyRing

    KeyRing(session.settings.home / "keys").rotate()
    session.say("tokens are sealed with a new key from now on")
