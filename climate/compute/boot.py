"""Booting servers: quota, a node each, addresses, a row each; all of it or nothing."""

import contextlib
import secrets
import string
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute import claims, quota
from climate.compute.context import Compute
from climate.compute.errors import ClaimLost, NoValidHost
from climate.compute.network import addresses
from climate.compute.request import BootRequest, placement
from climate.compute.scheduler.select import Pick
from climate.compute.server import BUILD, ERROR, HOLD, RESERVED, SPAWN, Server
from climate.compute.store import servers, wishes

_ALPHABET = string.ascii_lowercase + string.digits


def boot(compute: Compute, request: BootRequest) -> list[Server]:
    """Boot `count` servers, or as many as possible down to `least`.

    Where no node is found the servers are stored in ERROR, with the reason as
    their fault.  Raises QuotaExceeded, NoMoreAddresses, BadRequest.
    """
    placement(request)
    if request.least < request.count:
        with contextlib.suppress(NoValidHost):
            return _settle(compute, request, request.count, SPAWN)
    try:
        return _settle(compute, request, request.least, SPAWN)
    except NoValidHost as reason:
        return _refused(compute, request, reason)


def reserve(compute: Compute, request: BootRequest, server_id: str) -> Server:
    """Store one server as RESERVED: placed, with its addresses, held at its gate until it is woken.

    Raises NoValidHost, NoMoreAddresses, QuotaExceeded, BadRequest; then nothing is left.
    """
    return _settle(compute, request, 1, HOLD, server_id)[0]


def _settle(
    compute: Compute, request: BootRequest, count: int, task: str, server_id: str | None = None
) -> list[Server]:
    for _ in range(claims.TRIES):
        try:
            with compute.engine.begin() as conn:
                quota.check(conn, request.project_id, request.flavor, count)
                made, picks = _write(conn, compute, request, _ids(count, server_id), task)
        except ClaimLost:
            continue
        for server, pick in zip(made, picks, strict=True):
            compute.cast(pick.service_host, server.id)
        return made
    raise NoValidHost


def _ids(count: int, server_id: str | None) -> list[str]:
    return [server_id] if server_id else [str(uuid4()) for _ in range(count)]


def _write(
    conn: Connection, compute: Compute, request: BootRequest, ids: Sequence[str], task: str
) -> tuple[list[Server], list[Pick]]:
    networks = addresses.chosen(conn, request.networks)
    picks = claims.claim(conn, compute, placement(request), len(ids))
    drafts = _drafts(request, ids, compute.now(conn))
    status = RESERVED if task == HOLD else BUILD
    made = [
        replace(draft, status=status, task=task, node_id=pick.node_id)
        for draft, pick in zip(drafts, picks, strict=True)
    ]
    _insert(conn, request, made)
    addresses.allocate(conn, networks, ids)
    return made, picks


def _refused(compute: Compute, request: BootRequest, reason: NoValidHost) -> list[Server]:
    with compute.engine.begin() as conn:
        quota.check(conn, request.project_id, request.flavor, request.least)
        now = compute.now(conn)
        fault = {"code": 500, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}", "message": str(reason)}
        drafts = _drafts(request, [str(uuid4()) for _ in range(request.least)], now)
        made = [replace(draft, fault=fault) for draft in drafts]
        _insert(conn, request, made)
        return made


def _insert(conn: Connection, request: BootRequest, made: Sequence[Server]) -> None:
    servers.insert(conn, made, request.user_data)
    by = {"project_id": request.project_id, "user_id": request.user_id, "request_id": request.request_id}
    for server in made:
        wishes.note(conn, server.id, "create", by, server.created_at)


def _drafts(request: BootRequest, ids: Sequence[str], now: datetime) -> list[Server]:
    """Rows for a request, on no node yet."""
    build_id = "r-" + "".join(secrets.choice(_ALPHABET) for _ in range(8))
    return [
        Server(
            id=server_id,
            name=request.name if len(ids) == 1 else f"{request.name}-{place + 1}",
            project_id=request.project_id,
            user_id=request.user_id,
            status=ERROR,
            task=None,
            flavor=request.flavor,
            image_id=request.image_id,
            metadata=request.metadata,
            hints=request.hints,
            zone=request.zone,
            build_id=build_id,
            launch_index=place,
            created_at=now,
            updated_at=now,
            key_name=request.key_name,
        )
        for place, server_id in enumerate(ids)
    ]
