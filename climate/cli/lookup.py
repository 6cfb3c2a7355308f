"""Lookup of resources by name or id: an id wins, a name must be unique."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from climate.cli.errors import CONFLICT, NOT_FOUND, Failure

if TYPE_CHECKING:
    from climate.cli.connection.client import Client
    from climate.cli.response_types.availability import Series
    from climate.cli.response_types.hosts import Host
    from climate.cli.response_types.leases import HeldReservation, Lease
    from climate.cli.response_types.servers import ComputeService, Named, Server

T = TypeVar("T", bound=Mapping[str, object])
"""A resource as the server answered it."""

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

SHORT = re.compile(r"[0-9a-fA-F]{4,8}|[0-9a-fA-F]{8}-[0-9a-fA-F-]*")
"""Beginnings of ids that are accepted: four characters and more."""


def part(text: str) -> str:
    """Return `text` quoted as one part of a path."""
    return quote(text, safe="")


def only(kind: str, wanted: str, things: Iterable[T], name: str = "name", called: str | None = None) -> T:
    """Return the resource whose id, or else whose name, is `wanted`; `called` names its kind if its commands do not."""
    things = list(things)
    noun = called or kind
    listed = _with_id(things, wanted) or [thing for thing in things if thing.get(name) == wanted]
    chosen = listed or [thing for thing in things if _begins(str(thing.get("id")), wanted)]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise Failure(f"no {noun} {wanted!r}", NOT_FOUND, f"`climate {kind} list` shows what there is")
    number = f"{len(chosen)} {noun.removesuffix('s')}s"
    raise _ambiguous(f"{number} are called {wanted!r}" if listed else f"the ids of {number} begin so", chosen)


def _ambiguous(said: str, chosen: Sequence[Mapping[str, object]]) -> Failure:
    """Return the failure of a name or a beginning of an id that several resources have."""
    ids = [str(thing["id"]) for thing in chosen]
    return Failure(f"{said}: {', '.join(ids)}", CONFLICT, "give the id", details={"ids": ids})


def _with_id(things: Sequence[T], wanted: str) -> list[T]:
    return [thing for thing in things if str(thing.get("id")) == wanted]


def whole_id(
    kind: str, wanted: str, things: Callable[[], Iterable[Mapping[str, object]]], called: str | None = None
) -> str:
    """Return the id among `things` that begins so; a whole id needs no request, and the server refuses other texts."""
    if not SHORT.fullmatch(wanted) or UUID.fullmatch(wanted):
        return wanted
    return str(only(kind, wanted, things(), called=called)["id"])


def reservation_id(client: "Client", wanted: str) -> str:
    """Return the id of a reservation by its beginning."""

    def held() -> "Iterator[HeldReservation]":
        leases: Iterable[Lease] = client.pages("reservation", "/leases", "leases")
        for lease in leases:
            yield from lease["reservations"]

    return whole_id("lease", wanted, held, "reservation")


def _begins(whole: str, wanted: str) -> bool:
    """Return whether a text is the beginning of an id, as tables show it."""
    return bool(SHORT.fullmatch(wanted) and UUID.fullmatch(whole) and whole.startswith(wanted.lower()))


def lease(client: "Client", wanted: str) -> "Lease":
    """Return a lease by its id or name."""
    if UUID.fullmatch(wanted):
        return lease_by_id(client, wanted)
    called: list[Lease] = list(client.pages("reservation", "/leases", "leases", {"name": wanted}))
    if not _named(called, wanted) and SHORT.fullmatch(wanted):
        called = list(client.pages("reservation", "/leases", "leases"))
    return only("lease", wanted, called)


def _named(things: Iterable[Mapping[str, object]], wanted: str) -> bool:
    return any(thing.get("name") == wanted for thing in things)


def lease_by_id(client: "Client", lease_id: str) -> "Lease":
    """Return a lease by its id."""
    try:
        found: Lease = client.json("reservation", "GET", f"/leases/{part(lease_id)}")["lease"]
    except Failure as failure:
        if failure.code == NOT_FOUND:
            failure.message = f"no lease {lease_id!r}"
            failure.hint = "`climate lease list` shows what there is, `climate lease history ID` a deleted lease too"
        raise
    return found


def lease_id(client: "Client", wanted: str) -> str:
    """Return the id of a lease; an id needs no request."""
    return wanted if UUID.fullmatch(wanted) else str(lease(client, wanted)["id"])


def series_id(client: "Client", wanted: str) -> str:
    """Return the id of a series by its id or name; an id needs no request."""
    if UUID.fullmatch(wanted):
        return wanted
    called: list[Series] = list(client.pages("reservation", "/series", "series", {"name": wanted}))
    if not _named(called, wanted) and SHORT.fullmatch(wanted):
        called = list(client.pages("reservation", "/series", "series"))
    return str(only("series", wanted, called)["id"])


def host(client: "Client", wanted: str) -> "Host":
    """Return a host by its number or its hypervisor host name."""
    if wanted.isdecimal():
        found: Host = client.json("reservation", "GET", f"/os-hosts/{wanted}")["host"]
        return found
    listed: Iterable[Host] = client.pages("reservation", "/os-hosts", "hosts")
    return only("host", wanted, listed, "hypervisor_hostname")


def host_id(client: "Client", wanted: str) -> str:
    """Return the number of a host; a number needs no request."""
    return wanted if wanted.isdecimal() else str(host(client, wanted)["id"])


def server(client: "Client", wanted: str, everywhere: bool = False) -> "Server":
    """Return a server by its id or its name."""
    if UUID.fullmatch(wanted):
        return server_by_id(client, wanted)
    scope = {"all_tenants": "True"} if everywhere else {}
    named = {"name": f"^{re.escape(wanted)}$", **scope}
    called: list[Server] = list(client.pages("compute", "/servers/detail", "servers", named))
    if not _named(called, wanted) and SHORT.fullmatch(wanted):
        called = list(client.pages("compute", "/servers/detail", "servers", scope))
    return only("server", wanted, called)


def server_by_id(client: "Client", server_id: str) -> "Server":
    """Return a server by its id."""
    found: Server = client.json("compute", "GET", f"/servers/{part(server_id)}")["server"]
    return found


def service(client: "Client", wanted: str) -> "ComputeService":
    """Return a compute service by its id or its host."""
    listed: list[ComputeService] = client.json("compute", "GET", "/os-services")["services"]
    return only("service", wanted, listed, "host")


def flavor_id(client: "Client", wanted: str) -> str:
    """Return the id of a flavor."""
    listed: Iterable[Named] = client.pages("compute", "/flavors/detail", "flavors", {"is_public": "None"})
    return str(only("flavor", wanted, listed)["id"])


def image_id(client: "Client", wanted: str) -> str:
    """Return the id of an image."""
    listed: Iterable[Named] = client.pages("image", "/v2/images", "images")
    return str(only("image", wanted, listed)["id"])


def network_id(client: "Client", wanted: str) -> str:
    """Return the id of a network."""
    listed: list[Named] = client.json("network", "GET", "/v2.0/networks")["networks"]
    return str(only("network", wanted, listed)["id"])
