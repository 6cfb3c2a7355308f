"""Interfaces of a server: attach and detach addresses; the node's compute service updates the guest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import NotFound
from climate.compute.models.server import REWIRE, SHELVED_OFFLOADED, Server
from climate.compute.network import fixed_ips, floating_ips, ports
from climate.compute.network.allocation import address_requests
from climate.compute.network.allocation.allocator import ADD
from climate.compute.network.allocation.grants import AddressRequest, Granted
from climate.compute.network.models import Vif
from climate.compute.servers import actions
from climate.compute.servers.actions import By, TaskRequest
from climate.compute.store.networks import fixed_ips as addresses
from climate.compute.store.networks import floating_ips as floating_rows
from climate.compute.store.networks import network_hosts
from climate.compute.store.networks import ports as port_rows
from climate.compute.store.projects import quotas
from climate.compute.store.servers import tasks
from climate.database.connections import reading

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester of a change and its server; project None is an administrator."""

    server_id: str
    project_id: str | None
    by: By


@dataclass(frozen=True, slots=True)
class Port:
    """An interface of a server, as the API shows it."""

    id: str
    mac: str
    network_id: str
    subnet_id: str
    addresses: tuple[str, ...]


def port_of(vif: Vif) -> Port:
    """Return an interface as the API shows it."""
    return Port(vif.id, vif.mac, vif.network.id, vif.network.subnet_id, tuple(map(str, vif.addresses)))


def add(compute: Compute, requester: Requester, network_id: str, address: str | None = None) -> Vif:
    """Attach an address of a network, the given one or any, to a server; return the interface that has it.

    Raises NotFound, Conflict, Busy, BadRequest for a network that its project may not use, NoMoreAddresses,
    QuotaExceeded, NetworkUnavailable.
    """
    owner = actions.get(compute, requester.server_id, requester.project_id).project_id
    granted = _granted(compute, requester, network_id, address)

    def attach(conn: Connection, server: Server) -> Vif:
        if granted is None:
            fixed_ips.add(conn, server.id, server.project_id, network_id, compute.now(conn), address=address)
        else:
            fixed_ips.add_granted(conn, server.id, server.project_id, granted, compute.now(conn))
        there = [vif for vif in addresses.vifs_of(conn, [server.id]) if vif.network.id == network_id and not vif.kept]
        return there[0]

    try:
        return change(compute, requester, attach, counted=owner)
    except BaseException:
        if granted is not None:
            address_requests.cancel(compute, [granted.asked])
        raise


def _granted(compute: Compute, requester: Requester, network_id: str, address: str | None) -> Granted | None:
    """Return the address that the host of a network grants; None if addresses are allocated in the database."""
    if compute.network_queue is None:
        return None
    with compute.engine.begin() as conn:
        server = actions.locked(conn, requester.server_id, requester.project_id)
        actions.check_lock(server, requester.project_id)
        fixed_ips.check_quota(conn, server.project_id, 1)
        networks = fixed_ips.chosen(conn, compute.network, server.project_id, [network_id])
        macs = {vif.network.id: vif.mac for vif in addresses.vifs_of(conn, [server.id])}
        exact = {} if address is None else {network_id: address}
        wanted = AddressRequest(server.project_id, (server.id,), networks, exact, macs=macs)
        prepared = address_requests.prepare(conn, compute, wanted)
    return address_requests.request_addresses(compute, compute.network_queue, prepared, ADD)[0]


def remove(compute: Compute, requester: Requester, address: str) -> None:
    """Remove one address from a server, with its interface if that has no other.

    Raises NotFound, Conflict while a floating address is associated with it, Busy.
    """

    def release(conn: Connection, server: Server) -> None:
        fixed_ips.remove(conn, server.id, address, compute.now(conn), compute.network_notifier)

    change(compute, requester, release)


def plug_port(compute: Compute, requester: Requester, port_id: str) -> Vif:
    """Attach a port that the project of a server created; return the interface.

    Raises NotFound, Conflict if the port is in use, Busy, BadRequest if it has no address or its network is not served.
    """

    def plug(conn: Connection, server: Server) -> Vif:
        place = fixed_ips.next_place(addresses.vifs_of(conn, [server.id]))
        ports.bind(conn, port_id, (server.id, server.project_id), place, compute.now(conn))
        return next(vif for vif in addresses.vifs_of(conn, [server.id]) if vif.id == port_id)

    return change(compute, requester, plug)


def unplug(compute: Compute, requester: Requester, vif_id: str) -> None:
    """Detach an interface with all of its addresses from a server; floating ones are disassociated.

    A port that a project created keeps its addresses. Raises NotFound, Conflict, Busy.
    """

    def detach(conn: Connection, server: Server) -> None:
        there = next((vif for vif in addresses.vifs_of(conn, [server.id]) if vif.id == vif_id), None)
        if there is None:
            raise NotFound(f"Instance {server.id} has no interface {vif_id}")
        now = compute.now(conn)
        if there.kept:
            network_hosts.call(conn, port_rows.unbind(conn, server.id, now, vif_id))
            return
        # Fixed addresses are locked before floating ones, in the order of every association.
        floating_ips.fixed(conn, server.project_id, port_id=vif_id)
        network_hosts.call(conn, floating_rows.let_go(conn, server.id, now, vif_id))
        for address in there.addresses:
            fixed_ips.remove(conn, server.id, str(address), now, compute.network_notifier, vif_id=vif_id)

    change(compute, requester, detach)


def interfaces(compute: Compute, server_id: str, project_id: str | None = None) -> list[Vif]:
    """Return the interfaces of a server in order. NotFound as `actions.get`."""
    actions.get(compute, server_id, project_id)
    with reading(compute.engine) as conn:
        return addresses.vifs_of(conn, [server_id])


def change(
    compute: Compute, requester: Requester, apply: Callable[[Connection, Server], T], *, counted: str | None = None
) -> T:
    """Change the addresses of an idle server, and request the update of its guest if it is on a node.

    `counted`: the project whose limits count; they are locked before the server, as everywhere.
    """
    with compute.engine.begin() as conn:
        if counted is not None:
            quotas.lock_limits(conn, counted)
        server = actions.locked(conn, requester.server_id, requester.project_id)
        actions.check_lock(server, requester.project_id)
        away = server.status == SHELVED_OFFLOADED and not server.busy
        if not away:
            actions.idle(server, REWIRE)
        made = apply(conn, server)
        if away:
            tasks.note(conn, server.id, "changeAddresses", requester.by, compute.now(conn), done=True)
        else:
            actions.record(conn, compute, server, TaskRequest(REWIRE), requester.by)
    compute.cast(server.service_host or "", server.id)
    return made
