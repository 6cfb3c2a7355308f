"""Which hosts of the reservation pool are switched on or off: what is known of them in, switches out.

A promise comes first: a host is asked to come up `power_on_lead` before its next need, whatever else holds.
Spare hosts are kept up for leases that start at once.  They are those whose next need is furthest away, since
these have room for the longest lease, and remain spare for longest; all others go when they have been idle.
Moments have a time zone.
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
"""Sorts a host that is promised to nobody as the one that is needed last."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the plan has to know of a host."""

    host: int
    on: bool
    """What it was last asked to be."""
    changed_at: datetime
    """When it was asked to be so."""
    idle_since: datetime | None = None
    """When it was last given back; None: not used since it was switched on."""
    next_need: datetime | None = None
    """Start of the earliest period for which it is promised; None: nobody has asked for it."""
    busy: bool = False
    """Lent, being cleaned, recycling, in maintenance or failed: neither switched nor a spare."""
    changing: bool = False
    """On its way to what it was asked to be: counts as being there, and is not switched meanwhile."""
    managed: bool = True
    """Whether its power can be switched; where not, it may still be a spare."""

    @property
    def switchable(self) -> bool:
        return self.managed and not self.busy and not self.changing


@dataclass(frozen=True, slots=True)
class Rules:
    """How eagerly hosts are switched.  The defaults suit 200 hosts that are half lent (`benchmarks.energy`)."""

    idle_off_after: timedelta = timedelta(minutes=5)
    """A host that has been idle for so long may be switched off."""
    power_on_lead: timedelta = timedelta(minutes=10)
    """A host is switched on so long before its next need."""
    warm: int = 8
    """Spare hosts that are kept up: as many as may be asked for at short notice within power_on_lead."""
    least_on: timedelta = timedelta(minutes=15)
    """A host that was switched on stays so for at least so long."""
    least_off: timedelta = timedelta(minutes=15)
    """A host is switched off only when it can stay so for so long, as far as is known."""
    boot: timedelta = timedelta(minutes=10)
    """The longest time until a host that is switched on can be lent."""
    spare_for: timedelta = timedelta(hours=24)
    """A spare host is free for at least so long, as far as there are such: others have no room for most leases."""

    def __post_init__(self) -> None:
        """InvalidInput names what cannot be used."""
        if isinstance(self.warm, bool) or not isinstance(self.warm, int) or self.warm < 0:
            raise InvalidInput(f"warm is {self.warm!r}: it is a whole number of hosts, 0 or more")
        for name in (field.name for field in fields(self) if field.name != "warm"):
            if not timedelta(0) <= getattr(self, name) <= LONGEST:
                raise InvalidInput(f"{name} is {getattr(self, name)}: it lies between 0 and {LONGEST.days} days")
        if self.power_on_lead < self.boot:
            raise InvalidInput(
                f"power_on_lead is {self.power_on_lead}, but hosts may need {self.boot} to come up (boot): "
                "leases would start late; it is at least as long"
            )

    @classmethod
    def of_seconds(cls, warm: int, **seconds: float) -> Self:
        """Rules from settings: the durations in seconds, by the names of the fields."""
        return cls(warm=warm, **{name: _duration(name, value) for name, value in seconds.items()})


@dataclass(frozen=True, slots=True)
class Switch:
    """One host to be switched, and why, in words for whoever looks it up."""

    host: int
    on: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was saved: hours off by host and in all, and kWh where it is known what the hosts draw."""

    hours: Mapping[int, float]
    total: float
    kwh: float | None


def plan(machines: Sequence[Machine], rules: Rules, now: datetime) -> tuple[Switch, ...]:
    """What is to be switched now, the most pressing first; nothing new when asked again after that.

    Never switches off what is needed within power_on_lead + least_off, nor what was switched on less than least_on
    ago.  A host that went off less than least_off ago comes up again for a promise made since, and as a spare only
    when no other can.
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
    """The machines once the switches have been asked for: on their way."""
    wanted = {switch.host: switch.on for switch in switches}
    return tuple(
        replace(m, on=wanted[m.host], changed_at=now, changing=True) if m.host in wanted else m for m in machines
    )


