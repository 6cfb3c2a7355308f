"""climate host: the hosts kept for leases."""

from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.dates import Moment, MomentType, wire
from climate.cli.errors import NOT_ALLOWED, Failure
from climate.cli.options import PairType, dry, dry_run, listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.hosts import HostAllocation, HostProperty

COLUMNS = ("id", "hypervisor_hostname", "vcpus", "memory_mb", "local_gb", "reservable", "status", "availability_zone")


@click.group("host")
def group() -> None:
    """Hosts of the reservation pool, their capabilities and allocations."""


@group.command("create")
@click.argument("name")
@click.option("--extra", type=PairType(), multiple=True, metavar="KEY=VALUE", help="An extra capability; repeatable.")
@click.option("--drain", is_flag=True, help="Accept a host with servers; it joins the pool when the last one is gone.")
@dry_run
@output_options
def create(name: str, extra: tuple[tuple[str, str], ...], drain: bool, dry_run: bool) -> None:
    """Register a hypervisor of the cloud, by its name or id, in the reservation pool."""
    session = current()
    body = {**dict(extra), "name": name}
    query = dry(dry_run) | ({"drain": "true"} if drain else {})
    answer = session.client.json("reservation", "POST", "/os-hosts", json=body, params=query)
    session.show(answer.get("host", answer))


@group.command("list")
@listed
def list_() -> None:
    """List hosts."""
    session = current()
    session.show_all(session.client.pages("reservation", "/os-hosts", "hosts"), COLUMNS)


@group.command("show")
@click.argument("host")
@click.option("--at", type=MomentType(), help="Show the extra capabilities at this time.")
@output_options
def show(host: str, at: Moment | None) -> None:
    """Show a host, by its number or its hypervisor host name."""
    session = current()
    if at is None:
        session.show(lookup.host(session.client, host))
        return
    path, query = f"/os-hosts/{lookup.host_id(session.client, host)}", {"at": wire(at.when(session.client.now()))}
    session.show(session.client.json("reservation", "GET", path, params=query)["host"])


@group.command("set")
@click.argument("host")
@click.option("--extra", type=PairType(), multiple=True, required=True, metavar="KEY=VALUE", help="Repeatable.")
@dry_run
@output_options
def set_(host: str, extra: tuple[tuple[str, str], ...], dry_run: bool) -> None:
    """Add or change extra capabilities of a host."""
    _put(host, dict(extra), dry_run)


@group.command("unset")
@click.argument("host")
@click.option("--extra", multiple=True, required=True, metavar="KEY", help="An extra capability; repeatable.")
@dry_run
@output_options
def unset(host: str, extra: tuple[str, ...], dry_run: bool) -> None:
    """Delete extra capabilities of a host."""
    _put(host, dict.fromkeys(extra), dry_run)


def _put(host: str, body: dict[str, object], dry_run: bool) -> None:
    session = current()
    path = f"/os-hosts/{lookup.host_id(session.client, host)}"
    answer = session.client.json("reservation", "PUT", path, json=body, params=dry(dry_run))
    session.show(answer.get("host", answer))


@group.command("delete")
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@dry_run
def delete(hosts: tuple[str, ...], dry_run: bool) -> None:
    """Delete hosts from the reservation pool; the cloud schedules ordinary servers on them again."""
    session = current()
    for host_id in [lookup.host_id(session.client, host) for host in hosts]:
        session.client.call("reservation", "DELETE", f"/os-hosts/{host_id}", params=dry(dry_run))


@group.command("allocations")
@click.argument("host", required=False)
@click.option("--lease", help="Only allocations of this lease.")
@click.option("--reservation", metavar="ID", help="Only allocations of this reservation.")
@listed
def allocations(host: str | None, lease: str | None, reservation: str | None) -> None:
    """List the allocations of a host; without HOST, of all hosts."""
    session = current()
    client = session.client
    lease_id = lookup.lease_id(client, lease) if lease else None
    held = lookup.reservation_id(client, reservation) if reservation else None
    query = {key: value for key, value in (("lease_id", lease_id), ("reservation_id", held)) if value}
    if host:
        path = f"/os-hosts/{lookup.host_id(client, host)}/allocation"
        one: HostAllocation = client.json("reservation", "GET", path, params=query)["allocation"]
        rows = [one]
    else:
        rows = client.json("reservation", "GET", "/os-hosts/allocations", params=query)["allocations"]
    flat = [{"host_id": row["resource_id"], **held} for row in rows for held in row["reservations"]]
    session.show_all(flat, ("host_id", "id", "lease_id", "start_date", "end_date"))


@group.group("property")
def properties() -> None:
    """Capabilities that leases can require."""


@properties.command("list")
@click.option("--detail", is_flag=True, help="Include their values.")
@click.option("--all", "everything", is_flag=True, help="Include private ones.")
@listed
def property_list(detail: bool, everything: bool) -> None:
    """List the capabilities of hosts."""
    session = current()
    query = {key: "True" for key, value in (("detail", detail), ("all", everything)) if value}
    answer = session.client.json("reservation", "GET", "/os-hosts/properties", params=query)
    session.show_all(answer["resource_properties"], ("property", "private", "values") if detail else ("property",))


@properties.command("show")
@click.argument("name")
@output_options
def property_show(name: str) -> None:
    """Show the values of a capability; users see those of public ones."""
    session = current()
    try:
        rows = _properties(session, {"detail": "True", "all": "True"})
    except Failure as failure:
        if failure.code != NOT_ALLOWED:
            raise
        rows = _properties(session, {"detail": "True"})
    session.show(lookup.only("host property", name, rows, "property"))


def _properties(session: Session, query: dict[str, str]) -> "list[HostProperty]":
    listed: list[HostProperty] = session.client.json("reservation", "GET", "/os-hosts/properties", params=query)[
        "resource_properties"
    ]
    return listed


@properties.command("set")
@click.argument("name")
@click.option("--private/--public", required=True, help="Visibility for users.")
@output_options
def property_set(name: str, private: bool) -> None:
    """Make a capability private or public."""
    session = current()
    path = f"/os-hosts/properties/{lookup.part(name)}"
    session.show(session.client.json("reservation", "PATCH", path, json={"private": private})["resource_property"])
