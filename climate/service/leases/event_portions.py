"""Batches of lease starts: begun, requested from the cloud and recorded in one transaction each.

Only starts that neither wait nor call other services run in a batch. All others, and those with an unforeseen
error, are given back. Each then gets a message of its own, and delays no other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import Fenced, InUse, LendsTogether, Loan, NotYet, Trouble
from climate.connections import alone
from climate.context import Climate
from climate.domain.facts import Fact
from climate.domain.hosts.pools import HostPlace
from climate.domain.lease import Event, Lease, Reservation
from climate.domain.status import EventKind
from climate.service.leases import cloud_steps, events, handover
from climate.service.leases.claim_heartbeat import ClaimHeartbeat
from climate.service.leases.event_shares import Outcome, queue_of
from climate.service.leases.events import Run, RunEffect
from climate.service.power import switching
from climate.service.transaction import work
from climate.store.hosts import pool_membership, power
from climate.store.hosts.power import Supply
from climate.store.leases import claim_portions, cloud_actions, event_claims, leases
from climate.store.leases.claim_portions import Settled
from climate.store.leases.cloud_actions import Intent
from climate.store.leases.event_claims import Limits, Message

log = structlog.get_logger(__name__)

Asked = tuple[Run, Sequence[str], Trouble | None]
"""A run, its completed steps, and the error of the cloud, if any."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Finished run with its result."""

    run: Run
    steps: Sequence[str]
    outcome: Outcome

    @property
    def settled(self) -> Settled:
        return Settled(self.run.event.id, self.run.token, self.run.event.due_at, self.steps)


@dataclass
class TogetherSteps:
    """Cloud interface for plugins that start several leases: each request is recorded before it is sent."""

    runs: Sequence[Run]
    is_lost: Callable[[UUID], bool]
    done: dict[UUID, str] = field(default_factory=dict)
    """Completed steps by event, which are recorded with the results."""

    def lend_together(self, loans: Sequence[Loan]) -> Sequence[Trouble | None]:
        """Lend hosts that an earlier run did not lend; raise Fenced for an event that another worker has claimed."""
        owners = {run.token: run for run in self.runs}
        intents = {loan.token: _intent(owners[loan.token], loan) for loan in loans}
        mine = [loan for loan in loans if not self.is_lost(owners[loan.token].event.id)]
        climate = self.runs[0].climate
        with alone(climate.engine) as conn:
            states = cloud_actions.plan_together(conn, [intents[loan.token] for loan in mine]) if mine else {}
        ask = [loan for loan in mine if states.get(intents[loan.token].event_id, "DONE") != "DONE"]
        assert isinstance(climate.cloud, LendsTogether)
        answers = climate.cloud.lend_together(ask) if ask else ()
        found: dict[int, Trouble | None] = {loan.token: one for loan, one in zip(ask, answers, strict=True)}
        for loan in loans:
            event_id, step = intents[loan.token].event_id, intents[loan.token].step
            if event_id not in states:
                found[loan.token] = Fenced(f"event {event_id} belongs to another worker")
            elif found.setdefault(loan.token, None) is None:
                self.done[event_id] = step
        return [found[loan.token] for loan in loans]


def _intent(run: Run, loan: Loan) -> Intent:
    return Intent(run.event.id, run.event.due_at, cloud_steps.lending(loan.pool, loan.hosts), run.token)


def queues(climate: Climate) -> frozenset[str]:
    """Return the queues of resource types whose leases can be started together, over this cloud."""
    if not isinstance(climate.cloud, LendsTogether):
        return frozenset()
    return frozenset(queue_of(kind) for kind, plugin in climate.plugins.items() if _hook(plugin) is not None)


def _hook(plugin: object) -> Callable[..., Sequence[Trouble | None]] | None:
    """Return the hook for several starts; None where there is none, or a subclass has another `on_start` only."""
    for one in type(plugin).__mro__:
        if "on_start_together" in vars(one):
            return getattr(plugin, "on_start_together", None)
        if "on_start" in vars(one):
            return None
    return None


