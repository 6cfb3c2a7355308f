"""climate up, web, poller, worker, metadata, migrate: all processes, or a single one."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from types import ModuleType

import click

from climate.cli.connection.session import current
from climate.cli.dates import SpanType
from climate.cli.errors import ERROR, Failure
from climate.cli.options import PairType
from climate.settings import METADATA_HERE, Settings

WORKER_CLASS = "climate.web.worker.BufferingWorker"

DEMO_NETWORKS = {
    "CLIMATE_NETWORK_MANAGER": "flat_dhcp",
    "CLIMATE_FLOATING_RANGE": "198.51.100.0/25",
    "CLIMATE_FLOATING_CIDR": "198.51.100.0/24",
}
"""A network whose servers can have floating addresses; leases can reserve those of the second half of the range."""


def _other(module: str) -> ModuleType:
    """Return a module of a layer above this one, which this command only runs."""
    return import_module(module)


def _settings() -> Settings:
    """Return the settings after a check of everything they name, so that a process refuses bad ones at its start."""
    from climate import bootstrap

    bootstrap.check(current().settings)
    return current().settings


def _exit(code: int) -> None:
    click.get_current_context().exit(code)


@click.command("up")
@click.argument("processes", nargs=-1, metavar="[PROCESS]...")
@click.option(
    "--demo",
    is_flag=False,
    flag_value="cloud",
    type=click.Choice(["cloud", "zones", "cells", "clusters"]),
    help="Create demo hosts: one cloud, a tree of four zones or cells, or a cluster of members.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the APIs, instead of CLIMATE_PORT.")
@click.option(
    "--scale",
    type=PairType(),
    multiple=True,
    metavar="PROCESS=COUNT",
    help="Number of processes of one name; repeatable.",
)
def up(processes: tuple[str, ...], demo: str | None, port: int | None, scale: tuple[tuple[str, str], ...]) -> None:
    """Run everything, or some PROCESSes of the Procfile: stores (unless URLs are given), web, poller, worker."""
    session = current()
    from climate import runner

    settings = _settings()
    if demo in ("zones", "cells", "clusters"):
        if processes or scale:
            raise click.UsageError(f"--demo {demo} runs whole deployments; omit PROCESS and --scale")
        _exit(_run_tree(demo, port))
    settings = replace(settings, port=port) if port else settings
    formation = {name: _count(name, count) for name, count in scale}
    environ = _with_demo_networks(session.environ) if demo else session.environ
    _exit(runner.up(settings, environ, processes or None, formation or None, demo is not None))


def _with_demo_networks(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Add the networks of a demo cloud, unless the environment chooses any."""
    return environ if DEMO_NETWORKS.keys() & environ.keys() else {**environ, **DEMO_NETWORKS}


def _run_tree(demo: str, port: int | None) -> int:
    from climate.cli.demo import clusters, tree
    from climate.cli.demo.cells import CELLS
    from climate.cli.demo.zones import ZONES

    if demo == "clusters":
        return clusters.run(current(), port)
    return tree.run(CELLS if demo == "cells" else ZONES, current(), port)


def _count(name: str, count: str) -> int:
    if not count.isdecimal() or not 0 < int(count) <= 100:
        raise click.UsageError(f"--scale {name}={count}: the count must be a number from 1 to 100")
    return int(count)


@click.command("web")
def web() -> None:
    """Run the web process: all APIs on one port."""
    settings = _settings()
    command = web_command(settings, "api.wsgi:application()")
    os.execv(command[0], command)  # noqa: S606


@click.command("metadata")
def metadata() -> None:
    """Run the metadata service of a network host: servers fetch their public keys and user data from it."""
    from climate.configuration import networks

    settings = _settings()
    where = networks.options(settings).metadata
    if where is None:
        fix = f"set CLIMATE_METADATA_ADDRESS={METADATA_HERE} for the network services and this process"
        raise Failure("the metadata service has no address: CLIMATE_METADATA_ADDRESS is not set", ERROR, fix)
    try:
        listener = _other("api.metadata.listener").opened(where, settings.network_netns or None)
    except OSError as error:
        trouble = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        reason = f"CLIMATE_METADATA_ADDRESS={where[0]}:{where[1]} cannot be used ({trouble})"
        raise Failure(reason, ERROR, "run one metadata service on each network host, as root") from None
    settings = replace(settings, web_processes=1)
    command = web_command(settings, "api.metadata.wsgi:application()", f"fd://{listener.detach()}")
    os.execv(command[0], command)  # noqa: S606


def web_command(settings: Settings, application: str, bind: str | None = None) -> list[str]:
    """Return the command that serves a WSGI application with these settings; its name is gunicorn's.

    `bind`: gunicorn's name of the socket; None: that of the APIs.
    """
    address = f"[{settings.host}]" if ":" in settings.host else settings.host
    arguments = ["--bind", bind or f"{address}:{settings.port}", "--worker-class", WORKER_CLASS]
    arguments += ["--workers", str(settings.web_processes), "--threads", str(settings.web_threads)]
    # Longer than clients and proxies keep an idle connection, so that none sends on a closing one.
    arguments += ["--keep-alive", "75"]
    # gunicorn would let clients of a proxy on this machine set the path by the header SCRIPT_NAME.
    arguments += ["--forwarded-allow-ips", ""]
    arguments += ["--graceful-timeout", "10", "--log-level", settings.log_level.lower(), "--no-control-socket"]
    return [sys.executable, "-m", "gunicorn", *arguments, application]


@click.command("poller")
def poller() -> None:
    """Run the poller, which sends due events to the workers."""
    settings = _settings()
    _exit(_other("workers.poller").main(settings))


@click.command("worker")
def worker() -> None:
    """Run a worker, which runs due events and tasks."""
    settings = _settings()
    from climate import bootstrap

    bootstrap.check_nodes(settings)
    _exit(_other("workers.worker").main(settings))


@click.command("cells")
def cells() -> None:
    """Run the cells process, which exchanges messages with the other cells of a tree."""
    settings = _settings()
    _exit(_other("workers.cells").main(settings))


@click.command("migrate")
@click.option("--wait", type=SpanType(), help="Time to wait for a database that does not answer: 30s, 10m.")
def migrate(wait: timedelta | None) -> None:
    """Migrate the database to the schema of this release."""
    session = current()
    from climate import bootstrap

    bootstrap.migrate(session.settings, wait=wait.total_seconds() if wait else 0.0)
    session.say("the schema is up to date")
