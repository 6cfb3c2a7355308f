"""Planner of power saving: switches hosts of the reservation pool on or off.

Promises come first: a host is switched on `power_on_lead` before its next need in any case. Spare hosts stay
on for leases that start at once. Spares are the hosts whose next need is furthest away, because they suit the
longest leases and remain spare for longest. All others are switched off when idle. Times have a time zone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Self

from climate.domain.errors import InvalidInput
from climate.domain.period import Period

HOUR = timedelta(hours=1)
LONGEST = timedelta(days=365)
NEVER = timedelta.min
"""Sort key of a host that is promised to nobody: it is needed last."""


@dataclass(frozen=True, slots=True)
class Machine:
    """State of a host, as input of the plan."""

    host: int
    on: bool
    """Power state that was last requested."""
    changed_at: datetime
    """Time of that request."""
    idle_since: datetime | None = None
    """Time at which it was last given back; None: not used since it was switched on."""
    next_need: datetime | None = None
    """Start of the earliest period for which it is promised; None: no promise."""
    busy: bool = False
    """Lent, cleaning, recycling, in maintenance or failed: neither switched nor a spare."""
    changing: bool = False
    """Still switching to the requested state: counts as being in it, and is not switched meanwhile."""
    managed: bool = True
    """Set if its power can be switched. A host without power settings may still be a spare."""

    @property
    def switchable(self) -> bool:
        return self.managed and not self.busy and not self.changing


@dataclass(frozen=True, slots=True)
class Rules:
    """Parameters of power saving. The defaults suit 200 hosts of which half are lent (`benchmarks.energy`)."""

    idle_off_after: timedelta = timedelta(minutes=5)
    """Idle time after which a host may be switched off."""
    power_on_lead: timedelta = timedelta(minutes=10)
    """Time before its next need at which a host is switched on."""
    warm: int = 8
    """Number of spare hosts that stay on: the expected short-notice demand within power_on_lead."""
    least_on: timedelta = timedelta(minutes=15)
    """Minimum time for which a host stays on after it was switched on."""
    least_off: timedelta = timedelta(minutes=15)
    """Minimum expected time off, below which a host is not switched off."""
    boot: timedelta = timedelta(minutes=10)
    """Longest time from switching a host on until it can be lent."""
    spare_for: timedelta = timedelta(hours=24)
    """Minimum free time of a preferred spare host. Hosts with less have no room for most leases."""

    def __post_init__(self) -> None:
        """Raise InvalidInput for parameters that are out of range or contradict each other."""
        if isinstance(self.warm, bool) or not isinstance(self.warm, int) or self.warm < 0:
            raise InvalidInput(f"warm is {self.warm!r}: it must be a whole number of hosts, 0 or more")
        for name in (field.name for field in fields(self) if field.name != "warm"):
            if not timedelta(0) <= getattr(self, name) <= LONGEST:
                raise InvalidInput(f"{name} is {getattr(self, name)}: it must lie between 0 and {LONGEST.days} days")
        if self.power_on_lead < self.boot:
            raise InvalidInput(
                f"power_on_lead is {self.power_on_lead}, but hosts may need {self.boot} to come up (boot): "
                "it must be at least as long, or leases would start late"
            )

    @classmethod
    def of_seconds(cls, warm: int, **seconds: float) -> Self:
        """Create rules from settings: the durations in seconds, by the names of the fields."""
        return cls(warm=warm, **{name: _duration(name, value) for name, value in seconds.items()})


@dataclass(frozen=True, slots=True)
class Switch:
    """Request to switch one host, with the reason for people."""

    host: int
    on: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Energy saved: hours off by host and in total, and kWh if the power draw of hosts is known."""

    hours: Mapping[int, float]
    total: float
    kwh: float | None


