"""What is reserved: the options for it, and the reservations in the body that they stand for."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from climate.cli.options import JsonType, RequirementsType

F = TypeVar("F", bound=Callable[..., Any])


def capacity(*, new: bool) -> Callable[[F], F]:
    """The options that say what is reserved; for a new lease there are more of them."""

    def decorate(command: F) -> F:
        for option in reversed((*COMMON, *(NEW if new else ()))):
            command = option(command)
        return command

    return decorate


COMMON = (
    click.option("--hosts", type=click.IntRange(1), help="Exactly so many hosts."),
    click.option("--min", "least", type=click.IntRange(1), help="At least so many hosts."),
    click.option("--max", "most", type=click.IntRange(1), help="At most so many hosts."),
    click.option(
        "--property", "host_columns", type=RequirementsType(), help='Requirements: \'[">=", "$vcpus", "4"]\'.'
    ),
    click.option("--resource", "host_extras", type=RequirementsType(), help="The same, on extra capabilities."),
)

NEW = (
    click.option("--server", metavar="ID", help="Reserve a server that is RESERVED: it wakes at the start."),
    click.option("--on-end", metavar="ACTIONS", help="At the end of --server: create_image, suspend, delete."),
    click.option(
        "--reservation",
        "raw",
        type=JsonType(dict, wanted="object"),
        multiple=True,
        metavar="JSON",
        help="As it is sent.",
    ),
)


def new_reservations(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The reservations of a new lease; none of the options is an empty lease."""
    reservations = list(given["raw"])
    hosts = reservation_change(given)
    if hosts:
        least = hosts.get("min", 1)
        defaults = {"min": least, "max": max(least, 1), "hypervisor_properties": "", "resource_properties": ""}
        reservations.append({"resource_type": "physical:host", **defaults, **hosts})
    if given["server"]:
        on_end = {"on_end": given["on_end"]} if given["on_end"] else {}
        reservations.append({"resource_type": "virtual:instance", "resource_id": given["server"], **on_end})
    elif given["on_end"]:
        raise click.UsageError("--on-end goes with --server")
    return reservations


def reservation_change(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a reservation of hosts that were given."""
    hosts, least, most = given["hosts"], given["least"], given["most"]
    if hosts is not None and (least is not None or most is not None):
        raise click.UsageError("give --hosts, or --min and --max")
    if least is not None and most is not None and most < least:
        raise click.UsageError("--max must be equal to or larger than --min")
    keys = {
        "min": hosts or least,
        "max": hosts or most,
        "hypervisor_properties": given["host_columns"],
        "resource_properties": given["host_extras"],
    }
    return {key: value for key, value in keys.items() if value is not None}
