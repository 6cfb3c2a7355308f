"""Root command with all other commands below it."""

from importlib.metadata import PackageNotFoundError, version

import click

from climate.cli.demo import demo
from climate.cli.hosts import host, maintenance, move, pool, power, storage
from climate.cli.leases import lease, limit, notice, reservation
from climate.cli.networks import cloudpipe, floating, floatingip, network
from climate.cli.operations import (
    audit,
    doctor,
    events_tokens_api,
    import_blazar,
    journal,
    lab,
    node,
    openstack,
    processes,
    service,
    stores,
    token_keys,
)
from climate.cli.servers import actions, explain, moves, server, volume
from climate.cli.session import current
from climate.cli.tree import cell, zone, zone_boot

DISTRIBUTION = "climate-reservation"
"""Name on the package index, where `climate` belongs to another project."""


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "from source"


def _show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"climate {_version()}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--os-cloud", "cloud", metavar="NAME", help="Cloud of clouds.yaml; by default OS_CLOUD, or `climate`.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def root(cloud: str | None) -> None:
    """Reserve hosts and servers of a cloud ahead of time."""
    current().cloud_name = cloud


for _command in (
    *(processes.up, processes.web, processes.poller, processes.worker, processes.cells, processes.migrate),
    *(demo.command, lab.command, doctor.command, journal.group, import_blazar.group, stores.group),
    *(token_keys.group, openstack.group, lease.group),
    *(host.group, service.group, node.group, zone.group, cell.group),
    *(server.boot, server.server_group, server.flavor_group, server.image_group),
    audit.command,
    *(limit.group, notice.group, floatingip.group, network.group, floating.group, storage.group, volume.group),
    cloudpipe.group,
    *(maintenance.group, reservation.group, pool.group, power.group),
    *(events_tokens_api.event_group, events_tokens_api.token, events_tokens_api.api, events_tokens_api.completion),
):
    root.add_command(_command)

for _command in (*maintenance.HOST_COMMANDS, *move.COMMANDS, *moves.HOST_COMMANDS, power.host_group):
    host.group.add_command(_command)

for _command in zone_boot.COMMANDS:
    zone.group.add_command(_command)

for _command in (explain.command, *actions.COMMANDS, *moves.COMMANDS):
    server.server_group.add_command(_command)
