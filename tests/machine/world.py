"""An engine, a cloud, a queue of messages and the ways in which each of them fails."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, event, text

from climate.cloud import RESERVED
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import EventKind, HoldState
from climate.power import PowerDriver
from climate.service.events import event_dispatch, events
from climate.service.hosts import inventory
from climate.settings import Settings
from climate.store.engine import connect
from climate.store.leases import leases
from climate.store.leases.event_claims import Message
from climate.store.tables import metadata
from tests import databases
from tests.conftest import ADMIN, Clock, cloud_host
from tests.installed_plugins import installed_plugins
from tests.service.lease_actions import listed_events

HOSTS = ("h1", "h2", "h3", "h4")
TABLES = (
    "journal, leases, reservations, events, allocations, floating_allocations, inventory_allocations, claims, actions, "
    "idempotency_keys, maintenance_windows, host_power, cleanings, pool_terms, limits, notices, "
    "lease_series, waiting_marks"
)


M = TypeVar("M")


@contextmanager
def on_database(
    machine: type[M], url: str, furnish: Callable[[Climate], object] = lambda climate: None
) -> Iterator[type[M]]:
    """A state machine on a database in which the hosts are registered, and what `furnish` adds."""
    engine = connect(url, pool_size=5)
    climate = Climate(engine, FakeCloud({name: cloud_host(name) for name in HOSTS}), {}, Settings(), Clock())
    for name in HOSTS:
        inventory.register(climate, ADMIN, name, {})
    furnish(climate)
    yield type(f"{machine.__name__}OnDatabase", (machine,), {"engine": engine})
    engine.dispose()


class WorkerDied(BaseException):
    """The process is gone: no handler runs, nothing is recorded."""


@dataclass
class World:
    """One deployment.  Messages lie in `queue` until a worker takes them; those taken are kept in `old`."""

    engine: Engine
    clock: Clock = field(default_factory=Clock)
    cloud: FakeCloud = field(default_factory=FakeCloud)
    queue: list[Message] = field(default_factory=list)
    old: list[Message] = field(default_factory=list)
    at_verb: Callable[[], None] | None = None
    """What happens to the worker at its next verb."""
    settings: Settings = field(default_factory=lambda: Settings(minutes_before_end=0, claim_seconds=15))
    power: Mapping[str, PowerDriver] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cloud.set_hosts([cloud_host(name) for name in HOSTS])
        self.cloud.watch = self._watched
        self.climate = Climate(
            self.engine, self.cloud, installed_plugins(), self.settings, self.clock, lambda: 0.5, power=self.power
        )
        for name in HOSTS:
            self.cloud.enrol(name, 1)

    def _watched(self, _: str) -> None:
        assert self.engine.pool.checkedout() == 0, "a transaction is open while the cloud works"  # type: ignore[attr-defined]
        if self.at_verb is not None:
            strike, self.at_verb = self.at_verb, None
            strike()

    def send(self) -> list[Message]:
        """One beat of a poller: what it would ring for."""
        event_dispatch.claim_due(self.climate, "poller")
        return event_dispatch.to_send(self.climate)

    def run(self, message: Message, worker: str = "worker") -> None:
        """A worker takes the message; should it die, that is all."""
        self.old.append(message)
        try:
            events.run(self.climate, message.event_id, message.token, worker)
        except WorkerDied:
            pass
        finally:
            self.at_verb = None

    def run_all(self) -> int:
        """Poller and workers as they should be, until nothing is due; how many runs that were."""
        count = 0
        while messages := self.send():
            for message in messages:
                self.run(message)
            count += len(messages)
        return count

    def strike_at_verb(self, number: int, strike: Callable[[], None]) -> None:
        """Let something happen when the cloud is asked for the `number`th time from now."""

        def count_down(left: int) -> Callable[[], None]:
            def look() -> None:
                if left == 0:
                    strike()
                else:
                    self.at_verb = count_down(left - 1)

            return look

        self.at_verb = count_down(number)

    def pause(self, worker: str) -> None:
        """The worker stands still for so long that its event is given to another, which does the work meanwhile."""
        self.clock.forward(seconds=60)
        event_dispatch.rescue(self.climate, "poller")
        self.clock.forward(seconds=60)
        self.run_all()

    @contextmanager
    def dying_before_the_record(self) -> Iterator[None]:
        """Workers die after they have acted, in the transaction that would record it."""

        def die(*executed: Any) -> None:
            if executed[2].startswith("DELETE FROM claims"):
                raise WorkerDied

        event.listen(self.engine, "before_cursor_execute", die)
        try:
            yield
        finally:
            event.remove(self.engine, "before_cursor_execute", die)

    def sleeping_server(self, server_id: str) -> None:
        self.cloud.boot("project", status=RESERVED, server_id=server_id)

    def leases(self) -> list[Lease]:
        """Every lease there ever was."""
        with self.engine.connect() as conn:
            return list(leases.all_of(conn))

    def get(self, lease: Lease) -> Lease:
        return next(known for known in self.leases() if known.id == lease.id)

    def pools(self) -> dict[str, set[str]]:
        """Pool -> its hosts, seen past all faults."""
        faults = self.cloud.broken, dict(self.cloud.failures), dict(self.cloud.unheard), self.at_verb
        self.cloud.broken, self.at_verb = False, None
        self.cloud.failures.clear()
        self.cloud.unheard.clear()
        try:
            return {pool: set(hosts) for pool, hosts in self.cloud.pools().items()}
        finally:
            self.cloud.broken, failures, unheard, self.at_verb = faults
            self.cloud.failures.update(failures)
            self.cloud.unheard.update(unheard)

    def free(self, period: Period) -> int:
        """How many hosts nobody holds in that time, by the leases themselves."""
        taken = {
            hold.host
            for lease in self.leases()
            for r in lease.reservations
            if lease.hold_state_of(r) is not HoldState.RELEASED
            for hold in r.holds
            if hold.during.overlaps(period)
        }
        return len(HOSTS) - len(taken)

    def fingerprint(self) -> list[str]:
        """All rows, as one text for each table."""
        with self.engine.connect() as conn:
            return [_rows(conn, name) for name in TABLES.split(", ")]

    def failed_ends(self) -> list[Lease]:
        return [lease for lease, known in listed_events(self.climate, "ERROR", 1000) if known.kind == "end_lease"]

    def heal(self) -> None:
        """The cloud is as it should be again; what had to be given up is given up on no longer."""
        self.cloud.broken, self.cloud.looks_until_gone, self.cloud.looks_until_awake = False, 0, 0
        self.cloud.looks_until_moved = 0
        self.cloud.failures.clear()
        self.cloud.unheard.clear()
        self.queue.clear()

    def come_to_rest(self) -> None:
        """Let time pass, from one due time to the next, until nothing is left to do."""
        for _ in range(500):
            event_dispatch.rescue(self.climate, "poller")
            ran = self.run_all()
            for lease in self.failed_ends():
                events.requeue(self.climate, ADMIN, lease.event(EventKind.END).id)
            wait = event_dispatch.next_due(self.climate)
            if self._claimed():
                self.clock.forward(seconds=20)
            elif wait is not None:
                self.clock.time += wait
            elif not ran:
                return
        raise AssertionError("the engine does not come to rest")

    def look_until_gone(self) -> None:
        """Servers whose deletion was asked for go after a few looks."""
        for _ in range(5):
            for server in self.cloud.sleeping():
                self.cloud.server(server.id)

    def _claimed(self) -> bool:
        with self.engine.connect() as conn:
            return int(conn.execute(text("SELECT count(*) FROM claims")).scalar_one()) > 0


BEGIN_AGAIN = """
    WITH emptied AS (UPDATE hosts SET version = 1, pool = 'reservation', pool_since = created_at, pool_reason = '',
        pool_cause = '', pool_token = 0, pool_reservation = NULL, pool_until = NULL, home = 'reservation',
        reservable = true, switched_on = true, tended_until = NULL, drift = '', doubted_since = NULL)
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT stream, 1, 'HostEnrolled',
        jsonb_build_object('host', id, 'at', created_at, 'name', hypervisor_hostname, 'pool', 'reservation',
            'extra', extra), '{}', ''
    FROM hosts
"""


def empty(engine: Engine) -> None:
    """No lease has ever been; the hosts stay."""
    with engine.begin() as conn:
        databases.empty(conn, [metadata.tables[name] for name in TABLES.split(", ")])
        conn.exec_driver_sql(BEGIN_AGAIN)


def _rows(conn: Connection, table: str) -> str:
    return str(conn.scalar(text(f"SELECT string_agg(t::text, '|' ORDER BY t::text) FROM {table} t")))
