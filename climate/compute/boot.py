"""Booting servers: quota, a node each, addresses, a row each; all of it or nothing."""

import secrets
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute import claims, decisions, granting, groups, lookup, quota
from climate.compute.claims import Attempt
from climate.compute.context import Compute
from climate.compute.decisions import Decision
from climate.compute.errors import NoMoreAddresses, NoValidHost
from climate.compute.network import fixed, floating
from climate.compute.network.managers import MANAGERS
from climate.compute.network.model import Network
from climate.compute.request import BootRequest, Spec, spec_of
from climate.compute.scheduler.plan import Pick
from climate.compute.server import BUILD, ERROR, HOLD, RESERVED, SPAWN, Server
from climate.compute.store import builds

_ALPHABET = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class _Build:
    """A request with the names that it has got."""

    request: BootRequest
    id: str
    task: str
    server_id: str | None = None
    """Of the only server, where its id is known already."""
    strict: bool = False
    """Leave no servers in ERROR where no node is found."""

    def ids(self, count: int) -> tuple[str, ...]:
        return (self.server_id,) if self.server_id else tuple(str(uuid4()) for _ in range(count))

    def drafts(self, ids: Sequence[str], now: datetime) -> list[Server]:
        """Rows for servers that are on no node yet."""
        asked = self.request
        first = Server(
            id=ids[0],
            name=asked.name,
            project_id=asked.project_id,
            user_id=asked.user_id,
            status=ERROR,
            task=None,
            flavor=asked.flavor,
            image_id=asked.image_id,
            metadata=asked.metadata,
            hints=asked.hints,
            zone=asked.zone,
            build_id=self.id,
            launch_index=0,
            created_at=now,
            updated_at=now,
            key_name=asked.key_name,
            description=asked.description,
            destination=asked.destination,
            access=asked.access,
        )
        if len(ids) == 1:
            return [first]
        return [
            replace(first, id=server_id, name=f"{asked.name}-{place + 1}", launch_index=place)
            for place, server_id in enumerate(ids)
        ]


def boot(compute: Compute, request: BootRequest, *, strict: bool = False) -> list[Server]:
    """Boot `count` servers, or as many as possible down to `least`, in one transaction.

    Where no node is found the servers are stored in ERROR, with the reason as
    their fault; `strict`: nothing is stored then, and NoValidHost raised.
    Raises QuotaExceeded, NoMoreAddresses, BadRequest.
    """
    return _settle(compute, _Build(request, _build_id(), SPAWN, strict=strict))


def reserve(compute: Compute, request: BootRequest, server_id: str) -> Server:
    """Store one server as RESERVED: placed, with its addresses, held at its gate until it is woken.

    Raises NoValidHost, NoMoreAddresses, QuotaExceeded, BadRequest; then nothing is left.
    """
    granting.check_ordinary(request.flavor)
    return _settle(compute, _Build(replace(request, count=1, least=1), _build_id(), HOLD, server_id))[0]


def _settle(compute: Compute, build: _Build) -> list[Server]:
    spec = replace(spec_of(build.request), build_id=build.id)
    try:
        made = claims.settle(compute, lambda attempt: _placed(compute, attempt, build, spec))
    except NoMoreAddresses as short:
        if not build.request.least <= short.found < build.request.count:
            raise
        return _settle(compute, replace(build, request=replace(build.request, count=short.found)))
    for host in {server.service_host for server in made if server.service_host is not None}:
        compute.cast(host, *(server.id for server in made if server.service_host == host))
    return made


def _placed(compute: Compute, attempt: Attempt, build: _Build, spec: Spec) -> list[Server]:
    """The servers as they are written down: on their nodes, or in ERROR."""
    request, conn = build.request, attempt.conn
    count = quota.allowed(conn, request.project_id, request.flavor, request.count, request.least)
    lookup.check_image(conn, request.image_id, request.flavor)
    granting.check_hints(conn, spec)
    lookup.check_place(conn, spec, compute.rules.options.default_zone)
    networks = fixed.chosen(conn, compute.network, request.project_id, request.networks)
    fixed.check_wanted(networks, request.addresses, request.count)
    group_id = groups.hinted(request.hints)
    if group_id is not None:
        group, most = groups.joining(conn, compute.rules, group_id, request.project_id, request.least)
        spec, count = replace(spec, group=group), int(min(count, most))
    ids = build.ids(count)
    spec = replace(lookup.completed(conn, compute.rules, spec), server_ids=ids)
    try:
        plan = claims.claim(compute, attempt, spec, count, request.least)
    except NoValidHost as reason:
        if build.strict or build.task == HOLD:
            raise
        return _refused(compute, attempt, (build, ids[: request.least]), reason)
    now = compute.now(conn)
    drafts = build.drafts(ids[: len(plan.picks)], now)
    made = [_on(draft, pick, build.task, group_id) for draft, pick in zip(drafts, plan.picks, strict=True)]
    builds.insert(conn, made, request.user_data, request.request_id)
    _connect(compute, conn, build, (networks, made))
    decisions.keep(conn, Decision(build.id, None, now, decisions.PLACED, plan.trail, attempt.lost))
    return made


def _connect(
    compute: Compute, conn: Connection, build: _Build, what: tuple[tuple[Network, ...], Sequence[Server]]
) -> None:
    """Give new servers their addresses."""
    (networks, made), request, options = what, build.request, compute.network
    ids, now = tuple(server.id for server in made), compute.now(conn)
    vpn = options.vpn_image is not None and request.image_id == options.vpn_image
    fixed.allocate(conn, fixed.Asked(request.project_id, ids, networks, request.addresses, vpn), now)
    if options.auto_assign and networks and MANAGERS[networks[0].manager].FLOATING:
        pool = floating.pool(conn, None, options.floating_pool)
        floating.auto_assign(conn, request.project_id, ids, pool, now)


def _on(draft: Server, pick: Pick, task: str, group_id: str | None) -> Server:
    status = RESERVED if task == HOLD else BUILD
    placed = replace(draft, node_id=pick.node_id, node=pick.node, service_host=pick.service_host)
    return replace(placed, status=status, task=task, group_id=group_id)


def _refused(
    compute: Compute, attempt: Attempt, asked: tuple[_Build, Sequence[str]], reason: NoValidHost
) -> list[Server]:
    (build, ids), conn = asked, attempt.conn
    now = compute.now(conn)
    fault = {"code": 500, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}", "message": str(reason)}
    made = [replace(draft, fault=fault) for draft in build.drafts(ids, now)]
    builds.insert(conn, made, build.request.user_data, build.request.request_id)
    refusal = Decision(build.id, None, now, decisions.REFUSED, reason.trail, attempt.lost, error=str(reason))
    decisions.keep(conn, refusal)
    return made


def _build_id() -> str:
    return "r-" + "".join(secrets.choice(_ALPHABET) for _ in range(8))
