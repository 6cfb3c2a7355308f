"""climate admin-password: a new password for the administrator, on the machine of the database."""

from dataclasses import replace

import click

from climate.cli.accounts import password_options
from climate.cli.connection.session import current
from climate.cli.errors import USAGE, Failure
from climate.cli.operations.stores import serving
from climate.settings import Settings


@click.group("admin-password")
def group() -> None:
    """The administrator's password, on the machine of the database."""


@group.command("reset")
@password_options.password_options
def reset(password_prompt: bool, password_file: str | None) -> None:
    """Reset the password of user `admin` in the database itself; without an option, a random one is shown once.

    It also enables the user and the project admin, assigns the role, revokes the administrator's tokens, and writes
    admin-password and clouds.yaml of CLIMATE_HOME.  It works while `climate up` runs, and while it does not.
    """
    session = current()
    settings = session.settings
    check_home(settings)
    given = password_options.chosen(password_prompt, password_file)
    password = given or password_options.generated()
    from climate import bootstrap

    with serving(settings) as stores:
        served = replace(settings, database_url=stores.database_url)
        address = bootstrap.reset_admin_password(served, password, session.say)
    if given is None:
        click.echo(password)
    session.say(f"the password of user admin is reset, and also in {settings.home / 'admin-password'}")
    print_written(settings, address)


def print_written(settings: Settings, address: str) -> None:
    """Print the path and the address of a clouds.yaml that was written."""
    session = current()
    session.say(f"{settings.home / 'clouds.yaml'} is written for {address}")
    session.say("if the APIs have another address: climate clouds write --url URL")


def check_home(settings: Settings) -> None:
    """Raise Failure for a home in which no climate has run."""
    if not (settings.home / "keys").is_dir():
        raise Failure(f"no climate has run in {settings.home}", USAGE, "set CLIMATE_HOME to the home of the deployment")
