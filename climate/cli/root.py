"""Root command, and the places of all other commands below it."""

import click

from climate.cli.connection.session import current
from climate.cli.lazy_group import HIDDEN, LazyGroup, Sections

DISTRIBUTION = "climate-reservation"
"""Name on the package index, where `climate` belongs to another project."""

SECTIONS: Sections = {
    "Reserve": {
        "calendar": ("leases.calendar:group",),
        "find": ("leases.find:command",),
        "lease": ("leases.lease:group", "leases.sublease:COMMANDS"),
        "limit": ("leases.limit:group",),
        "mail": ("leases.mail:group",),
        "notice": ("leases.notice:group",),
        "reservation": ("leases.reservation:group",),
        "series": ("leases.series:group",),
        "usage": ("leases.usage:command",),
    },
    "Servers": {
        "boot": ("servers.server:boot",),
        "server": (
            "servers.server:server_group",
            "servers.explain:COMMANDS",
            "servers.actions:COMMANDS",
            "servers.moves:COMMANDS",
        ),
        "flavor": ("servers.server:flavor_group",),
        "image": ("servers.server:image_group",),
        "volume": ("servers.volume:group",),
    },
    "Hosts and pools": {
        "host": (
            "hosts.host:group",
            "hosts.maintenance:HOST_COMMANDS",
            "hosts.move:COMMANDS",
            "servers.moves:HOST_COMMANDS",
            "hosts.power:HOST_COMMANDS",
        ),
        "pool": ("hosts.pool:group",),
        "maintenance": ("hosts.maintenance:group",),
        "power": ("hosts.power:group",),
        "storage": ("hosts.storage:group",),
    },
    "Networks": {
        "network": ("networks.network:group",),
        "floating": ("networks.floating:group", "networks.floating_reservable:COMMANDS"),
        "cloudpipe": ("networks.cloudpipe:group",),
    },
    "Projects and users": {
        "project": ("accounts.project:group",),
        "user": ("accounts.user:group",),
        "role": ("accounts.role:group",),
        "credential": ("accounts.credential:group",),
        "admin-password": ("accounts.admin_password:group",),
        "clouds": ("accounts.clouds_file:group",),
    },
    "Administration": {
        "node": ("operations.node:group",),
        "service": ("operations.service:group",),
        "event": ("operations.events_tokens_api:event_group",),
        "audit": ("operations.audit:command",),
        "journal": ("operations.journal:group",),
        "stores": ("operations.stores:group",),
        "keys": ("operations.token_keys:group",),
        "import": ("operations.import_blazar:group",),
        "openstack": ("operations.openstack:group",),
        "zone": ("tree.zone:group", "tree.zone_boot:COMMANDS"),
        "cell": ("tree.cell:group",),
    },
    "Run": {
        "up": ("operations.processes:up",),
        "demo": ("demo.demo:command",),
        "lab": ("operations.lab:command",),
        "doctor": ("operations.doctor:command",),
        "migrate": ("operations.processes:migrate",),
    },
    "Scripts": {
        "token": ("operations.events_tokens_api:token",),
        "api": ("operations.events_tokens_api:api",),
        "completion": ("operations.events_tokens_api:completion",),
    },
    "Processes, which `climate up` starts": {
        "web": ("operations.processes:web",),
        "poller": ("operations.processes:poller",),
        "worker": ("operations.processes:worker",),
        "cells": ("operations.processes:cells",),
        "metadata": ("operations.processes:metadata",),
    },
    HIDDEN: {
        "floatingip": ("networks.floating_reservable:alias",),
    },
}


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "from source"


def _show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"climate {_version()}")
        context.exit()


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    base="climate.cli",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--os-cloud", "cloud", metavar="NAME", help="Cloud of clouds.yaml; by default OS_CLOUD, or `climate`.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.pass_context
def root(context: click.Context, cloud: str | None) -> None:
    """Reserve hosts and servers of a cloud ahead of time.

    A first lease: climate lease create mine --for 2h --hosts 1
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        return
    current().cloud_name = cloud
