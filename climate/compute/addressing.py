"""Addresses that a server is given and loses while it is there: its node's compute service connects it anew."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from climate.compute import asking
from climate.compute.asking import Asked, By
from climate.compute.context import Compute
from climate.compute.errors import NotFound
from climate.compute.network import fixed, floating
from climate.compute.network.model import Vif
from climate.compute.server import REWIRE, SHELVED_OFFLOADED, Server
from climate.compute.store import addresses, network_hosts, projects, wishes
from climate.compute.store import floating as floating_rows
from climate.connections import reading

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Who:
    """Who changes which server: of the project, or with None an administrator."""

    server_id: str
    project_id: str | None
    by: By


@dataclass(frozen=True, slots=True)
class Port:
    """An interface of a server, as it is shown."""

    id: str
    mac: str
    network_id: str
    subnet_id: str
    addresses: tuple[str, ...]


def port_of(vif: Vif) -> Port:
    """Return an interface as it is shown."""
    return Port(vif.id, vif.mac, vif.network.id, vif.network.subnet_id, tuple(map(str, vif.addresses)))


def add(compute: Compute, who: Who, network_id: str, address: str | None = None) -> Vif:
    """Give a server one more address of a network, any or this one; the interface that has it.

    Raises NotFound, Conflict, Busy, BadRequest for a network that is not its
    project's to use, NoMoreAddresses, QuotaExceeded.
    """
    owner = asking.get(compute, who.server_id, who.project_id).project_id

    def change(conn: Connection, server: Server) -> Vif:
        fixed.add(conn, server.id, server.project_id, network_id, compute.now(conn), address=address)
        return next(vif for vif in addresses.vifs_of(conn, [server.id]) if vif.network.id == network_id)

    return _change(compute, who, change, counted=owner)


def remove(compute: Compute, who: Who, address: str) -> None:
    """Take one address from a server, with its interface when that has no other.

    Raises NotFound, Conflict while a floating address stands for it, Busy.
    """
    _change(compute, who, lambda conn, server: fixed.remove(conn, server.id, address, compute.now(conn)))


def unplug(compute: Compute, who: Who, vif_id: str) -> None:
    """Take an interface from a server, with all of its addresses; floating ones stand for none then.

    Raises NotFound, Conflict, Busy.
    """

    def change(conn: Connection, server: Server) -> None:
        there = next((vif for vif in addresses.vifs_of(conn, [server.id]) if vif.id == vif_id), None)
        if there is None:
            raise NotFound(f"Instance {server.id} has no interface {vif_id}")
        now = compute.now(conn)
        # Locked before the floating ones, as everybody does who lets one stand for another.
        floating.fixed(conn, server.project_id, port_id=vif_id)
        network_hosts.call(conn, floating_rows.let_go(conn, server.id, now, vif_id))
        for address in there.addresses:
            fixed.remove(conn, server.id, str(address), now)

    _change(compute, who, change)


def interfaces(compute: Compute, server_id: str, project_id: str | None = None) -> list[Vif]:
    """The interfaces of a server, in their order.  NotFound as `asking.get`."""
    asking.get(compute, server_id, project_id)
    with reading(compute.engine) as conn:
        return addresses.vifs_of(conn, [server_id])


def _change(compute: Compute, who: Who, change: Callable[[Connection, Server], T], *, counted: str | None = None) -> T:
    """Change the addresses of a server that is at rest, and have it connected anew where it is on a node.

    `counted`: the project whose limits count; they are locked before the server, as by all who count.
    """
    with compute.engine.begin() as conn:
        if counted is not None:
            projects.lock_limits(conn, counted)
        server = asking.locked(conn, who.server_id, who.project_id)
        asking.check_lock(server, who.project_id)
        away = server.status == SHELVED_OFFLOADED and not server.busy
        if not away:
            asking.idle(server, REWIRE)
        made = change(conn, server)
        if away:
            wishes.note(conn, server.id, "changeAddresses", who.by, compute.now(conn), done=True)
        else:
            asking.record(conn, compute, server, Asked(REWIRE), who.by)
    compute.cast(server.service_host or "", server.id)
    return made
