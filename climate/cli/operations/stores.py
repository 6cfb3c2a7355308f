"""climate stores: the database and the broker of a home, for backups and other programs."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from climate import embedded
from climate.cli.connection.session import current
from climate.cli.errors import ERROR, UNREACHABLE, Failure
from climate.embedded import Stores, postgres, running
from climate.settings import Settings

NOT_FOUND = 127
"""Exit code of a shell for a program that does not exist."""


@click.group("stores")
def group() -> None:
    """The database and the broker; commands work without the API."""


@group.command("run", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def run(command: tuple[str, ...]) -> None:
    """Run a COMMAND such as pg_dump that finds the stores of climate in its environment; exits with its exit code.

    The stores are those of the URLs, or of the running `climate up` of CLIMATE_HOME; otherwise they run meanwhile.
    The COMMAND gets PGHOST and so on, the URLs, and a PATH that begins with the programs of the database.
    """
    session = current()
    try:
        with serving(session.settings) as stores:
            code = _run(command, surroundings(session.settings, session.environ, stores))
    except embedded.StoreError as error:
        raise Failure(str(error), UNREACHABLE) from None
    click.get_current_context().exit(code)


@contextmanager
def serving(settings: Settings) -> Iterator[Stores]:
    """Return the stores, and run those that have no URL and do not run already."""
    up = running(settings.home)
    if up and not settings.database_url:
        settings = replace(settings, database_url=up.database_url)
    if up and not settings.redis_url:
        settings = replace(settings, redis_url=up.redis_url)
    if settings.database_url and settings.redis_url:
        yield Stores(settings.database_url, settings.redis_url)
        return
    with embedded.run(settings.home, settings) as stores:
        yield stores


def surroundings(settings: Settings, environ: Mapping[str, str], stores: Stores) -> dict[str, str]:
    """Return the environment of a command: the URLs, the variables of libpq, and a PATH with the right programs."""
    from psycopg import Error, pq

    from climate.bootstrap import plain_url

    try:
        parts = pq.Conninfo.parse(plain_url(stores.database_url).encode())
    except Error as error:
        raise Failure(f"CLIMATE_DATABASE_URL cannot be read: {error}", ERROR) from None
    libpq = {part.envvar.decode(): part.val.decode() for part in parts if part.envvar and part.val}
    folders = [str(Path(sys.executable).parent), environ.get("PATH", os.defpath)]
    if not settings.database_url:
        folders.insert(0, str(postgres.programs(settings.home, settings.pg_bin)))
    urls = {"CLIMATE_DATABASE_URL": stores.database_url, "CLIMATE_REDIS_URL": stores.redis_url}
    return {**environ, **libpq, **urls, "PATH": os.pathsep.join(folders)}


def _run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command to its end; return its exit code as a shell does: 128 and the number of a signal."""
    try:
        result = subprocess.run(command, env=environ, check=False).returncode  # noqa: S603
    except OSError as error:
        raise Failure(f"{command[0]} cannot be run: {error.strerror}", NOT_FOUND) from None
    return result if result >= 0 else 128 - result
