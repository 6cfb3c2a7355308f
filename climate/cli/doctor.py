"""climate doctor."""

import click


@click.command("doctor")
def command() -> None:
    """Look at everything and say what is wrong."""
