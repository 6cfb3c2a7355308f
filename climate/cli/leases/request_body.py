"""Options of reservations, and the request bodies built from them."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TypedDict, TypeVar

import click

from climate.cli.dates import SpanType
from climate.cli.options import RequirementsType, ReservationType

F = TypeVar("F", bound=Callable[..., object])

AFFINITY: Mapping[str, bool | None] = {"together": True, "apart": False, "any": None}
SIZES = ("vcpus", "memory_mb", "disk_gb")
"""Keys of the size of a server."""


def capacity(*, new: bool) -> Callable[[F], F]:
    """Add the options of reservations to a command; a new lease has more of them."""

    def decorate(command: F) -> F:
        for option in reversed((*HOSTS, *ROOM, *ADDRESSES, *STORAGE, *(NEW if new else ()), *ENDS)):
            command = option(command)
        return command

    return decorate


HOSTS = (
    click.option("--hosts", type=click.IntRange(1), help="Exact number of hosts."),
    click.option("--min", "least", type=click.IntRange(1), help="Minimum number of hosts."),
    click.option("--max", "most", type=click.IntRange(1), help="Maximum number of hosts."),
    click.option(
        "--property", "host_columns", type=RequirementsType(), help='Requirements: \'[">=", "$vcpus", "4"]\'.'
    ),
    click.option("--resource", "host_extras", type=RequirementsType(), help="Requirements on extra capabilities."),
)

ROOM = (
    click.option(
        "--servers", type=click.IntRange(1), help="Number of servers to reserve capacity for, on shared hosts."
    ),
    click.option("--vcpus", type=click.IntRange(1), help="VCPUs of each of --servers."),
    click.option("--memory-mb", type=click.IntRange(1), help="Memory of each of --servers, in MB."),
    click.option("--disk-gb", type=click.IntRange(1), help="Disk of each of --servers, in GB."),
    click.option(
        "--affinity",
        type=click.Choice(list(AFFINITY)),
        help="Place --servers on one host, each on another host, or anywhere.",
    ),
)

ADDRESSES = (click.option("--floating-ips", type=click.IntRange(1), help="Number of floating IPs of --network."),)

STORAGE = (click.option("--storage", "size_gb", type=click.IntRange(1), help="GB of storage of --storage-class."),)

WHERE = (
    click.option("--zone", help="Zone of all hosts: this one or a child zone, by its name."),
    click.option("--cell", metavar="NAME|PATH", help="Cell of all hosts, like left or top!left."),
    click.option("--across", is_flag=True, help="Allow hosts of several zones or cells."),
    click.option(
        "--preemptible", is_flag=True, help="Take hosts that nobody was promised, until an ordinary lease needs them."
    ),
)

NEW = (
    *WHERE,
    click.option("--network", help="External network of --floating-ips, by name or id."),
    click.option(
        "--floating-ip",
        "addresses",
        multiple=True,
        metavar="ADDRESS",
        help="Address of one of the floating IPs; repeatable.",
    ),
    click.option("--storage-class", help="Storage class of --storage, like ssd."),
    click.option("--volumes", type=click.IntRange(1), help="Number of volumes of equal size for --storage."),
    click.option("--flavor", metavar="ID", help="Flavor of each of --servers instead of a size, by id or name."),
    click.option(
        "--server", metavar="ID", help="Existing server with status RESERVED, which starts at the start of the lease."
    ),
    click.option(
        "--reservation",
        "raw",
        type=ReservationType(),
        multiple=True,
        metavar="JSON|KEY=VALUE,…",
        help="Reservation as it is sent; repeatable.",
    ),
)

ENDS = (
    click.option("--on-end", metavar="WHAT", help=(
        "Of hosts: terminate, recycle or release their servers. Of --server: create_image, suspend, delete. "
        "Of --storage: delete or keep the volumes."
    )),
    click.option("--grace", type=SpanType(), help="Grace period of servers after the end: 10m; not with --server."),
)  # fmt: skip


class ChangeOptions(TypedDict):
    """Options of `capacity` for a change: of hosts, of room for servers, and of the end."""

    hosts: int | None
    least: int | None
    most: int | None
    host_columns: str | None
    host_extras: str | None
    servers: int | None
    vcpus: int | None
    memory_mb: int | None
    disk_gb: int | None
    affinity: str | None
    floating_ips: int | None
    size_gb: int | None
    on_end: str | None
    grace: timedelta | None


class CapacityOptions(ChangeOptions):
    """Options of `capacity` for a new lease."""

    zone: str | None
    cell: str | None
    across: bool
    preemptible: bool
    network: str | None
    addresses: tuple[str, ...]
    storage_class: str | None
    volumes: int | None
    flavor: str | None
    server: str | None
    raw: tuple[dict[str, object], ...]


class HostKeys(TypedDict, total=False):
    """Keys of a reservation of hosts."""

    min: int
    max: int
    hypervisor_properties: str
    resource_properties: str


def new_reservations(options: CapacityOptions) -> list[dict[str, object]]:
    """Return the reservations of a new lease; without options the lease is empty."""
    shared = _room(options)
    hosts: HostKeys = {} if shared else _hosts(options)
    where = _where(options, hosts)
    made: list[dict[str, object]] = [
        *([_of_hosts(hosts) | where] if hosts else []),
        *([_of_room(options, shared)] if shared or options["flavor"] else []),
        *_of_server(options),
        *_of_addresses(options),
        *_of_storage(options),
    ]
    ends = _ends(options)
    if ends and len(made) != 1:
        kinds = "--hosts, --servers, --server, --floating-ips, --storage"
        raise click.UsageError(f"--on-end and --grace need one of {kinds}")
    return [*options["raw"], *({**one, **ends} for one in made)]


def reservation_change(options: ChangeOptions) -> dict[str, object]:
    """Return the keys of a reservation whose options were given."""
    addresses = {"amount": options["floating_ips"]} if options["floating_ips"] else {}
    storage = {"size_gb": options["size_gb"]} if options["size_gb"] else {}
    others = _room(options) or _hosts(options)
    if sum(map(bool, (addresses, storage, others))) > 1:
        raise click.UsageError(
            "--floating-ips, --storage, and hosts or --servers belong to different reservations; change one at a time"
        )
    return {**addresses, **storage, **others, **_ends(options)}


def _of_server(options: CapacityOptions) -> list[dict[str, object]]:
    server = options["server"]
    return [{"resource_type": "virtual:instance", "resource_id": server}] if server else []


def _of_addresses(options: CapacityOptions) -> list[dict[str, object]]:
    count, network, required = options["floating_ips"], options["network"], list(options["addresses"])
    if not (count or network or required):
        return []
    if not network:
        raise click.UsageError("--floating-ips needs --network")
    keys = {"network_id": network, "amount": count or len(required) or 1, "required_floatingips": required}
    return [{"resource_type": "virtual:floatingip", **keys}]


def _of_storage(options: CapacityOptions) -> list[dict[str, object]]:
    size, storage_class, volumes = options["size_gb"], options["storage_class"], options["volumes"]
    if not (size or storage_class or volumes):
        return []
    if not size or not storage_class:
        raise click.UsageError("give both --storage (GB) and --storage-class")
    keys = {"size_gb": size, "storage_class": storage_class, **({"volumes": volumes} if volumes else {})}
    return [{"resource_type": "storage:pool", **keys}]


def _of_hosts(keys: HostKeys) -> dict[str, object]:
    least = keys.get("min", 1)
    defaults = {"min": least, "max": max(least, 1), "hypervisor_properties": "", "resource_properties": ""}
    return {"resource_type": "physical:host", **defaults, **keys}


def _of_room(options: CapacityOptions, keys: Mapping[str, object]) -> dict[str, object]:
    missing = [f"--{name.replace('_', '-')}" for name in SIZES if name not in keys]
    if "amount" not in keys:
        raise click.UsageError("give --servers with their number")
    if not options["flavor"]:
        if missing:
            raise click.UsageError(f"the size of the servers is missing: give {', '.join(missing)}, or --flavor")
        return {"resource_type": "virtual:instance", **keys}
    if set(keys) != {"amount"}:
        raise click.UsageError("--flavor cannot be used with a size; give one of them")
    return {"resource_type": "flavor:instance", "flavor_id": options["flavor"], **keys}


def _room(options: ChangeOptions) -> dict[str, object]:
    """Return the keys of a capacity reservation; none if none of its options was given."""
    numbers = {
        "amount": options["servers"],
        "vcpus": options["vcpus"],
        "memory_mb": options["memory_mb"],
        "disk_gb": options["disk_gb"],
    }
    keys: dict[str, object] = {key: value for key, value in numbers.items() if value is not None}
    if options["affinity"] is not None:
        keys["affinity"] = AFFINITY[options["affinity"]]
    of_hosts = (options["hosts"], options["least"], options["most"], options["host_columns"])
    if keys and any(value is not None for value in of_hosts):
        raise click.UsageError("give hosts or --servers; use --reservation for several reservations of one lease")
    extras = options["host_extras"]
    return {**keys, "resource_properties": extras} if keys and extras is not None else keys


def _hosts(options: ChangeOptions) -> HostKeys:
    hosts, least, most = options["hosts"], options["least"], options["most"]
    if hosts is not None and (least is not None or most is not None):
        raise click.UsageError("give --hosts, or --min and --max")
    if least is not None and most is not None and most < least:
        raise click.UsageError("--max must be equal to or larger than --min")
    keys: HostKeys = {}
    if (fewest := hosts or least) is not None:
        keys["min"] = fewest
    if (greatest := hosts or most) is not None:
        keys["max"] = greatest
    if options["host_columns"] is not None:
        keys["hypervisor_properties"] = options["host_columns"]
    if options["host_extras"] is not None:
        keys["resource_properties"] = options["host_extras"]
    return keys


def _where(options: CapacityOptions, hosts: Mapping[str, object]) -> dict[str, object]:
    """Return the requirements on the location of hosts, and whether they may be taken again."""
    places = {
        "zone": options["zone"],
        "cell": options["cell"],
        "across": options["across"],
        "preemptible": options["preemptible"],
    }
    keys: dict[str, object] = {key: value for key, value in places.items() if value}
    if keys and not hosts:
        raise click.UsageError("--zone, --cell, --across and --preemptible need --hosts, or --min and --max")
    if options["zone"] and options["cell"]:
        raise click.UsageError("give --zone or --cell, not both")
    return keys


def _ends(options: ChangeOptions) -> dict[str, object]:
    grace = options["grace"]
    keys = {"on_end": options["on_end"], "grace_period": None if grace is None else int(grace.total_seconds())}
    return {key: value for key, value in keys.items() if value is not None}
