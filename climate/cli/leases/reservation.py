"""climate reservation: operations on the resources of a lease."""

from typing import Any

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.options import dry, dry_run, shown


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
@shown
def reallocate(host: str, force: bool, dry_run: bool, **given: Any) -> None:
    """Allocate another host to a lease instead of HOST."""
    session = current()
    client = session.client
    if (given["lease"] is None) == (given["reservation"] is None):
        raise click.UsageError("give exactly one of --lease, --reservation")
    whose = (
        {"lease_id": lookup.lease_id(client, given["lease"])}
        if given["lease"]
        else {"reservation_id": lookup.reservation_id(client, given["reservation"])}
    )
    to = lookup.host_id(client, given["to"]) if given["to"] else None
    body = {**whose, "to": to, "force": force}
    path = f"/os-hosts/{lookup.host_id(client, host)}/allocation"
    session.show(client.json("reservation", "PUT", path, json=body, params=dry(dry_run))["reallocation"])
