"""Users, workers, rounds and admins at once, each in threads of its own, on one database; counts the deadlocks."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Lock, Thread
from typing import Any
from uuid import UUID

from psycopg.errors import DeadlockDetected
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from climate.cloud import CloudError, Refused
from climate.context import Climate
from climate.domain.errors import ClimateError, NotFound
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.planning.series import Make
from climate.power import PowerDriver
from climate.service.events import event_dispatch, events
from climate.service.host_operations import failures, maintenance, pool_moves, pools
from climate.service.hosts import inventory, reservable
from climate.service.leases import healing, host_replacement, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.service.power import power
from climate.service.power.power import ManualRequest, Wiring
from climate.service.preemption import round as preemption
from climate.service.series import change as series_change
from climate.service.series import create as series
from climate.service.series.change import SeriesChanges
from climate.service.series.create import SeriesOrder
from climate.settings import Settings
from climate.store import db_errors
from climate.store.hosts.maintenance import WindowFilter
from climate.store.leases.due_events import Cursor
from climate.store.leases.leases import Listing
from climate.store.leases.series import SeriesListing
from tests.conftest import ADMIN, MEMBER, cloud_host
from tests.installed_plugins import installed_plugins
from tests.machine.deployment import SUPPLY, Supplies
from tests.machine.machine_cloud import Ground
from tests.service.capacity_factory import servers
from tests.service.floating_ip_factory import addresses_wanted, registered
from workers import rounds

HOSTS = 12
RATE = 120
"""Seconds of the engine's clock in one second."""

SETTINGS = Settings(
    minutes_before_end=0,
    cleaning_time=60,
    recycle_lead=120,
    preemption_notice=30,
    failed_after=60,
    idle_off_after=600,
    power_on_lead=120,
    power_timeout=300,
)
TERMS = ({"horizon": 0, "target": 9}, {"horizon": 3600, "spare": 2, "margin": 0, "slack": 1, "dwell": 60})


@dataclass
class FastClock:
    """A clock that runs `RATE` times as fast as the machine's."""

    began: float = field(default_factory=time.monotonic)

    def now(self) -> datetime:
        return datetime(2030, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=RATE * (time.monotonic() - self.began))

    def __call__(self, _: Connection) -> datetime:
        return self.now()


Act = Callable[["Load", Random], object]


