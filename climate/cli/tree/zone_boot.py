"""climate zone boot: builds over the tree of zones, and their results."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.options import PairType, WaitOptions, listed, output_options, seconds, waited
from climate.cli.wait import Goal, existing, wait

if TYPE_CHECKING:
    from climate.cli.response_types.servers import Booted
    from climate.cli.response_types.zones import ZoneBuild

LISTED = ("reservation_id", "state", "requested", "created_at", "fault")


class BootOptions(WaitOptions):
    """Options of `boot`."""

    flavor: str
    image: str
    count: int
    reservation_id: str | None
    metadata: tuple[tuple[str, str], ...]
    hint: tuple[tuple[str, str], ...]


@click.command("boot")
@click.argument("name")
@click.option("--flavor", required=True, help="Flavor, by name or id; child zones search for the name.")
@click.option("--image", required=True, help="Image, by name or id; child zones search for the name.")
@click.option("--count", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of servers.")
@click.option("--reservation-id", metavar="ID", help="Reservation id of the build; by default a new one.")
@click.option("--metadata", type=PairType(), multiple=True, metavar="KEY=VALUE", help="Repeatable.")
@click.option("--hint", type=PairType(), multiple=True, metavar="KEY=VALUE", help="A scheduler hint; repeatable.")
@waited
@output_options
def boot(name: str, **given: Unpack[BootOptions]) -> None:
    """Boot servers in this zone and its child zones, where they fit best (administrator)."""
    session = current()
    made: Booted = session.client.json("compute", "POST", "/zones/boot", json=_body(session, name, given))
    reservation = made["reservation_id"]
    session.show(
        _wait(session, reservation, seconds(given["timeout"])) if given["wait"] else _read(session, reservation)
    )


@click.command("builds")
@listed
def builds() -> None:
    """List builds over zones."""
    session = current()
    session.show_all(session.client.json("compute", "GET", "/os-zone-builds")["builds"], LISTED)


@click.command("build")
@click.argument("reservation_id")
@output_options
def build(reservation_id: str) -> None:
    """Show how many servers of a build were placed, in which zones, and the reason if some were not."""
    session = current()
    session.show(_read(session, reservation_id))


COMMANDS = (boot, builds, build)


def _body(session: Session, name: str, options: BootOptions) -> dict[str, object]:
    server: dict[str, object] = {
        "name": name,
        "flavorRef": lookup.flavor_id(session.client, options["flavor"]),
        "imageRef": lookup.image_id(session.client, options["image"]),
        "networks": "auto",
        "num_instances": options["count"],
    }
    server |= {"metadata": dict(options["metadata"])} if options["metadata"] else {}
    server |= {"reservation_id": options["reservation_id"]} if options["reservation_id"] else {}
    return {"server": server, **({"OS-SCH-HNT:scheduler_hints": dict(options["hint"])} if options["hint"] else {})}


def _read(session: Session, reservation_id: str) -> Mapping[str, object]:
    """Return a build, with the zones of its servers in one line."""
    shown: ZoneBuild = session.client.json("compute", "GET", f"/os-zone-builds/{reservation_id}")["build"]
    if session.form in ("json", "yaml"):
        return shown
    places = [server["zone"] or "this zone" for server in shown["servers"]]
    counts = ", ".join(f"{place}: {places.count(place)}" for place in dict.fromkeys(places))
    return {
        "reservation_id": shown["reservation_id"],
        "state": shown["state"],
        "requested": shown["requested"],
        "placed": shown["placed"],
        "unknown": shown["unknown"],
        "fault": shown["fault"],
        "servers": counts,
    }


def _wait(session: Session, reservation_id: str, timeout: float) -> Mapping[str, object]:
    goal = Goal(
        f"build {reservation_id}",
        lambda: _read(session, reservation_id),
        lambda build: build is not None and build["state"] == "done",
    )
    return existing(goal, wait(session, goal, timeout))
