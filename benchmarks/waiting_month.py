"""A month of requests that may wait, with and without the rule that protects large leases from small ones.

The rule is the code of the engine (`climate.domain.planning.waiting_list.serve`); hosts, clock and owners are
simulated. A request takes what is free at once, ahead of the waiting list, as requests to climate do. Leases end
early by chance, which serves the list.
"""

import random
import sys
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from uuid import UUID

from benchmarks.figures import head, line
from climate.domain.period import Period
from climate.domain.planning.waiting_list import Entry, Rule, serve

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
SWEEP = timedelta(minutes=10)
LONGEST_WAIT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of a month."""

    hosts: int = 20
    days: int = 30
    small_every: timedelta = timedelta(minutes=38)
    """Mean time between requests for 1 or 2 hosts."""
    large_every: timedelta = timedelta(hours=22)
    """Mean time between requests for 12 to 16 hosts."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    """Waits in hours, of the requests that got their hosts, and the requests that got none."""

    waits: Sequence[float]
    refused: int

    def at(self, share: float) -> float:
        """Return the wait that so many of all requests stayed below; infinite for requests that got nothing."""
        ordered = [*sorted(self.waits), *[float("inf")] * self.refused]
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Month:
    """Outcome of a month."""

    small: Result
    large: Result
    used: float
    """Share of the host hours that were in use."""


@dataclass
class Hosts:
    """Simulated hosts: the resources of the waiting list."""

    number: int
    booked: dict[int, list[Period]] = field(default_factory=dict)
    leases: dict[UUID, tuple[Period, list[int]]] = field(default_factory=dict)

    def _free(self, period: Period, kept: Set[int]) -> list[int]:
        busy = (host for host, periods in self.booked.items() if any(one.overlaps(period) for one in periods))
        return sorted(set(range(self.number)) - set(busy) - kept)

    def fits(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        return len(self._free(period, kept)) >= _wanted(entry)

    def grant(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        chosen = self._free(period, kept)[: _wanted(entry)]
        if len(chosen) < _wanted(entry):
            return False
        for host in chosen:
            self.booked.setdefault(host, []).append(period)
        self.leases[entry.lease_id] = (period, chosen)
        return True

    def first(self, entry: Entry, now: datetime, kept: Set[int]) -> Period | None:
        first = entry.period(now)
        ends = {one.end for periods in self.booked.values() for one in periods}
        for start in sorted({first.start, *(end for end in ends if first.start < end < entry.until)}):
            period = Period(start, start + (first.end - first.start))
            if self.fits(entry, period, kept):
                return period
        return None

    def free(self, entry: Entry, period: Period) -> frozenset[int]:
        return frozenset(self._free(period, frozenset()))

    def end(self, lease_id: UUID, now: datetime) -> None:
        """End a lease now, and forget the past."""
        period, hosts = self.leases[lease_id]
        for host in hosts:
            self.booked[host].remove(period)
            self.booked[host] = [one for one in self.booked[host] if one.end > now]


def _wanted(entry: Entry) -> int:
    return int(str(entry.reservations[0][1]["min"]))


def requests(load: Load) -> Iterator[tuple[Entry, float]]:
    """Yield the requests of the month in their order, each with the share of its time that it will be used."""
    chance = random.Random(load.seed)
    end, made = BEGIN + timedelta(days=load.days), []
    kinds = ((load.small_every, (1, 2), (2, 8)), (load.large_every, (12, 16), (6, 12)))
    for every, hosts, hours in kinds:
        at = BEGIN
        while (at := at + every * chance.expovariate(1)) < end:
            length = HOUR * chance.uniform(*hours)
            spec: dict[str, object] = {"min": chance.randint(*hosts)}
            made.append((at, length, spec, chance.uniform(0.5, 1)))
    for number, (at, length, spec, used) in enumerate(sorted(made, key=lambda one: one[0]), 1):
        asked = Period(at, at + length)
        yield Entry(UUID(int=number), "p", "u", asked, at + LONGEST_WAIT, at, [("physical:host", spec)]), used


def run(load: Load, patience: timedelta | None, promises: int = 1) -> Month:
    """Simulate the month under a rule; without `patience` whatever fits goes ahead."""
    hosts, line_, order = Hosts(load.hosts), list[Entry](), count()
    shares = {entry.lease_id: used for entry, used in requests(load)}
    known = [entry for entry, _ in requests(load)]
    agenda: list[tuple[datetime, int, UUID | Entry | None]] = []
    for entry in known:
        heappush(agenda, (entry.since, next(order), entry))
    for number in range(1, int((timedelta(days=load.days) + LONGEST_WAIT) / SWEEP)):
        heappush(agenda, (BEGIN + SWEEP * number, next(order), None))
    busy = timedelta(0)

    def begun(lease_id: UUID) -> timedelta:
        period, chosen = hosts.leases[lease_id]
        length = (period.end - period.start) * shares[lease_id]
        heappush(agenda, (period.start + length, next(order), lease_id))
        return length * len(chosen)

    while agenda:
        now, _, what = heappop(agenda)
        if isinstance(what, Entry):
            period = what.period(now)
            if hosts.fits(what, period, frozenset()) and hosts.grant(what, period, frozenset()):
                busy += begun(what.lease_id)
            else:
                line_.append(what)
            continue
        if what is not None:
            hosts.end(what, now)
        line_ = [entry for entry in line_ if entry.until > now]
        ahead = sum(period.start > now for period, _ in hosts.leases.values())
        for lease_id in list(serve(line_, hosts, now, Rule(patience, promises - ahead))):
            busy += begun(lease_id)
        line_ = [entry for entry in line_ if entry.lease_id not in hosts.leases]
    return Month(
        _result(hosts, known, 1, 2), _result(hosts, known, 12, 16), busy / (load.hosts * load.days * 24 * HOUR)
    )


def _result(hosts: Hosts, known: Sequence[Entry], least: int, most: int) -> Result:
    own = [entry for entry in known if least <= _wanted(entry) <= most]
    got = [hosts.leases[entry.lease_id][0].start - entry.since for entry in own if entry.lease_id in hosts.leases]
    return Result([one / HOUR for one in got], len(own) - len(got))


RULES = {"no rule": None, "patience 1 h": HOUR, "patience 6 h": 6 * HOUR, "patience 24 h": 24 * HOUR}


def main(short: bool) -> None:
    load = Load(days=10 if short else 30)
    head(f"A month of requests for {load.hosts} hosts: wait in hours, median / 95 % / longest, and without hosts")
    for name, patience in RULES.items():
        month = run(load, patience)
        for kind, result in (("small", month.small), ("large", month.large)):
            waits = " / ".join(f"{result.at(share):.1f}" for share in (0.5, 0.95, 1))
            line(f"{name}: {kind}, {len(result.waits) + result.refused} requests", f"{waits}; {result.refused}")
        line(f"{name}: hosts in use", f"{month.used:.0%}")


if __name__ == "__main__":
    main("--short" in sys.argv)
