"""Creation of servers: quota, nodes, addresses and rows in one transaction, all or nothing."""

import secrets
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, NoMoreAddresses, NotFound, NoValidHost
from climate.compute.models.request import BootRequest, Spec, drafts, spec_of, zoned
from climate.compute.models.server import BUILD, RESERVE, RESERVED, SPAWN, Server
from climate.compute.network import fixed_ips, floating_ips, ports
from climate.compute.network.allocation import address_requests
from climate.compute.network.allocation.grants import AddressRequest, Granted
from climate.compute.network.managers import MANAGERS
from climate.compute.network.models import Network
from climate.compute.placement import claims, decisions, request_data, server_groups
from climate.compute.placement.claims import Attempt
from climate.compute.placement.decisions import Decision
from climate.compute.projects import quota_check
from climate.compute.reservations import shared_capacity
from climate.compute.scheduler import multi
from climate.compute.scheduler.placement_plan import Pick, Trail
from climate.compute.store.cells import messages
from climate.compute.store.networks import ports as port_rows
from climate.compute.store.servers import inserts

OFFER_GONE = "No valid host was found. The place that was offered for the server is gone."

_ALPHABET = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class Offered:
    """Servers of a build over zones: created only on the nodes that were offered."""

    build_id: str
    """The reservation id that the servers of all zones share."""
    launch_indexes: tuple[int, ...]
    """Numbers of the servers in the build."""
    names: tuple[str, ...]
    destination: str | None
    """`host:node` of the offer; None: any node of this zone."""
    write: Callable[[Connection, Sequence[Server]], None]
    """Writes related rows in the same transaction; an error from it rolls the servers back."""
    counted: bool = False
    """The quota counts these servers already."""

    def first(self, count: int) -> "Offered":
        """Return the first `count` of the servers."""
        return replace(self, launch_indexes=self.launch_indexes[:count], names=self.names[:count])


@dataclass(frozen=True, slots=True)
class _Build:
    """A request for servers with the ids assigned to it."""

    request: BootRequest
    id: str
    task: str
    server_ids: tuple[str, ...] = ()
    """Ids assigned before; empty: new ids are generated."""
    offered: Offered | None = None
    strict: bool = False
    """Store no servers in ERROR if no node is found."""
    also: str = ""
    """Text appended to the fault of the servers."""
    from_cell: bool = False
    """Another cell has checked the quota, and may send the build twice."""
    granted: tuple[Granted, ...] | None = None
    """Addresses that network hosts have granted to these servers; None: allocated in the database."""

    def ids(self, count: int) -> tuple[str, ...]:
        return self.server_ids[:count] if self.server_ids else tuple(str(uuid4()) for _ in range(count))

    def drafts(self, ids: Sequence[str], now: datetime) -> list[Server]:
        """Return rows for servers that are on no node yet."""
        made = drafts(self.request, self.id, ids, now)
        if self.offered is None:
            return made
        given = zip(made, self.offered.names, self.offered.launch_indexes, strict=False)
        return [replace(one, name=name, launch_index=index) for one, name, index in given]


def boot(
    compute: Compute, request: BootRequest, *, build_id: str | None = None, strict: bool = False, also: str = ""
) -> list[Server]:
    """Boot `count` servers, or as many as possible down to `least`, in one transaction.

    If no node is found, the servers are stored in ERROR with the reason as their fault, followed by `also`. With
    `strict`, nothing is stored and NoValidHost is raised. Raises QuotaExceeded, NoMoreAddresses, BadRequest.
    """
    return _settle(compute, _Build(request, build_id or new_build_id(compute), SPAWN, strict=strict, also=also))


def boot_from_cell(compute: Compute, request: BootRequest, build_id: str, server_ids: tuple[str, ...]) -> list[Server]:
    """Boot the servers of a build from another cell, as `boot` does; return none if it was booted before."""
    return _settle(compute, _Build(request, build_id, SPAWN, server_ids, from_cell=True))


def reserve(
    compute: Compute, request: BootRequest, server_id: str, offered: Offered | None = None, build_id: str = ""
) -> Server:
    """Store one server as RESERVED: it has capacity on a node and addresses, and is prepared there until it is woken.

    `build_id`: of the build that another cell sends; empty: a new one. Raises NoValidHost, NoMoreAddresses,
    QuotaExceeded, BadRequest; then nothing is stored.
    """
    shared_capacity.check_ordinary(request.flavor)
    known = offered.build_id if offered else build_id or new_build_id(compute)
    return _settle(compute, _Build(replace(request, count=1, least=1), known, RESERVE, (server_id,), offered))[0]