def plan(machines: Sequence[Machine], rules: Rules, now: datetime) -> tuple[Switch, ...]:
    """Return the hosts to switch now, most urgent first; none if repeated after they were switched.

    Never switches off a host that is needed within power_on_lead + least_off, nor one that was switched on less
    than least_on ago. A host that went off less than least_off ago is switched on again for a newer promise. It
    is used as a spare only if no other host can be.
    """
    spares = _spares(machines, rules, now)
    promised = [m for m in machines if m.switchable and not m.on and _soon(m, rules, now)]
    promised.sort(key=lambda m: (m.next_need, m.host))
    woken = _woken(machines, spares, rules, now)
    idle = [m for m in _surplus(spares, rules, now) if m.switchable and _may_go_at(m, rules) <= now]
    return (
        *(Switch(m.host, True, f"needed at {m.next_need:%Y-%m-%d %H:%M:%S %Z}") for m in promised),
        *(Switch(m.host, True, f"one of {rules.warm} spare hosts") for m in woken),
        *(Switch(m.host, False, f"idle since {_idle_from(m):%Y-%m-%d %H:%M:%S %Z}") for m in idle),
    )


def applied(machines: Iterable[Machine], switches: Iterable[Switch], now: datetime) -> tuple[Machine, ...]:
    """Return the machines after the switches were requested."""
    wanted = {switch.host: switch.on for switch in switches}
    return tuple(
        replace(m, on=wanted[m.host], changed_at=now, changing=True) if m.host in wanted else m for m in machines
    )


def next_change(machines: Sequence[Machine], rules: Rules, now: datetime) -> datetime | None:
    """Return the earliest time at which `plan` may return something, once its present result was carried out.

    None: not before another change, such as a new lease or a returned host.
    """
    known = applied(machines, plan(machines, rules, now), now)
    spares = _spares(known, rules, now)
    moments = [
        *(m.next_need - rules.power_on_lead for m in known if m.managed and not m.on and not m.busy and m.next_need),
        *_runs_short_at(spares, rules.warm, rules.power_on_lead),
        *_runs_short_at(_roomy(spares, rules, now), rules.warm, rules.spare_for),
        *_rested_at(known, spares, rules, now),
        *(_may_go_at(m, rules) for m in _surplus(spares, rules, now) if m.managed and _goes_at_all(m, rules)),
    ]
    return min((moment for moment in moments if moment > now), default=None)


def best(promises: Mapping[int, Iterable[Period]], horizon: Period, rules: Rules) -> float:
    """Return the hours off within the horizon if all leases were known beforehand.

    `promises` has every host, also unused ones. In each gap a host goes off at once, if it can be off for least_off. It
    is switched on power_on_lead before its next need, which has room for the boot. There are no spares.
    """
    return sum((off for periods in promises.values() for off in _gaps(periods, horizon, rules)), timedelta()) / HOUR


def saved(
    history: Mapping[int, Iterable[tuple[datetime, bool]]],
    until: datetime,
    since: datetime | None = None,
    watts: Mapping[int, float] | None = None,
) -> Report:
    """Return the hours off from the history (time, on) of each host; before its first switch, a host counts as on.

    `watts` is the idle power draw of each host; hosts without an entry add no kWh.
    """
    hours = {host: _off(switches, until, since) / HOUR for host, switches in history.items()}
    kwh = None if watts is None else sum(hours[host] * watts.get(host, 0) for host in hours) / 1000
    return Report(hours, sum(hours.values()), kwh)


