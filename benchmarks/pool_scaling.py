"""A month of a reservation pool that follows its backlog, against pools of a fixed size.

The plan is the engine's own (`climate.domain.hosts.pool_scaling`); the hosts and their users are generated here.
Hosts of the multi-tenant pool have servers, so that most have to be drained before they are taken.  A lease gets free
hosts of the reservation pool by chance, or is refused.  The load follows the day and the week.
"""

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from benchmarks.figures import head, line, spread, timed
from climate.domain.hosts.pool_scaling import Candidate, HostsState, Level, Member, Rules, Step, plan
from climate.domain.period import Period

BEGIN = datetime(2030, 1, 7, tzinfo=UTC)
"""A Monday."""
HOUR = timedelta(hours=1)
ROUND = timedelta(minutes=5)
"""How often the pool is looked at; the engine does so every few seconds."""
KEPT, ORDINARY, DRAINED = "kept", "ordinary", "drained"


@dataclass(frozen=True, slots=True)
class Load:
    """The load: requests for leases, and the servers of ordinary users."""

    hosts: int = 100
    days: int = 30
    leases_a_day: float = 60
    """On a working day; a fifth of that at the weekend."""
    lasts: tuple[float, float] = (1, 24)
    """Hours, each order of magnitude as likely as the others."""
    notice: tuple[float, float] = (0.1, 72)
    at_once: float = 0.2
    """Of all leases, those that start when they are asked for; the others are, `notice` hours ahead."""
    sizes: tuple[int, ...] = (1, 1, 1, 1, 2, 2, 3, 4)
    empty: float = 0.1
    """Of all ordinary hosts, those without servers; others every six hours."""
    server_hours: float = 6
    """How long the last server of a drained host goes on, in the mean."""
    move_minutes: float = 0
    """How long a server of a drained host takes to move to another one; they move in turn. 0: none is moved."""


@dataclass(slots=True)
class Host:
    where: str
    since: datetime
    empty_at: datetime = BEGIN
    """When the last server is gone, of one that is drained."""
    held: list[Period] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """Leases and hosts are counted; times are host-hours."""

    asked: int = 0
    refused: int = 0
    kept: float = 0
    lent: float = 0
    moves: int = 0
    drained: int = 0
    servers_moved: int = 0
    largest: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """A request for a number of hosts, made at a moment, for a period."""

    at: datetime
    period: Period
    size: int


class Pool:
    """The hosts, and what is promised of them."""

    def __init__(self, load: Load, rules: Rules, seed: int) -> None:
        self.load, self.rules, self.dice = load, rules, random.Random(seed)
        at_first = rules.target or rules.spare
        self.hosts = {
            number: Host(KEPT if number < at_first else ORDINARY, BEGIN - rules.dwell) for number in range(load.hosts)
        }
        self.asked = list(demands(load, random.Random(seed)))
        self.outcome = Outcome()
        self.empty: set[int] = set()

    def run(self) -> Outcome:
        """Go through the whole span, round by round."""
        now, end, at = BEGIN, BEGIN + timedelta(days=self.load.days), 0
        while now < end:
            while at < len(self.asked) and self.asked[at].at <= now:
                self._promise(self.asked[at])
                at += 1
            self._drain(now)
            if (now - BEGIN) % (6 * HOUR) < ROUND:
                self.empty = {number for number in self.hosts if self.dice.random() < self.load.empty}
            if self.rules.horizon:
                self._follow(now)
            self._count(now)
            now += ROUND
        return self.outcome

    def _promise(self, demand: Demand) -> None:
        free = [
            host
            for host in self.hosts.values()
            if host.where == KEPT and not any(demand.period.overlaps(period) for period in host.held)
        ]
        self.outcome.asked += 1
        if len(free) < demand.size:
            self.outcome.refused += 1
            return
        for host in self.dice.sample(free, demand.size):
            host.held.append(demand.period)

    def _drain(self, now: datetime) -> None:
        for host in self.hosts.values():
            if host.where == DRAINED and host.empty_at <= now:
                host.where, host.since = KEPT, now
            for over in [period for period in host.held if period.end <= now]:
                host.held.remove(over)
                host.since = over.end

    def _follow(self, now: datetime) -> None:
        for move in plan(self._situation(now), self.rules).moves:
            host = self.hosts[move.host]
            if move.step is Step.DRAIN:
                left = self.dice.expovariate(1 / self.load.server_hours) * HOUR
                host.where, host.empty_at = DRAINED, now + self._emptied(move.host, left)
                self.outcome.drained += 1
            else:
                host.where = KEPT if move.step is Step.TAKE else ORDINARY
                self.outcome.moves += 1
            host.since = now

    def _emptied(self, number: int, left: timedelta) -> timedelta:
        """Return the time after which a host is empty: when its last server has ended, or has moved."""
        servers = _servers(number) if self.load.move_minutes else 0
        moved = timedelta(minutes=servers * self.load.move_minutes)
        if not servers or left <= moved:
            return left
        self.outcome.servers_moved += servers
        return moved

    def _situation(self, now: datetime) -> HostsState:
        kept = {number: host for number, host in self.hosts.items() if host.where == KEPT}
        return HostsState(
            now,
            size=len(kept),
            backlog=levels([p for host in kept.values() for p in host.held], Period(now, now + self.rules.horizon)),
            members=[Member(number, host.since, "promised" * bool(host.held)) for number, host in kept.items()],
            draining=[number for number, host in self.hosts.items() if host.where == DRAINED],
            candidates=[
                Candidate(number, 0 if number in self.empty else _servers(number))
                for number, host in self.hosts.items()
                if host.where == ORDINARY
            ],
        )

    def _count(self, now: datetime) -> None:
        kept = [host for host in self.hosts.values() if host.where != ORDINARY]
        hours = ROUND / HOUR
        self.outcome.largest = max(self.outcome.largest, len(kept))
        self.outcome.kept += len(kept) * hours
        self.outcome.lent += sum(any(p.start <= now < p.end for p in host.held) for host in kept) * hours


