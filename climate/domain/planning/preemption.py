"""Preemptible reservations: they hold hosts that nobody was promised, until an ordinary lease needs them.

A plan to take a host shortens the hold on it, so that the host is free when it is needed. The plan stands as long as
the hold ends at that time. A reservation that gets the host for longer, or another one, has no plan for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from climate.domain.facts import Hold
from climate.domain.period import Period
from climate.domain.planning.preemption_facts import HostPreempted, PreemptionPlanned, PreemptionWarned
from climate.domain.reservation_spec import Spec

FIELD = "preemptible"
"""Key of a reservation's spec."""

INSTANT = timedelta(seconds=1)
"""Length of a hold on a host that is in use already, but should be free since before the hold began."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """Plan to take one host of a preemptible reservation."""

    host: int
    until: datetime
    """End of the shortened hold: the host is needed from then on."""
    warn_at: datetime
    take_at: datetime
    needed_by: UUID
    warned: bool = False
    replaced: bool = False
    """Set if the reservation has another host for it already."""


Taken = tuple[tuple[Hold, ...], tuple[Preemption, ...]]
"""Holds of a reservation, and the plans to take some of their hosts."""


def is_preemptible(spec: Spec) -> bool:
    return bool(spec.get(FIELD))


def standing(plans: Iterable[Preemption], holds: Iterable[Hold]) -> tuple[Preemption, ...]:
    """Return the plans for holds that still end when the host is needed."""
    ends = {hold.host: hold.during.end for hold in holds}
    return tuple(plan for plan in plans if ends.get(plan.host) == plan.until)


def changed(
    holds: tuple[Hold, ...],
    plans: tuple[Preemption, ...],
    fact: PreemptionPlanned | PreemptionWarned | HostPreempted,
) -> Taken:
    """Return the holds and the plans of a reservation after a fact."""
    match fact:
        case PreemptionPlanned():
            return _planned(holds, plans, fact)
        case PreemptionWarned():
            return holds, tuple(_warned(plan, fact) if plan.host in fact.to_take else plan for plan in plans)
        case HostPreempted():
            left = tuple(hold for hold in holds if hold.host != fact.host)
            return left, tuple(plan for plan in plans if plan.host != fact.host)


def _planned(holds: tuple[Hold, ...], plans: tuple[Preemption, ...], fact: PreemptionPlanned) -> Taken:
    """Shorten the hold, and replace an earlier plan for its host."""
    cut = tuple(replace(hold, during=fact.during) if hold.host == fact.host else hold for hold in holds)
    plan = Preemption(fact.host, fact.during.end, fact.warn_at, fact.take_at, fact.needed_by)
    others = (one for one in plans if one.host != fact.host)
    return cut, tuple(sorted((*others, plan), key=lambda one: one.host))


def _warned(plan: Preemption, fact: PreemptionWarned) -> Preemption:
    return replace(plan, warned=True, replaced=plan.host in fact.replaced)


def not_prolonged(before: Iterable[Hold], after: Iterable[Hold], plans: Iterable[Preemption]) -> tuple[Hold, ...]:
    """Return the holds that a reservation is to have, without those times of hosts that were promised to others."""
    planned = {plan.host for plan in plans}

    def limited(was: Hold, hold: Hold) -> Hold:
        start, end = min(was.during.start, hold.during.start), min(was.during.end, hold.during.end)
        return replace(hold, during=Period(start, end)) if hold.host in planned else hold

    return tuple(limited(was, hold) for was, hold in zip(before, after, strict=True))


def shortened(hold: Hold, needed_from: datetime) -> Period:
    """Return the time for which a hold can last if the host is needed from then on.

    A host in use keeps a hold of an instant before, so that nobody gets it until it was taken.
    """
    return Period(min(hold.during.start, needed_from - INSTANT), needed_from)


def plan(
    reservation_id: UUID, hold: Hold, needed: tuple[datetime, UUID], now: datetime, notice: timedelta, lead: timedelta
) -> PreemptionPlanned:
    """Return the plan to take a host that a lease needs from a time on: `lead` before it, but not without notice."""
    needed_from, needed_by = needed
    take_at = max(needed_from - lead, now + notice)
    during = shortened(hold, needed_from)
    return PreemptionPlanned(reservation_id, now, hold.host, during, take_at - notice, take_at, needed_by)
