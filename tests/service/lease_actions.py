"""What tests of the verbs do again and again."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.events.event import Event
from climate.domain.facts import Fact
from climate.domain.lease import Lease
from climate.domain.status import EventKind
from climate.service.events import event_dispatch, events
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.store.leases import event_claims as claims
from climate.store.leases.event_claims import Limits, Message
from tests.conftest import ADMIN, MEMBER, Clock

WAIT_OVER, EXPIRE, SYNC, PREPARE, START, ADJUST, ADDITIONAL, BEFORE_END, CLOSE, END = EventKind

TABLES = ("journal", "leases", "reservations", "events", "allocations", "claims", "actions", "idempotency_keys")


def hosts_wanted(least: int = 1, most: int | None = None, **more: Any) -> dict[str, Any]:
    return {"resource_type": "physical:host", "min": least, "max": most or least, **more}


def make(climate: Climate, clock: Clock, *wanted: dict[str, Any], start: float = 1, hours: float = 2) -> Lease:
    """A lease of the member's, `start` hours from now."""
    begin = clock.time + timedelta(hours=start)
    order = LeaseRequest("l", begin, begin + timedelta(hours=hours), None, wanted or [hosts_wanted()])
    return leases.create(climate, MEMBER, order)


def rows(engine: Engine) -> dict[str, list[str]]:
    """All that the engine's tables say."""
    with engine.connect() as conn:
        return {
            name: sorted(str(row) for row in conn.execute(text(f"SELECT t::text FROM {name} t"))) for name in TABLES
        }


def held(lease: Lease) -> set[int]:
    return {host for reservation in lease.reservations for host in reservation.hosts}


def get(climate: Climate, lease: Lease) -> Lease:
    return leases.get(climate, ADMIN, lease.id)


def event(climate: Climate, lease: Lease, kind: EventKind) -> Event:
    return get(climate, lease).event(kind)


def listed_events(climate: Climate, status: str | None, limit: int) -> list[tuple[Lease, Event]]:
    """Events with their leases, all of which can be read."""
    found = events.rows(climate, ADMIN, status, limit)
    return [(lease, lease.event(event_id)) for event_id, lease in found if isinstance(lease, Lease)]


def facts(climate: Climate, lease: Lease) -> list[Fact]:
    return [entry.fact for entry in leases.history(climate, ADMIN, lease.id)]


def kinds(climate: Climate, lease: Lease) -> list[str]:
    return [type(fact).__name__ for fact in facts(climate, lease)]


def claim(climate: Climate) -> list[Message]:
    """What a poller would send now."""
    event_dispatch.claim_due(climate, "poller")
    return event_dispatch.to_send(climate)


def begin(climate: Climate) -> list[Message]:
    """Claim what is due, and have workers begin it."""
    messages = claim(climate)
    with climate.engine.begin() as conn:
        now = climate.now(conn)
        for message in messages:
            assert claims.start(conn, message, "worker", now, Limits(timedelta(minutes=1), timedelta(minutes=1)))
    return messages


def run(climate: Climate, message: Message, worker: str = "worker") -> None:
    events.run(climate, message.event_id, message.token, worker)


def run_due(climate: Climate) -> int:
    """Claim and run until nothing is due; how many runs that were."""
    count = 0
    while messages := claim(climate):
        for message in messages:
            run(climate, message)
        count += len(messages)
    return count


def lost(climate: Climate, clock: Clock) -> None:
    """The worker is not heard of any more; its event comes back."""
    clock.forward(seconds=climate.settings.claim_seconds + 1)
    assert event_dispatch.rescue(climate, "poller") == 1
    clock.forward(seconds=5)


def settle(climate: Climate, clock: Clock, *, hours: float = 0) -> None:
    """Let time pass in small steps until nothing that was put back is left before that time."""
    until = clock.time + timedelta(hours=hours)
    while True:
        event_dispatch.rescue(climate, "poller")
        run_due(climate)
        wait = event_dispatch.next_due(climate)
        if wait is None or clock.time + wait > until:
            break
        clock.time += wait
    clock.time = until


def reservation(lease: Lease) -> str:
    """The pool of a lease with one reservation."""
    return str(lease.reservations[0].id)


def id_of(lease: Lease, kind: EventKind) -> UUID:
    return lease.event(kind).id