def run(climate: Climate, messages: Sequence[Message], worker: str) -> None:
    """Start, act and record, each once for all of the events.

    Skips duplicate and outdated messages. Gives back events that cannot run together.
    """
    try:
        runs = _begin(climate, messages, worker)
    except Exception:  # the rows of one lease may be the cause
        log.exception("batch start failed; running events one by one", count=len(messages))
        _give_back(climate, messages, worker)
        return
    if runs:
        _work_on(climate, runs, worker)


def _work_on(climate: Climate, runs: Sequence[Run], worker: str) -> None:
    late = {run.event.id: outcome for run in runs if (outcome := events.too_late(run))}
    asked = _send_requests(climate, [run for run in runs if run.event.id not in late])
    ended = [Ended(run, [], late[run.event.id]) for run in runs if run.event.id in late]
    ended += [Ended(run, done, _outcome(run, why)) for run, done, why in asked if not isinstance(why, InUse)]
    _settle(climate, ended)
    back = [run.claim for run, _, why in asked if isinstance(why, InUse)]
    if back:
        _give_back(climate, back, worker)


def _send_requests(climate: Climate, runs: Sequence[Run]) -> list[Asked]:
    """Send all requests to the cloud while the claims are renewed; return InUse for all after an error."""
    if not runs:
        return []
    try:
        with ClaimHeartbeat(climate, [run.claim for run in runs]) as pulse:
            return _act(runs, pulse.lost)
    except Exception:
        log.exception("batch cloud request failed; running events one by one", count=len(runs))
        return [(run, [], InUse()) for run in runs]


def _begin(climate: Climate, messages: Sequence[Message], worker: str) -> list[Run]:
    """Begin all that can run together; give the others back."""
    settings = climate.settings
    limits = Limits(timedelta(seconds=settings.claim_seconds), timedelta(seconds=settings.step_seconds))
    with climate.engine.begin() as conn:
        begun = claim_portions.start(conn, messages, worker, climate.other_time(conn), limits)
        found = leases.of_events(conn, begun)
        held = pool_membership.of(
            conn, {host for lease in found.values() for r in lease.reservations for host in r.hosts}
        )
        runs = [
            _run(climate, found[m.event_id], m, worker, begun[m.event_id], held)
            for m in messages
            if m.event_id in found
        ]
        fit = _fit(runs, power.of(conn, held))
        chosen = {run.token for run in fit}
        others = [run.claim for run in runs if run.token not in chosen]
        if others:
            claim_portions.give_back(conn, others, worker)
            event_claims.wake_poller(conn)
    log.info("events begun together", count=len(fit), given_back=len(others), dropped=len(messages) - len(runs))
    return fit


def _run(
    climate: Climate, lease: Lease, message: Message, worker: str, begun: datetime, held: Mapping[int, HostPlace]
) -> Run:
    own = {host: held[host] for r in lease.reservations for host in r.hosts}
    return Run(climate, lease, lease.event(message.event_id), message.token, worker, begun, own)


def _fit(runs: Sequence[Run], supplies: Mapping[int, Supply]) -> list[Run]:
    """Return those that can run together: no host is in two of them."""
    fit: list[Run] = []
    taken: set[int] = set()
    for one in runs:
        if _is_simple(one.climate, one.lease, one.event) and not taken & set(one.places) and _are_ready(one, supplies):
            fit.append(one)
            taken |= set(one.places)
    return fit


def _is_simple(climate: Climate, lease: Lease, event: Event) -> bool:
    """Return whether it is the start of a lease of one reservation, which lies here and has only hosts."""
    alone = len(lease.reservations) == 1
    plugin = climate.plugins.get(lease.reservations[0].resource_type) if alone else None
    whole = event.kind is EventKind.START and not event.shares and plugin is not None and _hook(plugin) is not None
    return whole and isinstance(climate.cloud, LendsTogether) and all(map(_has_hosts_only, lease.reservations))


def _has_hosts_only(reservation: Reservation) -> bool:
    return bool(reservation.holds) and not (reservation.parts or reservation.amounts or reservation.addresses)


