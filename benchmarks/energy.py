"""A month of a reservation pool that switches off what is not needed: hours off, against what full knowledge allows.

The simulation steps from event to event.  Hosts are chosen as the engine does, best fit among a sample, ties by
chance; for a lease that starts sooner than a host that is off would be up, those that will be up in time come first.
"""

import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count

from benchmarks.figures import head, line, spread, timed
from climate.domain.hosts.power_planner import HOUR, Machine, Rules, Switch, best, next_change, plan, saved
from climate.domain.period import Period

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FAR = timedelta(days=3650)
SAMPLE = 32
SHUTDOWN = 2 * MINUTE
RETURN, ARRIVE, DEMAND, START, LOOK = range(5)
"""Events, in the order in which those of one moment come."""

Act = Callable[[datetime], None]


@dataclass(frozen=True, slots=True)
class Load:
    """Demand on the pool."""

    hosts: int = 200
    days: float = 30
    share: float = 0.5
    """Of all host-hours, those that are asked for."""
    at_once: float = 0.1
    """Of all leases, those that start when they are made; the others are made `notice` ahead."""
    notice: tuple[timedelta, timedelta] = (5 * MINUTE, timedelta(days=3))
    lasts: tuple[timedelta, timedelta] = (HOUR, 48 * HOUR)
    sizes: tuple[int, ...] = (1, 1, 1, 1, 1, 1, 1, 2, 2, 4)
    heeds: bool = True
    """Whether what starts soon goes to hosts that will be up in time, where there are any."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A request for a number of hosts, made at a moment, for a period."""

    at: datetime
    period: Period
    size: int


@dataclass(frozen=True, slots=True)
class Lease:
    """Hosts that are held for a period."""

    hosts: tuple[int, ...]
    period: Period


@dataclass(slots=True)
class Outcome:
    """Result of a run: hours, and how late each late start was."""

    leases: int = 0
    refused: int = 0
    lent: float = 0
    off: float = 0
    best: float = 0
    switches: int = 0
    late: list[timedelta] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return self.off / self.best


class Pool:
    """The hosts, what is promised of them, and the events to come."""

    def __init__(self, load: Load, rules: Rules, seed: int) -> None:
        self.load, self.rules, self.dice = load, rules, random.Random(seed)
        self.span = Period(BEGIN, BEGIN + timedelta(days=load.days))
        numbers = range(1, load.hosts + 1)
        self.machines = {number: Machine(number, True, BEGIN - FAR, BEGIN) for number in numbers}
        self.held: dict[int, list[Period]] = {number: [] for number in numbers}
        self.promises: dict[int, list[Period]] = {number: [] for number in numbers}
        self.history: dict[int, list[tuple[datetime, bool]]] = {number: [] for number in numbers}
        self.agenda: list[tuple[datetime, int, int, Act]] = []
        self.numbers = count()
        self.looks: set[datetime] = set()
        self.overdue: list[Lease] = []
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Through the whole span; then what was saved, and what could have been."""
        for demand in tuple(demands(self.load, self.dice)):
            self._note(demand.at, DEMAND, partial(self._promise, demand))
        self._heed(BEGIN)
        while self.agenda and self.agenda[0][0] < self.span.end:
            now, _, _, act = heappop(self.agenda)
            act(now)
            self._heed(now)
        self.outcome.late += [self.span.end - lease.period.start for lease in self.overdue]
        self.outcome.off = saved(self.history, self.span.end, BEGIN).total
        self.outcome.best = best(self.promises, self.span, self.rules)
        self.outcome.switches = sum(len(switches) for switches in self.history.values())
        return self.outcome

    def _note(self, at: datetime, kind: int, act: Act) -> None:
        heappush(self.agenda, (at, kind, next(self.numbers), act))

    def _heed(self, now: datetime) -> None:
        """Do what the plan says, and look again when it may say something else."""
        for switch in plan(list(self.machines.values()), self.rules, now):
            self._switch(switch, now)
        again = next_change(list(self.machines.values()), self.rules, now)
        if again and again not in self.looks:
            self.looks.add(again)
            self._note(again, LOOK, self.looks.discard)

    def _switch(self, switch: Switch, now: datetime) -> None:
        longest = self.rules.boot if switch.on else SHUTDOWN
        self._know(switch.host, on=switch.on, changed_at=now, changing=True)
        self.history[switch.host].append((now, switch.on))
        self._note(now + longest * self.dice.uniform(0.3, 1), ARRIVE, partial(self._arrive, switch.host))

    def _know(self, host: int, **changes: object) -> None:
        self.machines[host] = replace(self.machines[host], **changes)  # type: ignore[arg-type]

    def _arrive(self, host: int, now: datetime) -> None:
        self._know(host, changing=False)
        overdue, self.overdue = self.overdue, []
        for waiting in overdue:
            self._start(waiting, now)

    def _promise(self, demand: Demand, now: datetime) -> None:
        """A lease is asked for: it gets its hosts now, or is refused."""
        window, hosts = demand.period, self._chosen(demand, now)
        self.outcome.leases += bool(hosts)
        self.outcome.refused += not hosts
        for host in hosts:
            self.held[host] = sorted([*self.held[host], window], key=lambda period: period.start)
            self.promises[host].append(window)
            self._know(host, next_need=self._next_need(host))
            self.outcome.lent += max(timedelta(0), min(window.end, self.span.end) - window.start) / HOUR
        if hosts:
            self._note(window.start, START, partial(self._start, Lease(hosts, window)))

    def _chosen(self, demand: Demand, now: datetime) -> tuple[int, ...]:
        """Return the tightest fits of a sample of the free hosts; none if there are too few."""
        window = demand.period
        free = [host for host, held in self.held.items() if not any(window.overlaps(period) for period in held)]
        if len(free) < demand.size:
            return ()
        self.dice.shuffle(free)
        late = {host: self.load.heeds and self._up_by(host, now) > window.start for host in free}
        sample = sorted(free, key=late.__getitem__)[:SAMPLE]
        sample.sort(key=lambda host: (late[host], self._stretch(host, window)))
        return tuple(sorted(sample[: demand.size]))

    def _up_by(self, host: int, now: datetime) -> datetime:
        """Return the time at which the host is certainly up if it is requested."""
        machine = self.machines[host]
        if machine.on:
            return machine.changed_at + self.rules.boot if machine.changing else now
        return (machine.changed_at + SHUTDOWN if machine.changing else now) + self.rules.boot

    def _stretch(self, host: int, window: Period) -> timedelta:
        before = max((period.end for period in self.held[host] if period.start < window.start), default=None)
        after = min((period.start for period in self.held[host] if period.start >= window.end), default=None)
        return (after - window.end if after else FAR) + (window.start - before if before else FAR)

    def _next_need(self, host: int) -> datetime | None:
        waiting = self.held[host][1:] if self.machines[host].busy else self.held[host]
        return waiting[0].start if waiting else None

    def _start(self, lease: Lease, now: datetime) -> None:
        """Lend the hosts, or wait until the last of them is up."""
        if not all(self.machines[host].on and not self.machines[host].changing for host in lease.hosts):
            self.overdue.append(lease)
            return
        for host in lease.hosts:
            self._know(host, busy=True)
            self._know(host, next_need=self._next_need(host))
        if now > lease.period.start:
            self.outcome.late.append(now - lease.period.start)
        self._note(lease.period.end, RETURN, partial(self._give_back, lease))

    def _give_back(self, lease: Lease, now: datetime) -> None:
        for host in lease.hosts:
            self.held[host].remove(lease.period)
            self._know(host, busy=False, idle_since=now)
            self._know(host, next_need=self._next_need(host))


def drawn(between: tuple[timedelta, timedelta], dice: random.Random) -> timedelta:
    """From the shortest to the longest, each order of magnitude as likely as the others."""
    shortest, longest = (length / MINUTE for length in between)
    return math.exp(dice.uniform(math.log(shortest), math.log(longest))) * MINUTE


def demands(load: Load, dice: random.Random) -> Iterator[Demand]:
    """Return requests: independently of each other, at the rate that the load's share needs."""
    shortest, longest = load.lasts
    mean = (longest - shortest) / math.log(longest / shortest) * (sum(load.sizes) / len(load.sizes))
    at = BEGIN
    while at < BEGIN + timedelta(days=load.days):
        start = at + (timedelta(0) if dice.random() < load.at_once else drawn(load.notice, dice))
        yield Demand(at, Period(start, start + drawn(load.lasts, dice)), dice.choice(load.sizes))
        at += dice.expovariate(load.share * load.hosts) * mean


