"""climate up, web, poller, worker, migrate: the processes, and their parts one by one."""

import os
import sys
from importlib import import_module
from typing import Any

import click

from climate.cli.session import current


def _other(module: str) -> Any:
    """A module of a room that stands above this one: it is run from here, not built upon."""
    return import_module(module)


@click.command("up")
@click.option("--demo", is_flag=True, help="With flavors, an image, a network and hosts to play with.")
def up(demo: bool) -> None:
    """Run everything: stores (unless URLs are given), web, poller and worker."""
    session = current()
    from climate import runner

    raise SystemExit(runner.up(session.settings, session.environ, demo=demo))


@click.command("web")
def web() -> None:
    """Run the web process: all APIs on one port."""
    settings = current().settings
    address = f"[{settings.host}]" if ":" in settings.host else settings.host
    arguments = ["--bind", f"{address}:{settings.port}", "--worker-class", "gthread"]
    arguments += ["--workers", str(settings.web_processes), "--threads", str(settings.web_threads)]
    arguments += ["--graceful-timeout", "10", "--log-level", settings.log_level.lower(), "--no-control-socket"]
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", *arguments, "api.wsgi:application()"])


@click.command("poller")
def poller() -> None:
    """Run the poller: it sends out what is due."""
    settings = current().settings
    _other("workers.poller").main(settings)


@click.command("worker")
def worker() -> None:
    """Run a worker: it does what is due."""
    settings = current().settings
    _other("workers.worker").main(settings)


@click.command("migrate")
def migrate() -> None:
    """Bring the database to the present schema."""
    session = current()
    from climate import bootstrap

    bootstrap.migrate(session.settings)
    session.say("the schema is up to date")