def _servers(number: int) -> int:
    """Return the number of servers of an ordinary host that is not empty."""
    return 1 + number % 20


def levels(held: Sequence[Period], window: Period) -> list[Level]:
    """Return the number of these periods that run at once, from each moment on at which that changes."""
    turns: dict[datetime, int] = {}
    for period in held:
        if period.overlaps(window):
            start, end = max(period.start, window.start), min(period.end, window.end)
            turns[start] = turns.get(start, 0) + 1
            turns[end] = turns.get(end, 0) - 1
    found, hosts = [], 0
    for at in sorted(turns):
        hosts += turns[at]
        found.append(Level(at, hosts))
    return found


def demands(load: Load, dice: random.Random) -> Iterator[Demand]:
    """Return requests: more by day than at night, and less at the weekend."""
    at, end = BEGIN, BEGIN + timedelta(days=load.days)
    while at < end:
        at += dice.expovariate(load.leases_a_day * 2 / 24) * HOUR
        by_day = (1 - math.cos(2 * math.pi * (at.hour + at.minute / 60) / 24)) / 2
        if dice.random() > by_day * (0.2 if at.weekday() >= 5 else 1):
            continue
        ahead = 0 if dice.random() < load.at_once else drawn(load.notice, dice)
        start = at + ahead * HOUR
        yield Demand(at, Period(start, start + drawn(load.lasts, dice) * HOUR), dice.choice(load.sizes))


def drawn(between: tuple[float, float], dice: random.Random) -> float:
    """From the least to the most, each order of magnitude as likely as the others."""
    return math.exp(dice.uniform(*map(math.log, between)))


RULES = Rules(horizon=timedelta(days=2), spare=12, margin=25, slack=4, dwell=timedelta(hours=6))
"""What docs/pools.md advises for such a load."""

FIXED = (20, 30, 40, 50, 60)


def main(short: bool) -> None:
    """Print what came of the rules and of fixed sizes."""
    load = Load(days=7) if short else Load()
    seeds = (1,) if short else (1, 2, 3)
    head(f"{load.hosts} hosts, {load.days} days, {load.leases_a_day:.0f} leases on a working day")
    for size in FIXED[2:3] if short else FIXED:
        _show(f"fixed at {size}", load, Rules(target=size), seeds)
    _show("horizon 2 d, spare 12, margin 25 %, slack 4, dwell 6 h", load, RULES, seeds)
    if not short:
        _show("  horizon 12 h", load, replace(RULES, horizon=12 * HOUR), seeds)
        _show("  horizon 4 d", load, replace(RULES, horizon=96 * HOUR), seeds)
        _show("  spare 6", load, replace(RULES, spare=6), seeds)
        _show("  margin 50 %", load, replace(RULES, margin=50), seeds)
        _show("  dwell 24 h", load, replace(RULES, dwell=24 * HOUR), seeds)
        _show("  without slack and dwell", load, replace(RULES, slack=0, dwell=timedelta(0)), seeds)
        _show("  servers moved, 2 minutes each", replace(load, move_minutes=2), RULES, seeds)
        _show("  servers moved, margin 50 %", replace(load, move_minutes=2), replace(RULES, margin=50), seeds)
        _show("  without draining", load, replace(RULES, drain=False), seeds)
    line("10,000 hosts: plan", spread(timed(_large(10_000), 5 if short else 50)))


def _show(what: str, load: Load, rules: Rules, seeds: Sequence[int]) -> None:
    found = [Pool(load, rules, seed).run() for seed in seeds]
    hours = load.days * 24 * len(found)
    kept, lent = sum(one.kept for one in found), sum(one.lent for one in found)
    refused = sum(one.refused for one in found) / sum(one.asked for one in found)
    moved = sum(one.moves + one.drained for one in found) / (load.days * len(found))
    servers = sum(one.servers_moved for one in found) / (load.days * len(found))
    line(
        what,
        f"{refused:5.1%} refused, {kept / hours:4.1f} hosts kept (at most {max(one.largest for one in found)}), "
        f"{lent / kept:3.0%} of them lent, {moved:4.1f} moves a day, {servers:4.1f} of servers",
    )


def _large(count: int) -> Callable[[], object]:
    dice = random.Random(7)
    held = [
        Period(BEGIN + start * HOUR, BEGIN + (start + dice.uniform(1, 24)) * HOUR)
        for start in (dice.uniform(0, 48) for _ in range(count))
    ]
    members = [Member(number, BEGIN - dice.uniform(0, 9) * HOUR) for number in range(count)]
    rest = [Candidate(count + number, dice.randint(0, 9)) for number in range(count)]
    there = HostsState(BEGIN, count, levels(held, Period(BEGIN, BEGIN + 48 * HOUR)), members, (), rest)
    return lambda: plan(there, RULES)


if __name__ == "__main__":
    main("--short" in sys.argv)
