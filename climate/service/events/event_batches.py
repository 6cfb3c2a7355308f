"""Batches of starts, ends or actions ahead of ends: begun, requested from the cloud and recorded in a transaction each.

Only events that neither wait nor call other services run in a batch. All others, and those with an unforeseen
error, are given back. Each then gets a message of its own, and delays no other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import Fenced, InUse, LendsTogether, Loan, NotYet, Return, TakesBackTogether, Trouble
from climate.context import Climate
from climate.database.connections import alone
from climate.domain.events.event import Event
from climate.domain.facts import Fact
from climate.domain.hosts import pools
from climate.domain.hosts.pools import HostPlace, OnEnd
from climate.domain.lease import Lease, Reservation
from climate.domain.status import EventKind
from climate.service import transaction
from climate.service.events import cloud_steps, events, host_handover
from climate.service.events.claim_heartbeat import ClaimHeartbeat
from climate.service.events.event_shares import Outcome, queue_of
from climate.service.events.events import Run, RunEffect
from climate.service.power import switching
from climate.store.hosts import pool_membership, power
from climate.store.hosts.power import Supply
from climate.store.leases import claim_batches, cloud_actions, event_claims, leases
from climate.store.leases.claim_batches import Batched, Settled
from climate.store.leases.cloud_actions import Intent
from climate.store.leases.event_claims import Limits, Message

log = structlog.get_logger(__name__)

Request = TypeVar("Request", Loan, Return)

Asked = tuple[Run, Sequence[str], Trouble | None]
"""A run, its completed steps, and the error of the cloud, if any."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """Finished run with its result."""

    run: Run
    steps: Sequence[str]
    outcome: Outcome

    @property
    def settled(self) -> Settled:
        return Settled(self.run.event.id, self.run.token, self.run.event.due_at, self.steps)


class BatchHook(NamedTuple):
    """A hook of plugins for several events at once, and the interface of the cloud that it uses."""

    name: str
    of_one: str
    """Name of the hook for one event."""
    cloud: type
    """`object` for a hook that asks the cloud for nothing."""


TOGETHER: Mapping[EventKind, BatchHook] = {
    EventKind.START: BatchHook("on_start_together", "on_start", LendsTogether),
    EventKind.BEFORE_END: BatchHook("before_end_together", "before_end", object),
    EventKind.END: BatchHook("on_end_together", "on_end", TakesBackTogether),
}
"""Hooks for the kinds of events that run in batches."""


@dataclass
class TogetherSteps:
    """Cloud interface for plugins that start or end several leases: each request is recorded before it is sent."""

    runs: Sequence[Run]
    is_lost: Callable[[UUID], bool]
    done: dict[UUID, str] = field(default_factory=dict)
    """Completed steps by event, which are recorded with the results."""

    def lend_together(self, loans: Sequence[Loan]) -> Sequence[Trouble | None]:
        """Lend hosts that an earlier run did not lend; raise Fenced for an event that another worker has claimed."""
        cloud = self.runs[0].climate.cloud
        assert isinstance(cloud, LendsTogether)
        return self._send_once(
            loans, lambda loan: cloud_steps.lending(loan.pool, loan.hosts, loan.shared_with), cloud.lend_together
        )

    def take_back_together(self, returns: Sequence[Return]) -> Sequence[Trouble | None]:
        """Take back hosts that an earlier run did not take back; raise Fenced as `lend_together` does."""
        cloud = self.runs[0].climate.cloud
        assert isinstance(cloud, TakesBackTogether)
        return self._send_once(returns, lambda one: cloud_steps.taking_back(one.pool), cloud.take_back_together)

    def _send_once(
        self,
        requests: Sequence[Request],
        step_of: Callable[[Request], str],
        send: Callable[[Sequence[Request]], Sequence[Trouble | None]],
    ) -> list[Trouble | None]:
        owners = {run.token: run for run in self.runs}
        intents = {one.token: _intent(owners[one.token], step_of(one)) for one in requests}
        mine = [one for one in requests if not self.is_lost(owners[one.token].event.id)]
        with alone(self.runs[0].climate.engine) as conn:
            states = cloud_actions.plan_together(conn, [intents[one.token] for one in mine]) if mine else {}
        ask = [one for one in mine if states.get(intents[one.token].event_id, "DONE") != "DONE"]
        answers = send(ask) if ask else ()
        outcomes: dict[int, Trouble | None] = {one.token: answer for one, answer in zip(ask, answers, strict=True)}
        return [self._noted(intents[one.token], outcomes.get(one.token), states) for one in requests]

    def _noted(self, intent: Intent, trouble: Trouble | None, states: Mapping[UUID, str]) -> Trouble | None:
        """Return the result of a request, and note its step as done if there is no trouble."""
        if intent.event_id not in states:
            return Fenced(f"event {intent.event_id} belongs to another worker")
        if trouble is None:
            self.done[intent.event_id] = intent.step
        return trouble


def _intent(run: Run, step: str) -> Intent:
    return Intent(run.event.id, run.event.due_at, step, run.token)


def batched(climate: Climate) -> frozenset[Batched]:
    """Return the kinds of events that can run together over this cloud, with the queues of their resource types."""
    return frozenset(
        Batched(queue_of(resource_type), kind)
        for resource_type, plugin in climate.plugins.items()
        for kind in TOGETHER
        if _hook(climate, plugin, kind) is not None
    )


def _hook(climate: Climate, plugin: object, kind: EventKind) -> Callable[..., Sequence[Trouble | None]] | None:
    """Return the hook for several events of a kind.

    Return None where there is none, the cloud lacks its interface, or a subclass overrides the hook for one event only.
    """
    together = TOGETHER.get(kind)
    if together is None or not isinstance(climate.cloud, together.cloud):
        return None
    for one in type(plugin).__mro__:
        if together.name in vars(one):
            return getattr(plugin, together.name, None)
        if together.of_one in vars(one):
            return None
    return None


def run(climate: Climate, messages: Sequence[Message], worker: str) -> None:
    """Start, act and record, each once for all of the events.

    Skips duplicate and outdated messages. Gives back events that cannot run together.
    """
    try:
        runs = _begin(climate, messages, worker)
    except Exception:  # the rows of one lease may be the cause
        log.exception("batch not begun; running events one by one", count=len(messages))
        _release_claims(climate, messages, worker)
        return
    if runs:
        _work_on(climate, runs, worker)


def _work_on(climate: Climate, runs: Sequence[Run], worker: str) -> None:
    late = {run.event.id: outcome for run in runs if (outcome := events.too_late(run))}
    asked = _send_requests(climate, [run for run in runs if run.event.id not in late])
    ended = [FinishedRun(run, [], late[run.event.id]) for run in runs if run.event.id in late]
    ended += [FinishedRun(run, done, _outcome(run, why)) for run, done, why in asked if not isinstance(why, InUse)]
    _settle(climate, ended)
    back = [run.claim for run, _, why in asked if isinstance(why, InUse)]
    if back:
        _release_claims(climate, back, worker)


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
        begun = claim_batches.start(conn, messages, worker, climate.other_time(conn), limits)
        leases_by_event = leases.of_events(conn, begun)
        held = pool_membership.of(
            conn, {host for lease in leases_by_event.values() for r in lease.reservations for host in r.hosts}
        )
        runs = [
            _run(climate, leases_by_event[m.event_id], m, worker, begun[m.event_id], held)
            for m in messages
            if m.event_id in leases_by_event
        ]
        fit = _fit(runs, power.of(conn, held))
        chosen = {run.token for run in fit}
        others = [run.claim for run in runs if run.token not in chosen]
        if others:
            claim_batches.release_unbegun(conn, others, worker)
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
    for run in runs:
        is_ready = run.event.kind is not EventKind.START or _are_ready(run, supplies)
        if is_ready and _is_simple(run.climate, run.lease, run.event) and not taken & set(run.places):
            fit.append(run)
            taken |= set(run.places)
    return fit


def _is_simple(climate: Climate, lease: Lease, event: Event) -> bool:
    """Return whether a batch can run it: its lease has one reservation, which lies here and has only hosts.

    An end that releases hosts with their servers runs alone, because it reads who needs them next.
    """
    if len(lease.reservations) != 1 or event.shares:
        return False
    (reservation,) = lease.reservations
    plugin = climate.plugins.get(reservation.resource_type)
    releases = event.kind is EventKind.END and pools.on_end(reservation) is OnEnd.RELEASE
    return _has_hosts_only(reservation) and not releases and _hook(climate, plugin, event.kind) is not None


def _has_hosts_only(reservation: Reservation) -> bool:
    return bool(reservation.holds) and not (reservation.parts or reservation.amounts or reservation.addresses)


def _are_ready(run: Run, supplies: Mapping[int, Supply]) -> bool:
    """Return whether all hosts can be handed over, and are up."""
    lacking = (host_handover.lacking(r, _held(run, r), patient=False) for r in run.lease.reservations)
    up = (
        place.host not in supplies or (place.on and not switching.is_going(place, supplies[place.host]))
        for place in run.places.values()
    )
    return not any(lacking) and all(up)


def _held(run: Run, reservation: Reservation) -> list[HostPlace]:
    return [run.places[host] for host in reservation.hosts]


def _act(runs: Sequence[Run], is_lost: Callable[[UUID], bool]) -> list[Asked]:
    """Have the plugins hand over the reserved hosts, or take them back."""
    result: list[Asked] = []
    by_hook: dict[tuple[str, EventKind], list[Run]] = {}
    for run in runs:
        by_hook.setdefault((run.lease.resource_types[0], run.event.kind), []).append(run)
    for (resource_type, kind), own in by_hook.items():
        climate = own[0].climate
        hook = _hook(climate, climate.plugins[resource_type], kind)
        assert hook is not None
        result += _asked(own, TogetherSteps(own, is_lost), hook)
    return result


def _asked(runs: Sequence[Run], cloud: TogetherSteps, hook: Callable[..., Sequence[Trouble | None]]) -> list[Asked]:
    lent = [
        (run, events.reservation_context(run, r, tuple(p.name for p in _held(run, r))))
        for run in runs
        for r in run.reservations
    ]
    said = hook(cloud, [each for _, each in lent])
    troubles: dict[UUID, Trouble] = {}
    for (one, _), trouble in zip(lent, said, strict=True):
        if trouble is not None:
            troubles.setdefault(one.event.id, trouble)
    return [
        (run, [cloud.done[run.event.id]] if run.event.id in cloud.done else [], troubles.get(run.event.id))
        for run in runs
    ]


def _outcome(run: Run, trouble: Trouble | None) -> Outcome:
    if isinstance(trouble, Fenced):
        return events.outcome_of(run, [NotYet(events.WORKED_ON)], {})
    return events.outcome_of(run, [] if trouble is None else [trouble], {})


def _settle(climate: Climate, ended: Sequence[FinishedRun]) -> None:
    """Record all results in one transaction, or one by one if that fails."""
    if not ended:
        return
    try:
        kinds = transaction.run(climate, _recorded, climate, ended)
    except Exception:
        log.exception("batch result failed; recording results one by one", count=len(ended))
        for one in ended:
            _settle_alone(one)
        return
    log.info("events settled", count=len(kinds), refused=len(ended) - len(kinds))


def _settle_alone(one: FinishedRun) -> None:
    """Record one result; if that fails too, the claim expires and the event is put back."""
    try:
        events.settle(one.run, one.steps, one.outcome)
    except Exception:
        log.exception("event result not recorded", event_id=str(one.run.event.id), lease_id=str(one.run.lease.id))


def _recorded(conn: Connection, climate: Climate, ended: Sequence[FinishedRun]) -> list[UUID]:
    """Record the results of events that this worker still claims; return their ids."""
    locked = {lease.id: lease for lease in leases.lock(conn, {one.run.lease.id for one in ended})}
    mine, settled = claim_batches.settle(conn, [one.settled for one in ended if one.run.lease.id in locked])
    now = climate.other_time(conn) or settled
    happened = [_happened(one, locked[one.run.lease.id], now) for one in ended if one.run.event.id in mine]
    if happened:
        events.write(conn, climate, happened, now)
    return [one.run.event.id for one in happened]


def _happened(one: FinishedRun, lease: Lease, now: datetime) -> RunEffect:
    facts: Sequence[Fact] = one.outcome(lease, now)
    return RunEffect(one.run, lease, facts)


def _release_claims(climate: Climate, messages: Sequence[Message], worker: str) -> None:
    """Send a message for each event at once, unless another worker has claimed it."""
    with climate.engine.begin() as conn:
        if claim_batches.release_unbegun(conn, messages, worker):
            event_claims.wake_poller(conn)
