"""climate demo."""

import click


@click.command("demo")
def command() -> None:
    """Go through the life of a lease, and verify every step."""