def _duration(name: str, seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{name} is {seconds} seconds: it must lie between 0 and {LONGEST.days} days") from None


def _soon(machine: Machine, rules: Rules, now: datetime) -> bool:
    return machine.next_need is not None and machine.next_need - now <= rules.power_on_lead


def _spares(machines: Iterable[Machine], rules: Rules, now: datetime) -> list[Machine]:
    return [m for m in machines if m.on and not m.busy and not _soon(m, rules, now)]


def _roomy(machines: Iterable[Machine], rules: Rules, now: datetime) -> list[Machine]:
    """Return the machines that have room for a long lease."""
    return [m for m in machines if m.next_need is None or m.next_need - now > rules.spare_for]


def _asleep(machines: Iterable[Machine], rules: Rules, now: datetime) -> list[Machine]:
    return [m for m in machines if m.switchable and not m.on and not _soon(m, rules, now)]


def _rested(machine: Machine, rules: Rules, now: datetime) -> bool:
    return now - machine.changed_at >= rules.least_off


def _woken(machines: Iterable[Machine], spares: Sequence[Machine], rules: Rules, now: datetime) -> list[Machine]:
    """Return the machines to switch on as spares; to replace spares without room, only those off for least_off."""
    asleep = _asleep(machines, rules, now)
    asleep.sort(key=lambda m: (not _rested(m, rules, now), _needed_last(m, now), m.host))
    better = sum(_rested(m, rules, now) for m in _roomy(asleep, rules, now))
    cramped = rules.warm - len(_roomy(spares, rules, now))
    return asleep[: max(0, rules.warm - len(spares), min(cramped, better))]


def _rested_at(
    machines: Iterable[Machine], spares: Sequence[Machine], rules: Rules, now: datetime
) -> Iterator[datetime]:
    """Yield the times at which hosts may be switched on to replace spares without room."""
    if len(_roomy(spares, rules, now)) < rules.warm:
        yield from (m.changed_at + rules.least_off for m in _roomy(_asleep(machines, rules, now), rules, now))


def _surplus(spares: Iterable[Machine], rules: Rules, now: datetime) -> list[Machine]:
    """Return running machines that are worth switching off, except the `warm` that remain spare for longest."""
    worth = rules.power_on_lead + rules.least_off
    far = [m for m in spares if not m.changing and (m.next_need is None or m.next_need - now > worth)]
    return sorted(far, key=lambda m: (_needed_last(m, now), m.managed, m.host))[rules.warm :]


def _needed_last(machine: Machine, now: datetime) -> timedelta:
    """Return a sort key that puts the machine with the latest next need first."""
    return NEVER if machine.next_need is None else now - machine.next_need


def _idle_from(machine: Machine) -> datetime:
    return max(machine.idle_since or machine.changed_at, machine.changed_at)


def _may_go_at(machine: Machine, rules: Rules) -> datetime:
    return max(_idle_from(machine) + rules.idle_off_after, machine.changed_at + rules.least_on)


def _goes_at_all(machine: Machine, rules: Rules) -> bool:
    """Return whether switching the machine off will still be worthwhile when it is allowed."""
    if machine.next_need is None:
        return True
    return machine.next_need - _may_go_at(machine, rules) > rules.power_on_lead + rules.least_off


def _runs_short_at(spares: Sequence[Machine], warm: int, margin: timedelta) -> Iterator[datetime]:
    """Yield the time at which fewer than `warm` machines have a next need later than `margin`."""
    needs = sorted(m.next_need for m in spares if m.next_need)
    over = len(spares) - warm
    if 0 <= over < len(needs):
        yield needs[over] - margin


def _gaps(periods: Iterable[Period], horizon: Period, rules: Rules) -> Iterator[timedelta]:
    """Yield the time off of a host in each gap; after its last need, it is not switched on again."""
    free = horizon.start
    for period in sorted(periods, key=lambda p: p.start):
        off = min(period.start - rules.power_on_lead, horizon.end) - free
        if off > timedelta() and off >= rules.least_off:
            yield off
        free = max(free, period.end)
    if horizon.end - free > timedelta() and horizon.end - free >= rules.least_off:
        yield horizon.end - free


def _off(switches: Iterable[tuple[datetime, bool]], until: datetime, since: datetime | None) -> timedelta:
    total, on, last = timedelta(), True, since
    for at, wanted in [*sorted(switches, key=lambda switch: switch[0]), (until, True)]:
        moment = min(until, at if since is None else max(since, at))
        if not on and last is not None:
            total += moment - last
        on, last = wanted, moment
    return total
