"""State of the demo, its users, and functions that wait for an expected state."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from climate.cli import lookup
from climate.cli.connection.client import Client
from climate.cli.connection.clouds import entry, find
from climate.cli.dates import read
from climate.cli.demo.screen import Screen
from climate.cli.demo.stack import Stack
from climate.cli.errors import NOT_FOUND, Failure

if TYPE_CHECKING:
    from climate.cli.response_types.hosts import HostAllocation, HostWithGpus
    from climate.cli.response_types.leases import Lease
    from climate.cli.response_types.servers import Server

T = TypeVar("T")

MARK = "climate-demo-"
"""Prefix of the names of everything that the demo creates."""
LOOK_SECONDS = 0.05
REFUSALS = (403, 404, 409)
"""Statuses that refuse a boot; 400 would mean an invalid request."""


class Unseen(Exception):
    """Raised if an expected state did not appear."""


def _no_lease() -> "Lease":
    """Return a lease without keys, in place of one that is not made yet."""
    return cast("Lease", {})


@dataclass
class Play:
    """State of the demo."""

    stack: Stack
    screen: Screen
    admin: Client
    member: Client
    visitor: Client | None = None
    hosts: "dict[str, HostWithGpus]" = field(default_factory=dict)
    """Hosts of the reservation pool by name."""
    flavor: str = ""
    """Flavor that fits only on those hosts."""
    small: str = ""
    image: str = ""
    lease: "Lease" = field(default_factory=_no_lease)
    lent: frozenset[str] = frozenset()
    """Names of the hosts of that lease."""
    server: str = ""
    sleeper: str = ""
    sleeper_lease: "Lease" = field(default_factory=_no_lease)
    storage: "Lease" = field(default_factory=_no_lease)
    """The lease of storage."""
    night: "Lease" = field(default_factory=_no_lease)
    """Lease of the host that is off at first."""
    guest: str = ""
    """Server that outlives that lease."""

    @property
    def reservation(self) -> str:
        return str(self.lease["reservations"][0]["id"])

    def until(self, what: str, look: Callable[[], T], reached: Callable[[T], bool], seconds: float = 30.0) -> T:
        """Return the answer of `look` once `reached` holds; Unseen after `seconds`."""
        began = time.monotonic()
        while not reached(now := look()):
            if time.monotonic() - began > seconds:
                raise Unseen(f"{what}: still {_brief(now)} after {seconds:.0f} s")
            self.screen.waiting(what, _brief(now), time.monotonic() - began)
            time.sleep(LOOK_SECONDS)
        return now

    def lease_now(self, lease_id: str) -> "Lease":
        """Return a lease as its owner sees it."""
        return lookup.lease_by_id(self.member, lease_id)

    def server_now(self, server_id: str, client: Client | None = None) -> "Server | None":
        """Return a server, None if it does not exist."""
        return existing(lambda: lookup.server_by_id(client or self.member, server_id))

    def boot(self, client: Client, name: str, flavor: str, hints: Mapping[str, str]) -> str:
        """Boot a server and return its id."""
        server = {"name": MARK + name, "flavorRef": flavor, "imageRef": self.image, "networks": "auto"}
        body: dict[str, object] = {"server": {**server, "min_count": 1, "max_count": 1}}
        if hints:
            body["OS-SCH-HNT:scheduler_hints"] = dict(hints)
        return str(client.json("compute", "POST", "/servers", json=body)["server"]["id"])

    def active(self, server_id: str) -> "Server":
        """Return a server of the member once it is ACTIVE; Unseen if it is in ERROR."""
        settled = ("ACTIVE", "ERROR")
        seen = self.until("the server", lambda: self.server_now(server_id), lambda now: status(now) in settled)
        server = present(seen)
        require(server["status"] == "ACTIVE", f"it is {server['status']}: {fault(server)}")
        return server

    def refusal(self, client: Client, name: str, hints: Mapping[str, str]) -> str:
        """Return the refusal of a boot of the large flavor, or the fault of the server; Unseen if there is neither."""
        try:
            server_id = self.boot(client, name, self.flavor, hints)
        except Failure as failure:
            if failure.details.get("status") in REFUSALS:
                return f"{failure.details['status']} {failure}"
            raise
        settled = ("ERROR", "ACTIVE", "RESERVED")
        what = "the answer of the scheduler"
        server = self.until(what, lambda: self.server_now(server_id, client), lambda now: status(now) in settled)
        client.call("compute", "DELETE", f"/servers/{server_id}")
        if status(server) != "ERROR":
            raise Unseen(f"server {server_id} became {status(server)}")
        return f"ERROR, {fault(present(server)) or 'no reason given'}"

    def aggregates(self) -> dict[str, frozenset[str]]:
        """Return the aggregates of the cloud."""
        listed = self.admin.json("compute", "GET", "/os-aggregates")["aggregates"]
        return {str(one["name"]): frozenset(one["hosts"]) for one in listed}

    def hosts_of(self, lease_id: str) -> "Sequence[HostAllocation]":
        """Return the hosts of a lease."""
        query = {"lease_id": lease_id}
        listed: list[HostAllocation] = self.admin.json("reservation", "GET", "/os-hosts/allocations", params=query)[
            "allocations"
        ]
        return [one for one in listed if any(held["lease_id"] == lease_id for held in one["reservations"])]


def status(thing: Mapping[str, object] | None) -> str:
    """Return the status of a resource."""
    return "gone" if thing is None else str(thing["status"])


def present(server: "Server | None") -> "Server":
    """Return a server; Unseen if it is gone."""
    if server is None:
        raise Unseen("the server is gone")
    return server


def fault(server: "Server") -> str | None:
    """Return the message of a server's fault, None without a fault."""
    known = server.get("fault")
    return known["message"] if known else None


def existing(look: Callable[[], T]) -> T | None:
    """Return the answer of `look`, None if the server answers 404."""
    try:
        return look()
    except Failure as failure:
        if failure.code == NOT_FOUND:
            return None
        raise


def after(moment: str, now: datetime) -> float:
    """Return the seconds since a time in an answer of the server."""
    return (now - read(moment)).total_seconds()


def require(seen: bool, otherwise: str) -> None:
    """Raise Unseen unless the condition holds."""
    if not seen:
        raise Unseen(otherwise)


@contextmanager
def play_on(stack: Stack, screen: Screen) -> Iterator[Play]:
    """Return the state of a demo with the administrator and a member of project demo."""
    home = Path(stack.environ["CLIMATE_HOME"])
    admin, member = (Client(find(name, stack.environ, home)) for name in ("climate", "climate-demo"))
    play = Play(stack, screen, admin, member)
    try:
        yield play
    finally:
        for client in (admin, member, play.visitor):
            if client is not None:
                client.close()


def person(play: Play, name: str, password: str, project: str) -> Client:
    """Return a client for another user."""
    auth = {"auth_url": play.admin.cloud.auth_url, "username": name, "password": password, "project_name": project}
    return Client(entry({"auth": auth}, name))


def _brief(thing: object) -> str:
    if thing is None or isinstance(thing, Mapping):
        return status(thing) if thing is None or "status" in thing else ", ".join(thing)
    return ", ".join(map(str, thing)) if isinstance(thing, list) else str(thing)[:60]