@dataclass
class Load:
    """One engine under load.  `done` counts what was carried out, `refused` what was not."""

    engine: Engine
    clock: FastClock = field(default_factory=FastClock)
    cloud: Ground = field(default_factory=Ground)
    supply: Supplies = field(default_factory=Supplies)
    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    deadlocks: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.supply.now = lambda: self.clock.now().timestamp()
        drivers: Mapping[str, PowerDriver] = {"memory": self.supply}
        chance = Random(1).random
        self.climate = Climate(
            self.engine, self.cloud, installed_plugins(), SETTINGS, self.clock, chance, power=drivers
        )
        self.cloud.set_hosts([cloud_host(f"h{number}") for number in range(1, HOSTS + 1)])
        for number in range(1, HOSTS + 1):
            inventory.register(self.climate, ADMIN, f"h{number}", {})
        for number in range(1, HOSTS + 1, 3):
            power.put(self.climate, ADMIN, str(number), Wiring("memory", SUPPLY))
        registered(self.climate, 6)
        pools.change(self.climate, ADMIN, Pool.RESERVATION, TERMS[0])
        event.listen(self.engine, "handle_error", self._note)

    def _note(self, context: Any) -> None:
        if isinstance(context.original_exception, DeadlockDetected):
            self.deadlocks.append(f"{context.statement}\n{context.original_exception}")

    def run(self, seconds: float, seed: int = 1) -> None:
        """Let every kind of actor act for so long."""
        until = time.monotonic() + seconds
        actors = [acts for acts, threads in ACTORS for _ in range(threads)]
        threads = [
            Thread(target=self._go_on, args=(acts, Random(seed * 1000 + place), until))
            for place, acts in enumerate(actors)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _go_on(self, acts: Sequence[Act], chance: Random, until: float) -> None:
        while time.monotonic() < until:
            act = chance.choice(acts)
            try:
                act(self, chance)
                self._count(self.done, act)
            except (ClimateError, CloudError):
                self._count(self.refused, act)
            except DBAPIError as error:
                self._count(self.refused, act)
                if not db_errors.is_transient(error):
                    self.errors.append(error)
            except BaseException as error:
                self.errors.append(error)

    def _count(self, counts: Counter[str], act: Act) -> None:
        with self.lock:
            counts[_name(act)] += 1

    def never_done(self) -> set[str]:
        """Return the acts of which none was carried out: of those nothing is known."""
        return {_name(act) for acts, _ in ACTORS for act in acts if not self.done[_name(act)]}

    def known(self) -> list[Lease]:
        return leases.listed(self.climate, ADMIN, Listing())


def _name(act: Act) -> str:
    return act.__name__.strip("_")


def _reservation(chance: Random) -> dict[str, Any]:
    kind = chance.randrange(5)
    if kind == 0:
        return servers(chance.randint(1, 4), vcpus=chance.randint(1, 2))
    if kind == 1:
        return addresses_wanted(chance.randint(1, 2))
    least = chance.randint(1, 3)
    terms = {"on_end": chance.choice(["terminate", "recycle", "release"]), "grace_period": chance.choice([0, 0, 60])}
    return {"resource_type": "physical:host", "min": least, "max": least + chance.randint(0, 1), **terms}


def _create(load: Load, chance: Random) -> None:
    start = load.clock.now() + timedelta(minutes=chance.choice([0, 0, 1, 3, 10]))
    wanted = [_reservation(chance) for _ in range(chance.choice([1, 1, 2, 3]))]
    order = LeaseRequest("l", start, start + timedelta(minutes=chance.choice([2, 4, 8])), None, wanted)
    leases.create(load.climate, MEMBER, order)


def _create_preemptible(load: Load, chance: Random) -> None:
    """Take what is free, now or a little later, for longer than others."""
    start = load.clock.now() + timedelta(minutes=chance.choice([0, 0, 2]))
    wanted = {"resource_type": "physical:host", "min": 1, "max": chance.randint(1, HOSTS), "preemptible": True}
    leases.create(load.climate, MEMBER, LeaseRequest("p", start, start + timedelta(minutes=20), None, [wanted]))


def _preempt(load: Load, chance: Random) -> None:
    """Warn and take what is due."""
    if not preemption.run_round(load.climate):
        raise NotFound("nothing was due")


def _update(load: Load, chance: Random) -> None:
    found = load.known()
    if not found:
        return
    lease = chance.choice(found)
    sizes = [
        {"id": str(r.id), "min": least, "max": least + 1} if "max" in r.spec else {"id": str(r.id), "amount": least}
        for r in lease.reservations
        for least in [chance.randint(1, 3)]
    ]
    end = chance.choice([None, lease.period.end + timedelta(minutes=chance.randint(1, 5))])
    update.update(load.climate, MEMBER, lease.id, Changes(end=end, reservations=chance.choice([sizes, ()])))


def _delete(load: Load, chance: Random) -> None:
    if len(found := load.known()) > 8:
        leases.delete(load.climate, MEMBER, chance.choice(found).id)


OFTEN = f"FREQ=DAILY;BYHOUR={','.join(map(str, range(24)))};BYMINUTE={','.join(map(str, range(0, 60, 5)))};COUNT=3"
"""Rule of a series with an occurrence each five minutes."""


def _create_series(load: Load, chance: Random) -> None:
    start = load.clock.now() + timedelta(minutes=chance.choice([1, 3, 10]))
    wanted = [_reservation(chance) for _ in range(chance.choice([1, 1, 2]))]
    order = LeaseRequest("s", start, start + timedelta(minutes=chance.choice([2, 8])), None, wanted)
    series.create(load.climate, MEMBER, SeriesOrder(order, OFTEN, "UTC", chance.choice(list(Make))))


def _known_series(load: Load) -> list[UUID]:
    return [one.id for one, _ in series_change.listed(load.climate, ADMIN, SeriesListing())]


def _change_series(load: Load, chance: Random) -> None:
    if found := _known_series(load):
        by = timedelta(minutes=chance.choice([-2, 3, 5]))
        changes = chance.choice([SeriesChanges(move_by=by), SeriesChanges(extend_by=by)])
        series_change.change(load.climate, MEMBER, chance.choice(found), changes)


def _delete_series(load: Load, chance: Random) -> None:
    if found := _known_series(load):
        series_change.delete(load.climate, MEMBER, chance.choice(found))


def _work(load: Load, chance: Random) -> None:
    """One beat of a poller, and the workers that it rings for."""
    event_dispatch.rescue(load.climate, "poller")
    event_dispatch.claim(load.climate, "poller", Cursor(), limit=10)
    for message in event_dispatch.to_send(load.climate):
        events.run(load.climate, message.event_id, message.token, f"worker-{chance.random()}")


def _numbers(load: Load, chance: Random, most: int = 4) -> list[str]:
    there = [str(host.id) for host in inventory.listed(load.climate, ADMIN)]
    if not there:
        raise NotFound("all hosts were removed")
    return chance.sample(there, min(len(there), chance.randint(1, most)))


def _move(load: Load, chance: Random) -> None:
    to = chance.choice([Pool.RESERVATION] * 3 + [Pool.MULTI_TENANT, Pool.FAILED])
    order = pool_moves.RequestedMove(_numbers(load, chance), to, force=chance.random() < 0.7)
    pool_moves.move(load.climate, ADMIN, order)


def _plan_windows(load: Load, chance: Random) -> None:
    start = load.clock.now() + timedelta(seconds=chance.choice([1, 30, 120]))
    end = start + timedelta(seconds=chance.choice([30, 120]))
    orders = [maintenance.WindowRequest(one, start, end, "new fans", force=True) for one in _numbers(load, chance, 3)]
    maintenance.plan_all(load.climate, ADMIN, orders)


def _windows(load: Load) -> list[UUID]:
    return [one.id for one in maintenance.listed(load.climate, ADMIN, WindowFilter())]


def _change_window(load: Load, chance: Random) -> None:
    if found := _windows(load):
        end = load.clock.now() + timedelta(seconds=chance.choice([60, 180]))
        changed = maintenance.Changes(end=end, reason="more fans", force=True)
        maintenance.change(load.climate, ADMIN, chance.choice(found), changed)


def _end_window(load: Load, chance: Random) -> None:
    if found := _windows(load):
        maintenance.end(load.climate, ADMIN, chance.choice(found))


def _fail(load: Load, chance: Random) -> None:
    failures.fail(load.climate, ADMIN, chance.choice(_numbers(load, chance)), "smoke")


def _heal(load: Load, chance: Random) -> None:
    failures.heal(load.climate, ADMIN, chance.choice(_numbers(load, chance)))


def _open(load: Load, chance: Random) -> None:
    reservable.open_to_promises(load.climate, ADMIN, chance.choice(_numbers(load, chance)), chance.random() < 0.8)


def _describe(load: Load, chance: Random) -> None:
    inventory.update(load.climate, ADMIN, chance.choice(_numbers(load, chance)), {"rack": str(chance.randint(1, 3))})


def _remove(load: Load, chance: Random) -> None:
    """Remove a host; it has windows now and then."""
    inventory.remove(load.climate, ADMIN, chance.choice(_numbers(load, chance)))


def _register(load: Load, chance: Random) -> None:
    """Register what was removed."""
    there = {str(host.name) for host in inventory.listed(load.climate, ADMIN)}
    for name in sorted({f"h{number}" for number in range(1, HOSTS + 1)} - there):
        inventory.register(load.climate, ADMIN, name, {})


def _switch(load: Load, chance: Random) -> None:
    power.switch(load.climate, ADMIN, chance.choice(_numbers(load, chance)), ManualRequest(chance.random() < 0.7))


def _reallocate(load: Load, chance: Random) -> None:
    held = [(one, host) for one in load.known() for r in one.reservations for host in r.hosts]
    if held:
        lease, host = chance.choice(held)
        to = chance.choice([None, *_numbers(load, chance)])
        order = host_replacement.ReplacementRequest(str(host), lease.id, to=to, force=chance.random() < 0.5)
        host_replacement.reallocate(load.climate, ADMIN, order)


def _change_terms(load: Load, chance: Random) -> None:
    pools.change(load.climate, ADMIN, Pool.RESERVATION, chance.choice(TERMS))


def _rounds(load: Load, chance: Random) -> None:
    chance.choice([*rounds.ROUNDS, *rounds.OUTSIDE_ROUNDS])(load.climate)


def _heal_all(load: Load, chance: Random) -> None:
    healing.heal_all(load.climate)


def _break(load: Load, chance: Random) -> None:
    """Hosts fall ill or recover; servers come and go on the hosts that are lent."""
    names = [f"h{number}" for number in range(1, HOSTS + 1)]
    load.cloud.unwell = dict.fromkeys(chance.sample(names, chance.randint(0, 2)), "its service is down")
    for name in chance.sample(names, 3):
        try:
            load.cloud.boot("project", name)
        except Refused:
            continue
    for server in load.cloud.servers():
        if chance.random() < 0.3:
            load.cloud.lose(server.id)
    time.sleep(0.1)


OF_SERIES: Sequence[Act] = (_create_series, _change_series, _delete_series)
USERS: Sequence[Act] = (_create, _create, _create, _create_preemptible, _update, _update, _delete)
ADMINS: Sequence[Act] = (
    _move,
    _move,
    _fail,
    _heal,
    _heal,
    _open,
    _describe,
    _remove,
    _register,
    _register,
    _switch,
    _reallocate,
    _change_terms,
)
WINDOWS: Sequence[Act] = (_plan_windows, _plan_windows, _change_window, _end_window)
ACTORS: Sequence[tuple[Sequence[Act], int]] = (
    (USERS, 5),
    (OF_SERIES, 2),
    ((_work,), 3),
    (ADMINS, 3),
    (WINDOWS, 2),
    ((_rounds,), 4),
    ((_heal_all,), 1),
    ((_preempt,), 1),
    ((_break,), 1),
)