def next_change(machines: Sequence[Machine], rules: Rules, now: datetime) -> datetime | None:
    """The earliest moment at which `plan` may say something, once what it says now has been asked for.

    None: not before something else happens: a lease is made, a host comes back, a change is over.
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
    """Hours off within the horizon that the rules would allow to one who knew all leases beforehand.

    `promises` has every host, also one that nobody uses.  In each gap a host goes off at once and is switched on
    power_on_lead before its next need (which has room for the boot), if it can be off for least_off; no spares.
    """
    return sum((off for periods in promises.values() for off in _gaps(periods, horizon, rules)), timedelta()) / HOUR


def saved(
    history: Mapping[int, Iterable[tuple[datetime, bool]]],
    until: datetime,
    since: datetime | None = None,
    watts: Mapping[int, float] | None = None,
) -> Report:
    """Hours off by what was switched: (when, on) per host; before its first switch, a host counts as on.

    `watts` is what each host would draw, idle, if it were on; those that it does not name add no kWh.
    """
    hours = {host: _off(switches, until, since) / HOUR for host, switches in history.items()}
    kwh = None if watts is None else sum(hours[host] * watts.get(host, 0) for host in hours) / 1000
    return Report(hours, sum(hours.values()), kwh)


def _duration(name: str, seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{name} is {seconds} seconds: it lies between 0 and {LONGEST.days} days") from None


def _soon(machine: Machine, rules: Rules, now: datetime) -> bool:
    return machine.next_need is not None and machine.next_need - now <= rules.power_on_lead


def _spares(machines: Iterable[Machine], rules: Rules, now: datetime) -> list[Machine]:
    return [m for m in machines if m.on and not m.busy and not _soon(m, rules, now)]


def _roomy(machines: Iterable[Machine], rules: Rules, now: datetime) -> list[Machine]:
    """Those that have room for a long lease."""
    return [m for m in machines if m.next_need is None or m.next_need - now > rules.spare_for]


def _asleep(machines: Iterable[Machine], rules: Rules, now: datetime) -> list[Machine]:
    return [m for m in machines if m.switchable and not m.on and not _soon(m, rules, now)]


def _rested(machine: Machine, rules: Rules, now: datetime) -> bool:
    return now - machine.changed_at >= rules.least_off


def _woken(machines: Iterable[Machine], spares: Sequence[Machine], rules: Rules, now: datetime) -> list[Machine]:
    """Those to be switched on as spares: for such as lack room, only what has been off for long enough."""
    asleep = _asleep(machines, rules, now)
    asleep.sort(key=lambda m: (not _rested(m, rules, now), _needed_last(m, now), m.host))
    better = sum(_rested(m, rules, now) for m in _roomy(asleep, rules, now))
    cramped = rules.warm - len(_roomy(spares, rules, now))
    return asleep[: max(0, rules.warm - len(spares), min(cramped, better))]


def _rested_at(
    machines: Iterable[Machine], spares: Sequence[Machine], rules: Rules, now: datetime
) -> Iterator[datetime]:
    """When hosts may come up in the place of spares that lack room."""
    if len(_roomy(spares, rules, now)) < rules.warm:
        yield from (m.changed_at + rules.least_off for m in _roomy(_asleep(machines, rules, now), rules, now))


def _surplus(spares: Iterable[Machine], rules: Rules, now: datetime) -> list[Machine]:
    """Those that are worth switching off, but for the `warm` that remain spare for longest; all of them are up."""
    worth = rules.power_on_lead + rules.least_off
    far = [m for m in spares if not m.changing and (m.next_need is None or m.next_need - now > worth)]
    return sorted(far, key=lambda m: (_needed_last(m, now), m.managed, m.host))[rules.warm :]


def _needed_last(machine: Machine, now: datetime) -> timedelta:
    """Sorts the machine whose next need is furthest away first."""
    return NEVER if machine.next_need is None else now - machine.next_need


def _idle_from(machine: Machine) -> datetime:
    return max(machine.idle_since or machine.changed_at, machine.changed_at)


def _may_go_at(machine: Machine, rules: Rules) -> datetime:
    return max(_idle_from(machine) + rules.idle_off_after, machine.changed_at + rules.least_on)


def _goes_at_all(machine: Machine, rules: Rules) -> bool:
    """Whether switching it off will still be worth while when it may go."""
    if machine.next_need is None:
        return True
    return machine.next_need - _may_go_at(machine, rules) > rules.power_on_lead + rules.least_off


def _runs_short_at(spares: Sequence[Machine], warm: int, margin: timedelta) -> Iterator[datetime]:
    """When for all but fewer than `warm` of them the next need will be as near as `margin`."""
    needs = sorted(m.next_need for m in spares if m.next_need)
    over = len(spares) - warm
    if 0 <= over < len(needs):
        yield needs[over] - margin


def _gaps(periods: Iterable[Period], horizon: Period, rules: Rules) -> Iterator[timedelta]:
    """How long a host can be off, gap by gap; after its last need it has not to come up again."""
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
