"""An engine over a bundled cloud, whose events run in batches."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text
from structlog.testing import capture_logs

from climate.cloud import Loan, Return, Trouble
from climate.cloud.bundled import BundledCloud
from climate.compute import Compute
from climate.compute.nodes import services
from climate.context import Climate
from climate.domain.lease import Lease
from climate.service.events import event_batches, event_dispatch
from climate.service.hosts import inventory
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.settings import Settings
from climate.store.engine import database_time
from climate.store.leases.event_claims import Message
from tests.api.compute.api_clients import ENGINE_TABLES
from tests.compute.cloud_factory import node, place
from tests.conftest import ADMIN, MEMBER
from tests.installed_plugins import installed_plugins
from tests.service.lease_actions import hosts_wanted, run

NODES = tuple(f"n{number}" for number in range(8))


@dataclass
class Here:
    """An engine over a bundled cloud of eight hosts, with a clock that can be set forward."""

    climate: Climate
    ahead: timedelta = timedelta(0)

    def time(self, conn: Connection) -> datetime:
        return database_time(conn) + self.ahead

    def due(self, count: int) -> list[Lease]:
        """Make leases of one host whose starts are due."""
        end = datetime.now(UTC) + timedelta(days=1)
        orders = [LeaseRequest(f"l{number}", None, end, None, [hosts_wanted()]) for number in range(count)]
        return [leases.create(self.climate, MEMBER, order) for order in orders]

    def ending(self, count: int, policies: Sequence[str] = ()) -> list[Lease]:
        """Make leases of one host that have started, and whose ends are due; `policies` are their `on_end`."""
        specs: list[dict[str, str]] = [{"on_end": policy} for policy in policies] or [{}] * count
        end = datetime.now(UTC) + self.ahead + timedelta(days=1)
        orders = [LeaseRequest(f"e{n}", None, end, None, [hosts_wanted(1, 1, **spec)]) for n, spec in enumerate(specs)]
        made = [leases.create(self.climate, MEMBER, order) for order in orders]
        event_batches.run(self.climate, self.rung(), "worker")
        assert self.status(made) == ["ACTIVE"] * count
        self.ahead += timedelta(days=1)
        return made

    def near_their_ends(self, count: int, **spec: str) -> list[Lease]:
        """Make leases of one host that have started, and whose before_end events are due."""
        end = (datetime.now(UTC) + self.ahead + timedelta(days=1)).replace(microsecond=0)
        before = end - timedelta(hours=1)
        orders = [LeaseRequest(f"b{n}", None, end, before, [hosts_wanted(1, 1, **spec)]) for n in range(count)]
        made = [leases.create(self.climate, MEMBER, order) for order in orders]
        event_batches.run(self.climate, self.rung(), "worker")
        assert self.status(made) == ["ACTIVE"] * count
        self.ahead += timedelta(hours=23, minutes=30)
        return made

    def pool_of(self, lease: Lease) -> tuple[object, ...]:
        """The pool of the first host of a lease: of the engine, and of the cloud."""
        query = (
            "SELECT h.pool, n.pool FROM hosts h JOIN compute_nodes n ON n.name = hypervisor_hostname WHERE h.id = :id"
        )
        with self.climate.engine.connect() as conn:
            return tuple(conn.execute(text(query), {"id": lease.reservations[0].hosts[0]}).one())

    def rung(self) -> list[Message]:
        """Claim what is due; the messages of the poller."""
        event_dispatch.claim_due(self.climate, "poller")
        return event_dispatch.to_send(self.climate, event_batches.batched(self.climate))

    def status(self, made: list[Lease]) -> list[str]:
        return [leases.get(self.climate, ADMIN, lease.id).status for lease in made]

    def facts(self, lease: Lease) -> list[str]:
        return [type(entry.fact).__name__ for entry in leases.history(self.climate, ADMIN, lease.id)]

    def write(self, statement: str, **given: object) -> None:
        with self.climate.engine.begin() as conn:
            conn.execute(text(statement), given)

    def claims(self) -> list[tuple[object, ...]]:
        """Of each claim, whether it is begun, rung for, and how often that was."""
        with self.climate.engine.connect() as conn:
            query = "SELECT started_at IS NOT NULL, dispatched_at IS NOT NULL, dispatches FROM claims"
            return [tuple(row) for row in conn.execute(text(query))]


@dataclass(frozen=True)
class Watched(BundledCloud):
    """A cloud that calls `look` before it lends or takes back together."""

    look: Callable[[Sequence[Any]], object] = lambda wanted: None

    def lend_together(self, loans: Sequence[Loan]) -> Sequence[Trouble | None]:
        self.look(loans)
        return super().lend_together(loans)

    def take_back_together(self, returns: Sequence[Return]) -> Sequence[Trouble | None]:
        self.look(returns)
        return super().take_back_together(returns)


def _engine_of(compute: Compute) -> Climate:
    settings = Settings(home=compute.home, minutes_before_end=0)
    return Climate(compute.engine, BundledCloud(compute), installed_plugins(), settings)


def _register(compute: Compute) -> None:
    """Register all nodes as hosts of leases, and create what a new cloud has."""
    services.furnish(compute)
    for name in NODES:
        inventory.register(_engine_of(compute), ADMIN, name, {})


@contextmanager
def eight_hosts(database: str, home: Path) -> Iterator[Here]:
    """Yield an engine over eight hosts, in a database with all tables."""
    nodes = [node(name) for name in NODES]
    with place(database, home, nodes, tables=ENGINE_TABLES, furnish=_register) as found:
        there = Here(climate := _engine_of(found.compute))
        there.climate = replace(climate, now=there.time)
        with capture_logs():  # to render all that a traceback refers to takes a minute
            yield there


def watched(here: Here, look: Callable[[Sequence[Loan]], object]) -> Climate:
    cloud = here.climate.cloud
    assert isinstance(cloud, BundledCloud)
    return replace(here.climate, cloud=Watched(cloud.compute, look))


def host_of(here: Here, lease: Lease) -> str:
    with here.climate.engine.connect() as conn:
        query = text("SELECT hypervisor_hostname FROM hosts WHERE id = :id")
        return str(conn.scalar(query, {"id": lease.reservations[0].hosts[0]}))


def run_alone(here: Here) -> list[Message]:
    """Let workers do what was given back: each by a message of its own."""
    messages = here.rung()
    assert len({message.number for message in messages}) == len(messages)
    for message in messages:
        run(here.climate, message)
    return messages