def place(compute: Compute, request: BootRequest, offered: Offered) -> list[Server]:
    """Boot as many of the servers of an offer, in order, as the offered nodes have capacity for.

    Raises NoValidHost, NoMoreAddresses, QuotaExceeded, BadRequest; then nothing is stored.
    """
    wanted = replace(request, count=len(offered.launch_indexes), least=1)
    return _settle(compute, _Build(wanted, offered.build_id, SPAWN, offered=offered))


def _settle(compute: Compute, build: _Build) -> list[Server]:
    compute = compute.scheduling(multi.RESERVE if build.task == RESERVE else multi.BOOT)
    build = replace(build, request=zoned(build.request, compute.rules.options.schedule_zone))
    spec = replace(spec_of(build.request), build_id=build.id, trust=compute.attested(build.request.flavor))
    if build.offered is not None and build.offered.destination is not None:
        spec = replace(spec, destination=build.offered.destination)
    try:
        made = _with_addresses(compute, build, spec)
    except NoMoreAddresses as short:
        if not build.request.least <= short.found < build.request.count:
            raise
        offered = build.offered.first(short.found) if build.offered else None
        return _settle(compute, replace(build, request=replace(build.request, count=short.found), offered=offered))
    for host in {server.service_host for server in made if server.service_host is not None}:
        compute.cast(host, *(server.id for server in made if server.service_host == host))
    return made


def _with_addresses(compute: Compute, build: _Build, spec: Spec) -> list[Server]:
    """Place the servers; request addresses from network hosts first if they grant them, and return unused ones."""
    if compute.network_queue is None:
        return claims.settle(compute, lambda attempt: _placed(compute, attempt, build, spec))
    with compute.engine.begin() as conn:
        wanted = _address_request(compute, conn, build)
        prepared = address_requests.prepare(conn, compute, wanted)
    granted = tuple(address_requests.request_addresses(compute, compute.network_queue, prepared))
    ready = replace(build, server_ids=wanted.server_ids, granted=granted)
    used: set[str] = set()
    try:
        made = claims.settle(compute, lambda attempt: _placed(compute, attempt, ready, spec))
        used = {server.id for server in made if server.node_id is not None}
    finally:
        address_requests.cancel(compute, [one.asked for one in granted], used)
    return made


def _address_request(compute: Compute, conn: Connection, build: _Build) -> AddressRequest:
    """Return the addresses to request; raises the errors of `boot` that can be detected in advance."""
    request = build.request
    request_data.check_image(conn, request.image_id, request.flavor)
    ids, networks = build.ids(_count(conn, build)), _networks(compute, conn, build)
    fixed_ips.check_quota(conn, request.project_id, len(networks) * len(ids))
    return AddressRequest(request.project_id, ids, networks, request.addresses, _is_vpn(compute, request))


def _placed(compute: Compute, attempt: Attempt, build: _Build, spec: Spec) -> list[Server]:
    """Return the stored servers: on their nodes, or in ERROR."""
    request, conn = build.request, attempt.conn
    if build.from_cell and not messages.once(conn, build.id):
        return []
    count = _count(conn, build)
    if build.task == RESERVE:
        request_data.pin_image(conn, request.image_id)
    request_data.check_image(conn, request.image_id, request.flavor)
    shared_capacity.check_hints(conn, spec)
    _check_place(compute, conn, build, spec)
    networks = _networks(compute, conn, build)
    group_id = server_groups.hinted(conn, request.hints, request.project_id)
    if group_id is not None:
        group, most = server_groups.joining(conn, compute.rules, group_id, request.project_id, request.least)
        spec, count = replace(spec, group=group), int(min(count, most))
    ids = build.ids(count)
    spec = replace(request_data.completed(conn, compute.rules, spec), server_ids=ids)
    try:
        plan = claims.claim(compute, attempt, spec, count, request.least)
    except NoValidHost as reason:
        if build.task == RESERVE or build.offered is not None or build.strict:
            raise
        return _refused(compute, attempt, (build, ids[: request.least]), reason)
    now = compute.now(conn)
    placed = build.drafts(ids[: len(plan.picks)], now)
    made = [_on(draft, pick, build.task, group_id) for draft, pick in zip(placed, plan.picks, strict=True)]
    inserts.insert(conn, made, request)
    _connect(compute, conn, build, (networks, made))
    for decision in _decisions(build, made, plan.trail):
        decisions.store(conn, replace(decision, lost=attempt.lost))
    if build.offered is not None:
        build.offered.write(conn, made)
    return made


