"""climate reservation: operations on the resources of a lease."""

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.options import dry, dry_run, output_options


@click.group("reservation")
def group() -> None:
    """Resources that leases hold."""


@group.command("reallocate")
@click.argument("host")
@click.option("--lease", help="Lease that gets another host.")
@click.option("--reservation", metavar="ID", help="Id of the reservation that gets another host.")
@click.option("--to", metavar="HOST", help="New host; by default any free one that matches.")
@click.option("--force", is_flag=True, help="Accept a host that does not match.")
@dry_run
@output_options
def reallocate(
    host: str, lease: str | None, reservation: str | None, to: str | None, force: bool, dry_run: bool
) -> None:
    """Allocate another host to a lease instead of HOST."""
    session = current()
    client = session.client
    if (lease is None) == (reservation is None):
        raise click.UsageError("give exactly one of --lease, --reservation")
    whose = (
        {"lease_id": lookup.lease_id(client, lease)}
        if lease
        else {"reservation_id": lookup.reservation_id(client, reservation or "")}
    )
    body = {**whose, "to": lookup.host_id(client, to) if to else None, "force": force}
    path = f"/os-hosts/{lookup.host_id(client, host)}/allocation"
    session.show(client.json("reservation", "PUT", path, json=body, params=dry(dry_run))["reallocation"])
