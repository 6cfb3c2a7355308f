"""Approval of leases by an external service of the operator, with the HTTP calls of Blazar.

The service is asked with no transaction open and nothing locked. The lease is planned and rolled back, the
service is asked, and then the lease is planned again and recorded. It is recorded only if it is still the
same: dates within a minute, and as many hosts with the same properties for each reservation. Equal hosts are
interchangeable. If the plan has changed, the service is asked again, a few times at most. The hosts of the
approved plan are preferred if still free.

Nothing is recorded without approval. An approval may remain unused if the hosts are gone by then or the
request breaks off. It may be asked for twice if a request is repeated while it runs. Dry runs are not asked
about, because some services count each question as an allocation.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar, TypeVarTuple

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Busy, Forbidden, NoVerdict
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.identity.clouds_yaml import REGION
from climate.outbound import http_client
from climate.outbound.http_client import DeliveryError, PostRequest, Receipt
from climate.service.notifications import lease_payload
from climate.service.transaction import allocate, allocate_some
from climate.settings import Settings
from climate.store.hosts import hosts
from climate.store.hosts.hosts import Host

log = structlog.get_logger(__name__)

T = TypeVar("T")
Args = TypeVarTuple("Args")

ROUNDS = 4
"""Maximum number of plans before the request is refused."""

SLACK = timedelta(minutes=1)
"""Maximum delay of the start of an approved lease that starts now."""

PERSONAL = ("id", "hypervisor_hostname", "service_name")
"""Properties in which equal hosts differ."""

MADE_WITH_THE_PLAN = ("flavor_id", "server_group_id")
"""Keys of slots with ids that each plan makes anew."""

LONGEST_MESSAGE = 500
YES, NO = 204, 403

CHECK_CREATE, CHECK_UPDATE, ON_END = "check-create", "check-update", "on-end"


class Planned(Exception):
    """The lease is planned, and the service has not approved it yet."""

    def __init__(self, before: Lease | None, after: Lease, held: Mapping[int, Host]) -> None:
        super().__init__()
        self.before, self.after, self.held = before, after, held


@dataclass(frozen=True, slots=True)
class Approval:
    """Checks plans against the approved one; accepts every plan if no service is configured."""

    needed: bool
    granted: Planned | None = None

    def preferred_hosts(self, place: int) -> tuple[int, ...]:
        """Return the approved hosts of a reservation of the lease, by its index."""
        return self.granted.after.reservations[place].hosts if self.granted else ()

    def check(self, conn: Connection, before: Lease | None, after: Lease) -> None:
        """Check a plan in the transaction, before anything is written; raise Planned if it is not approved yet."""
        if not self.needed:
            return
        leases = [lease for lease in (before, after) if lease]
        numbers = {number for lease in leases for r in lease.reservations for number in r.hosts}
        wanted = Planned(before, after, hosts.by_number(conn, numbers))
        if self.granted is None or not _same(self.granted, wanted):
            raise wanted


def run_approved(
    climate: Climate,
    caller: Caller,
    function: Callable[[Connection, bool, Approval, *Args], T],
    *args: *Args,
    dry_run: bool,
) -> T:
    """Run `function(conn, patient, gate, *args)` in a transaction, and commit what the service approves.

    A dry run is rolled back, and the service is not asked. Raises Forbidden with the service's message, and NoVerdict
    for an unusable answer.
    """
    gate = Approval(bool(climate.settings.enforcement_url) and not dry_run)
    for _ in range(ROUNDS):
        try:
            return allocate(climate, function, gate, *args, keep=not dry_run)
        except Planned as planned:
            wanted = planned
        _request_approval(climate.settings, caller, wanted)
        gate = Approval(True, wanted)
    raise Busy("The available resources kept changing while the approval service was asked; try again")


class _Unapproved(Exception):
    """Some of the leases are planned, and the service has not been asked about them yet."""


@dataclass(frozen=True, slots=True)
class _Collecting(Approval):
    """Gate of one of several leases: collects the plan to ask about, and raises the refusal of an earlier one."""

    place: int = 0
    collected: dict[int, Planned] = field(default_factory=dict)
    refusal: Forbidden | None = None

    def check(self, conn: Connection, before: Lease | None, after: Lease) -> None:
        if self.refusal is not None:
            raise self.refusal
        try:
            Approval.check(self, conn, before, after)
        except Planned as wanted:
            self.collected[self.place] = wanted


@dataclass(frozen=True, slots=True)
class Approvals:
    """Gates of several leases that one transaction records, by their index."""

    needed: bool
    granted: dict[int, Planned] = field(default_factory=dict)
    refused: dict[int, Forbidden] = field(default_factory=dict)
    collected: dict[int, Planned] = field(default_factory=dict)

    def at(self, place: int) -> Approval:
        """Return the gate of one of the leases."""
        return _Collecting(self.needed, self.granted.get(place), place, self.collected, self.refused.get(place))


def run_all_approved(
    climate: Climate,
    caller: Caller,
    function: Callable[[Connection, bool, Approvals, *Args], T],
    *args: *Args,
    dry_run: bool,
) -> T:
    """Run `function(conn, patient, gates, *args)` like `run_approved`, for several leases in one transaction.

    The gate of a lease that the service refuses raises Forbidden with the service's message.
    """
    gates = Approvals(bool(climate.settings.enforcement_url) and not dry_run)
    for _ in range(ROUNDS):
        try:
            return allocate_some(climate, _collecting, gates, function, args, keep=not dry_run)
        except _Unapproved:
            wanted = dict(gates.collected)
        for place, planned in wanted.items():
            gates.granted[place] = planned
            try:
                _request_approval(climate.settings, caller, planned)
            except Forbidden as refusal:
                gates.refused[place] = refusal
    raise Busy("The available resources kept changing while the approval service was asked; try again")


def _collecting(
    conn: Connection,
    patient: bool,
    gates: Approvals,
    function: Callable[[Connection, bool, Approvals, *Args], T],
    args: tuple[*Args],
) -> T:
    gates.collected.clear()
    result = function(conn, patient, gates, *args)
    if gates.collected:
        raise _Unapproved
    return result


def rehearse(
    climate: Climate, caller: Caller, function: Callable[[Connection, bool, Approval, *Args], T], *args: *Args
) -> T | Lease:
    """Run `function(conn, patient, gate, *args)`, ask the service whether it approves, and keep nothing.

    Return the result, or the planned lease if the service was asked. Raise the refusals of both.
    """
    gate = Approval(bool(climate.settings.enforcement_url))
    try:
        return allocate(climate, function, gate, *args, keep=False)
    except Planned as planned:
        wanted = planned
    _request_approval(climate.settings, caller, wanted)
    return wanted.after


def build_request(settings: Settings, call: str, body: Mapping[str, object]) -> PostRequest:
    """Build one request to the service."""
    return PostRequest(
        url=f"{settings.enforcement_url.rstrip('/')}/{call}",
        body=json.dumps(body).encode(),
        headers={"X-Auth-Token": settings.enforcement_token} if settings.enforcement_token else {},
        seconds=settings.enforcement_seconds,
        private=True,
    )


def context(settings: Settings, user_id: str, project_id: str) -> dict[str, str]:
    """Return the requester and the cloud for the request."""
    return {
        "user_id": user_id,
        "project_id": project_id,
        "auth_url": f"{settings.base_url}/identity/v3",
        "region_name": REGION,
    }


def _same(granted: Planned, planned: Planned) -> bool:
    one, other = granted.after.period, planned.after.period
    near = abs(one.start - other.start) <= SLACK and abs(one.end - other.end) <= SLACK
    return near and _comparable(granted) == _comparable(planned)


def _comparable(planned: Planned) -> list[object]:
    """Return the held resources without those properties in which equal hosts differ."""
    return [
        (
            r.resource_type,
            r.resource_id,
            {name: value for name, value in r.spec.items() if name not in MADE_WITH_THE_PLAN},
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


def _request_approval(settings: Settings, caller: Caller, planned: Planned) -> None:
    body = {
        "context": context(settings, caller.user_id, caller.project_id),
        "lease": lease_payload.of(planned.after, planned.held),
    }
    if planned.before:
        body["current_lease"] = lease_payload.of(planned.before, planned.held)
    call = CHECK_UPDATE if planned.before else CHECK_CREATE
    try:
        answer = http_client.post(build_request(settings, call, body))
    except DeliveryError as error:
        _without_verdict(settings, call, str(error))
        return
    if answer.status == NO:
        raise Forbidden(_message(answer))
    if answer.status != YES:
        _without_verdict(settings, call, f"HTTP {answer.status}")


def _without_verdict(settings: Settings, call: str, reason: str) -> None:
    is_open = settings.enforcement_open
    log.warning("approval service gave no usable answer", call=call, reason=reason, granted=is_open)
    if not is_open:
        raise NoVerdict()


def _message(answer: Receipt) -> str:
    """Return the service's message to the requester."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        said = None
    message = said.get("message") if isinstance(said, dict) else None
    text = "".join(sign for sign in message if sign.isprintable()).strip() if isinstance(message, str) else ""
    return text[:LONGEST_MESSAGE] or "The approval service rejected this lease"