def _count(conn: Connection, build: _Build) -> int:
    """Return the number of servers that the quota and the free addresses allow."""
    request = build.request
    if build.from_cell or (build.offered is not None and build.offered.counted):
        return request.count
    most = quota_check.allowed(conn, request.project_id, request.flavor, request.count, request.least)
    return most if build.granted is None else min(most, len(build.server_ids))


def _networks(compute: Compute, conn: Connection, build: _Build) -> tuple[Network, ...]:
    """Return the networks of the servers; those with granted addresses, if network hosts granted them."""
    request = build.request
    wanted = request.networks if build.granted is None else [one.network.id for one in build.granted]
    networks = fixed_ips.chosen(conn, compute.network, request.project_id, wanted)
    fixed_ips.check_wanted(networks, request.addresses, request.count)
    _check_ports(conn, request)
    return networks


def _check_ports(conn: Connection, request: BootRequest) -> None:
    """Check the ports of a request before the scheduler works for it. Raise BadRequest, Conflict."""
    if request.ports and request.count > 1:
        raise BadRequest("Unable to launch multiple instances with a single configured port ID.")
    for _, port_id in request.ports:
        found = port_rows.listed(conn, {"port_id": port_id, "project_id": request.project_id})
        try:
            ports.usable(next(iter(found), None), port_id)
        except NotFound as refusal:
            raise BadRequest(str(refusal)) from None


def _check_place(compute: Compute, conn: Connection, build: _Build, spec: Spec) -> None:
    """Check that the destination of a request exists; the error for an offered node does not name it."""
    try:
        request_data.check_place(conn, spec, compute.rules.options.default_zone)
    except BadRequest:
        if build.offered is None or build.offered.destination is None:
            raise
        raise NoValidHost(f"{OFFER_GONE} It does not exist any more.") from None


def _decisions(build: _Build, made: Sequence[Server], trail: Trail) -> Iterator[Decision]:
    """Yield the decision about a build, or one for each server if several decisions make up the build."""
    now = made[0].created_at
    if build.offered is None:
        yield Decision(build.id, None, now, decisions.PLACED, trail)
        return
    for server, pick in zip(made, trail.get("picks", ()), strict=False):
        yield Decision(build.id, server.id, now, decisions.PLACED, {**trail, "picks": [pick]})


def _connect(
    compute: Compute, conn: Connection, build: _Build, what: tuple[tuple[Network, ...], Sequence[Server]]
) -> None:
    """Allocate the addresses of new servers."""
    (networks, made), request, options = what, build.request, compute.network
    ids, now = tuple(server.id for server in made), compute.now(conn)
    ports_at = dict(request.ports)
    places = tuple(place for place in range(len(networks) + len(ports_at)) if place not in ports_at)
    asked = fixed_ips.InterfaceRequest(
        request.project_id, ids, networks, request.addresses, _is_vpn(compute, request), places
    )
    if build.granted is None:
        fixed_ips.allocate(conn, asked, now)
    else:
        fixed_ips.record(conn, asked, build.granted, now)
    for place, port_id in request.ports:
        ports.bind(conn, port_id, (ids[0], request.project_id), place, now)
    if options.auto_assign and networks and MANAGERS[networks[0].manager].FLOATING:
        pool = floating_ips.pool(conn, None, options.floating_pool)
        floating_ips.auto_assign(conn, request.project_id, ids, (pool, now), compute.network_notifier)


def _is_vpn(compute: Compute, request: BootRequest) -> bool:
    return compute.network.vpn_image is not None and request.image_id == compute.network.vpn_image


def _on(draft: Server, pick: Pick, task: str, group_id: str | None) -> Server:
    status = RESERVED if task == RESERVE else BUILD
    placed = replace(draft, node_id=pick.node_id, node=pick.node, service_host=pick.service_host)
    return replace(placed, status=status, task=task, group_id=group_id)


def _refused(
    compute: Compute, attempt: Attempt, asked: tuple[_Build, Sequence[str]], reason: NoValidHost
) -> list[Server]:
    (build, ids), conn = asked, attempt.conn
    now = compute.now(conn)
    fault = {"code": 500, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}", "message": f"{reason} {build.also}".strip()}
    made = [replace(draft, fault=fault) for draft in build.drafts(ids, now)]
    inserts.insert(conn, made, build.request)
    refusal = Decision(build.id, None, now, decisions.REFUSED, reason.trail, attempt.lost, error=str(reason))
    decisions.store(conn, refusal)
    return made


def new_build_id(compute: Compute) -> str:
    """Return a new id for a request without one: `r-` and eight letters or digits, or a UUID if so configured."""
    if compute.uuid_builds:
        return str(uuid4())
    return "r-" + "".join(secrets.choice(_ALPHABET) for _ in range(8))
