"""The root command, with every other one below it."""

from importlib.metadata import PackageNotFoundError, version

import click

from climate.cli import (
    audit,
    cell,
    cloudpipe,
    demo,
    doctor,
    explain,
    floating,
    floatingip,
    host,
    host_move,
    journal,
    keys,
    lab,
    lease,
    limit,
    maintenance,
    moves,
    network,
    node,
    notice,
    pool,
    power,
    processes,
    raw,
    reservation,
    server,
    server_verbs,
    service,
    storage,
    volume,
    zone,
    zone_boot,
)
from climate.cli.session import current


def _version() -> str:
    try:
        return version("climate")
    except PackageNotFoundError:
        return "from source"


def _show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"climate {_version()}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--os-cloud", "cloud", metavar="NAME", help="Cloud of clouds.yaml; OS_CLOUD, or `climate`, without it.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def root(cloud: str | None) -> None:
    """Reserve hosts and servers of a cloud ahead of time."""
    current().cloud_name = cloud


for _command in (
    *(processes.up, processes.web, processes.poller, processes.worker, processes.cells, processes.migrate),
    *(demo.command, lab.command, doctor.command, journal.group, keys.group, lease.group),
    *(host.group, service.group, node.group, zone.group, cell.group),
    *(server.boot, server.server_group, server.flavor_group, server.image_group),
    audit.command,
    *(limit.group, notice.group, floatingip.group, network.group, floating.group, storage.group, volume.group),
    cloudpipe.group,
    *(maintenance.group, reservation.group, pool.group, power.group),
    *(raw.event_group, raw.token, raw.api, raw.completion),
):
    root.add_command(_command)

for _command in (*maintenance.HOST_COMMANDS, *host_move.COMMANDS, *moves.HOST_COMMANDS, power.host_group):
    host.group.add_command(_command)

for _command in zone_boot.COMMANDS:
    zone.group.add_command(_command)

for _command in (explain.command, *server_verbs.COMMANDS, *moves.COMMANDS):
    server.server_group.add_command(_command)
