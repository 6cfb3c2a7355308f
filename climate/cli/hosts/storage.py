"""climate storage: storage pools that can be reserved."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from climate.cli import lookup
from climate.cli.connection.client import Client
from climate.cli.connection.session import current
from climate.cli.options import dry, dry_run, listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.storage import StorageAllocation, StoragePool

PATH = "/storage-pools"
COLUMNS = ("id", "name", "storage_class", "capacity_gb", "closed", "backend")


@click.group("storage")
def group() -> None:
    """Storage pools that can be reserved, and their allocations."""


@group.command("create")
@click.argument("name")
@click.option("--class", "storage_class", required=True, help="Class that leases ask for, like ssd.")
@click.option("--backend", default="local", show_default=True, help="Name of the volumes' backend in the cloud.")
@click.option("--capacity", "capacity_gb", type=click.IntRange(1), required=True, metavar="GB", help="Its size in GB.")
@dry_run
@output_options
def create(dry_run: bool, **body: str | int) -> None:
    """Register a backend as a storage pool."""
    session = current()
    answer = session.client.json("reservation", "POST", PATH, json=body, params=dry(dry_run))
    session.show(answer.get("storage_pool", answer))


@group.command("list")
@listed
def list_() -> None:
    """List storage pools that can be reserved."""
    session = current()
    session.show_all(session.client.pages("reservation", PATH, "storage_pools"), COLUMNS)


@group.command("show")
@click.argument("pool")
@output_options
def show(pool: str) -> None:
    """Show a storage pool by its id or its name."""
    session = current()
    session.show(_one(session.client, pool))


@group.command("set")
@click.argument("pool")
@click.option("--name", help="Another name.")
@click.option("--capacity", "capacity_gb", type=click.IntRange(1), metavar="GB", help="New size in GB.")
@click.option("--closed/--open", default=None, help="Refuse new allocations of it.")
@dry_run
@output_options
def set_(pool: str, dry_run: bool, **given: str | int | None) -> None:
    """Update a storage pool."""
    session = current()
    body = {key: value for key, value in given.items() if value is not None}
    if not body:
        raise click.UsageError("give --name, --capacity, --closed or --open")
    path = f"{PATH}/{_id(session.client, pool)}"
    session.show(session.client.json("reservation", "PUT", path, json=body, params=dry(dry_run))["storage_pool"])


@group.command("delete")
@click.argument("pools", nargs=-1, required=True, metavar="POOL...")
@dry_run
def delete(pools: tuple[str, ...], dry_run: bool) -> None:
    """Delete storage pools from those that can be reserved."""
    session = current()
    for pool_id in [_id(session.client, pool) for pool in pools]:
        session.client.call("reservation", "DELETE", f"{PATH}/{pool_id}", params=dry(dry_run))


@group.command("allocations")
@click.argument("pool", required=False)
@listed
def allocations(pool: str | None) -> None:
    """List the allocations of a storage pool; without POOL, of all of them."""
    session = current()
    client = session.client
    if pool:
        one: StorageAllocation = client.json("reservation", "GET", f"{PATH}/{_id(client, pool)}/allocation")[
            "allocation"
        ]
        rows = [one]
    else:
        rows = client.json("reservation", "GET", f"{PATH}/allocations")["allocations"]
    flat = [{"pool": row["name"], **held} for row in rows for held in row["reservations"]]
    session.show_all(flat, ("pool", "id", "lease_id", "size_gb", "start_date", "end_date", "kept"))


def _one(client: Client, wanted: str) -> "StoragePool":
    if lookup.UUID.fullmatch(wanted):
        found: StoragePool = client.json("reservation", "GET", f"{PATH}/{lookup.part(wanted)}")["storage_pool"]
        return found
    known: Iterable[StoragePool] = client.pages("reservation", PATH, "storage_pools")
    return lookup.only("storage", wanted, known, called="storage pool")


def _id(client: Client, wanted: str) -> str:
    """Return the id of a pool; an id needs no request."""
    return wanted if lookup.UUID.fullmatch(wanted) else str(_one(client, wanted)["id"])