def _are_ready(run: Run, supplies: Mapping[int, Supply]) -> bool:
    """Return whether all hosts can be handed over, and are up."""
    lacking = (handover.lacking(r, _held(run, r), patient=False) for r in run.lease.reservations)
    up = (
        place.host not in supplies or (place.on and not switching.is_going(place, supplies[place.host]))
        for place in run.places.values()
    )
    return not any(lacking) and all(up)


def _held(run: Run, reservation: Reservation) -> list[HostPlace]:
    return [run.places[host] for host in reservation.hosts]


def _act(runs: Sequence[Run], is_lost: Callable[[UUID], bool]) -> list[Asked]:
    """Have the plugins hand over the reserved hosts."""
    result: list[Asked] = []
    by_type: dict[str, list[Run]] = {}
    for one in runs:
        by_type.setdefault(one.lease.resource_types[0], []).append(one)
    for resource_type, own in by_type.items():
        hook = _hook(own[0].climate.plugins[resource_type])
        assert hook is not None
        result += _handed_over(own, TogetherSteps(own, is_lost), hook)
    return result


def _handed_over(
    runs: Sequence[Run], cloud: TogetherSteps, hook: Callable[..., Sequence[Trouble | None]]
) -> list[Asked]:
    lent = [
        (one, events.lent_of(one, r, tuple(p.name for p in _held(one, r)))) for one in runs for r in one.reservations
    ]
    said = hook(cloud, [each for _, each in lent])
    troubles: dict[UUID, Trouble] = {}
    for (one, _), trouble in zip(lent, said, strict=True):
        if trouble is not None:
            troubles.setdefault(one.event.id, trouble)
    return [
        (one, [cloud.done[one.event.id]] if one.event.id in cloud.done else [], troubles.get(one.event.id))
        for one in runs
    ]


def _outcome(run: Run, trouble: Trouble | None) -> Outcome:
    if isinstance(trouble, Fenced):
        return events.outcome_of(run, [NotYet(events.WORKED_ON)], {})
    return events.outcome_of(run, [] if trouble is None else [trouble], {})


def _settle(climate: Climate, ended: Sequence[Ended]) -> None:
    """Record all results in one transaction, or one by one if that fails."""
    if not ended:
        return
    try:
        kinds = work(climate, lambda conn, patient: _recorded(climate, conn, ended))
    except Exception:
        log.exception("batch result failed; recording results one by one", count=len(ended))
        for one in ended:
            _settle_alone(one)
        return
    log.info("events settled", count=len(kinds), refused=len(ended) - len(kinds))


def _settle_alone(one: Ended) -> None:
    """Record one result; if that fails too, the claim expires and the event is put back."""
    try:
        events.settle(one.run, one.steps, one.outcome)
    except Exception:
        log.exception("event result not recorded", event_id=str(one.run.event.id), lease_id=str(one.run.lease.id))


def _recorded(climate: Climate, conn: Connection, ended: Sequence[Ended]) -> list[UUID]:
    """Record the results of events that this worker still claims; return their ids."""
    locked = {lease.id: lease for lease in leases.lock(conn, {one.run.lease.id for one in ended})}
    mine, settled = claim_portions.settle(conn, [one.settled for one in ended if one.run.lease.id in locked])
    now = climate.other_time(conn) or settled
    happened = [_happened(one, locked[one.run.lease.id], now) for one in ended if one.run.event.id in mine]
    if happened:
        events.write(conn, climate, happened, now)
    return [one.run.event.id for one in happened]


def _happened(one: Ended, lease: Lease, now: datetime) -> RunEffect:
    facts: Sequence[Fact] = one.outcome(lease, now)
    return RunEffect(one.run, lease, facts)


def _give_back(climate: Climate, messages: Sequence[Message], worker: str) -> None:
    """Send a message for each event at once, unless another worker has claimed it."""
    with climate.engine.begin() as conn:
        if claim_portions.give_back(conn, messages, worker):
            event_claims.wake_poller(conn)
