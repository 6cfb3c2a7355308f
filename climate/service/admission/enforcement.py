"""A service of the operator's that has to agree to leases, by the peer's calls (reservation.md 1.7 E6).

It is asked with no transaction open and nothing locked: what would be granted
is worked out and rolled back, the service is asked about it, and then it is
worked out anew and recorded, provided it is still the same: dates within a
minute, and as many hosts with the same properties for each reservation.  Which
of several equal hosts it will be is not agreed on.  Where it has become
another, the service is asked again, a few times at most; the very hosts that it
was asked about are chosen where they are still free.

So nothing is recorded that was not agreed to.  A yes may come to nothing,
where the hosts are gone by then or the request breaks off, and may be asked
for twice, where a request is repeated while it runs.  Trials (dry runs) are
not asked about: to some services a question is a booking.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from sqlalchemy import Connection

from climate import http_client
from climate.context import Climate
from climate.domain.errors import Busy, Forbidden, NoVerdict
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.http_client import CourierError, Parcel, Receipt
from climate.identity.clouds import REGION
from climate.service.notifications import lease_payload
from climate.settings import Settings
from climate.store.hosts import hosts
from climate.store.hosts.hosts import Host

log = structlog.get_logger(__name__)

T = TypeVar("T")

ROUNDS = 4
"""How often it is worked out what would be granted, before the request is given up."""

SLACK = timedelta(minutes=1)
"""How much later than asked about a lease may begin that is to begin now."""

PERSONAL = ("id", "hypervisor_hostname", "service_name")
"""What differs between equal hosts."""

LONGEST_MESSAGE = 500
YES, NO = 204, 403

CHECK_CREATE, CHECK_UPDATE, ON_END = "check-create", "check-update", "on-end"


class Planned(Exception):
    """What would be granted has been worked out, and the service has yet to agree to it."""

    def __init__(self, before: Lease | None, after: Lease, held: Mapping[int, Host]) -> None:
        super().__init__()
        self.before, self.after, self.held = before, after, held


@dataclass(frozen=True, slots=True)
class Gate:
    """Lets through what the service has agreed to; everything, where there is no such service."""

    needed: bool
    granted: Planned | None = None

    def liked(self, place: int) -> tuple[int, ...]:
        """The hosts of a reservation of the lease that were agreed to, by its place among them."""
        return self.granted.after.reservations[place].hosts if self.granted else ()

    def enter(self, conn: Connection, before: Lease | None, after: Lease) -> None:
        """Called in the transaction, before anything is written; Planned where nobody has agreed to this yet."""
        if not self.needed:
            return
        leases = [lease for lease in (before, after) if lease]
        numbers = {number for lease in leases for r in lease.reservations for number in r.hosts}
        wanted = Planned(before, after, hosts.by_number(conn, numbers))
        if self.granted is None or not _same(self.granted, wanted):
            raise wanted


def agreed(climate: Climate, caller: Caller, act: Callable[[Gate], T], *, dry_run: bool) -> T:
    """What `act` comes to, once the service has agreed to it.

    Forbidden in the service's words; NoVerdict where it gives no usable answer.
    """
    gate = Gate(bool(climate.settings.enforcement_url) and not dry_run)
    for _ in range(ROUNDS):
        try:
            return act(gate)
        except Planned as planned:
            wanted = planned
        _ask(climate.settings, caller, wanted)
        gate = Gate(True, wanted)
    raise Busy("What could be granted kept changing while another service was asked about it")


def parcel(settings: Settings, call: str, body: Mapping[str, Any]) -> Parcel:
    """One call of the service."""
    return Parcel(
        url=f"{settings.enforcement_url.rstrip('/')}/{call}",
        body=json.dumps(body).encode(),
        headers={"X-Auth-Token": settings.enforcement_token} if settings.enforcement_token else {},
        seconds=settings.enforcement_seconds,
        private=True,
    )


def context(settings: Settings, user_id: str, project_id: str) -> dict[str, str]:
    """Who is asking, and in which cloud."""
    return {
        "user_id": user_id,
        "project_id": project_id,
        "auth_url": f"{settings.base_url}/identity/v3",
        "region_name": REGION,
    }


def _same(granted: Planned, wanted: Planned) -> bool:
    one, other = granted.after.period, wanted.after.period
    near = abs(one.start - other.start) <= SLACK and abs(one.end - other.end) <= SLACK
    return near and _things(granted) == _things(wanted)


def _things(planned: Planned) -> list[Any]:
    """What is held, without saying which of several equal hosts it is."""
    return [
        (
            r.resource_type,
            r.resource_id,
            dict(r.spec),
            sorted(_kind(planned.held.get(h.host), h.slots) for h in r.holds),
            [hold.address for hold in r.addresses],
            sum(hold.amount for hold in r.amounts),
        )
        for r in planned.after.reservations
    ]


def _kind(host: Host | None, slots: int) -> str:
    if host is None:
        return ""
    own = {key: value for key, value in host.own.items() if key not in PERSONAL}
    return json.dumps([slots, own, dict(host.extra)], sort_keys=True, default=str)


def _ask(settings: Settings, caller: Caller, planned: Planned) -> None:
    body = {
        "context": context(settings, caller.user_id, caller.project_id),
        "lease": lease_payload.of(planned.after, planned.held),
    }
    if planned.before:
        body["current_lease"] = lease_payload.of(planned.before, planned.held)
    call = CHECK_UPDATE if planned.before else CHECK_CREATE
    try:
        answer = http_client.post(parcel(settings, call, body))
    except CourierError as error:
        _without_verdict(settings, call, str(error))
        return
    if answer.status == NO:
        raise Forbidden(_message(answer))
    if answer.status != YES:
        _without_verdict(settings, call, f"HTTP {answer.status}")


def _without_verdict(settings: Settings, call: str, reason: str) -> None:
    is_open = settings.enforcement_open
    log.warning("no verdict on a lease", call=call, reason=reason, granted=is_open)
    if not is_open:
        raise NoVerdict()


def _message(answer: Receipt) -> str:
    """What the service says to whoever asked for the lease."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        said = None
    message = said.get("message") if isinstance(said, dict) else None
    text = "".join(sign for sign in message if sign.isprintable()).strip() if isinstance(message, str) else ""
    return text[:LONGEST_MESSAGE] or "The service that has to agree to leases here does not agree to this one"