def main(short: bool) -> None:
    """Exits with status 1 when a lease started late."""
    rules, load = Rules(), Load(days=10) if short else Load()
    head(f"{load.hosts} hosts, {load.days:.0f} days: hours off; {load.at_once:.0%} of the leases start at once")
    line("idle_off_after, power_on_lead, boot", f"{rules.idle_off_after}, {rules.power_on_lead}, up to {rules.boot}")
    line("least_on, least_off, warm", f"{rules.least_on}, {rules.least_off}, {rules.warm} hosts")
    late = 0
    for share in (0.5,) if short else (0.4, 0.5, 0.6):
        for seed in (1,) if short else range(1, 6):
            outcome = Pool(replace(load, share=share), rules, seed).run()
            late += len(outcome.late)
            _show(f"{share:.0%} asked for, seed {seed}", outcome, load)
    _measure_plan(short)
    if late:
        sys.exit(f"{late} leases started late")


def _show(what: str, outcome: Outcome, load: Load) -> None:
    hours = load.hosts * load.days * 24
    line(f"{what}: lent, refused", f"{outcome.lent / hours:.0%}, {outcome.refused} of {outcome.leases} leases")
    line("  off, of what full knowledge of all leases allows", _off(outcome), "> 90 %")
    line("  switched, per host and day", f"{outcome.switches / load.hosts / load.days:.2f}")
    line("  late starts", f"{len(outcome.late)}, latest {max(outcome.late, default=timedelta(0))}", "0")


def _off(outcome: Outcome) -> str:
    return f"{outcome.off:,.0f} h of {outcome.best:,.0f} h: {outcome.ratio:.1%}"


def _measure_plan(short: bool) -> None:
    dice, rules = random.Random(7), Rules()
    machines = [
        Machine(
            number,
            on=dice.random() < 0.6,
            changed_at=BEGIN - dice.uniform(0, 120) * MINUTE,
            next_need=BEGIN + dice.uniform(0, 240) * MINUTE if dice.random() < 0.7 else None,
            busy=dice.random() < 0.3,
        )
        for number in range(10_000)
    ]
    line("10,000 hosts: plan", spread(timed(lambda: plan(machines, rules, BEGIN), 5 if short else 50)))
    line("10,000 hosts: next_change", spread(timed(lambda: next_change(machines, rules, BEGIN), 5 if short else 50)))


if __name__ == "__main__":
    main("--short" in sys.argv)
