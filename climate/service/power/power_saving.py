"""Rounds of power saving: unused hosts of the reservation pool are switched off, and on again in time.

`climate.domain.hosts.power_planner` makes the plan.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError
from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import InvalidInput
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.hosts.power_planner import Machine, Rules, Switch, plan
from climate.power import OFF, ON
from climate.service.power import switching
from climate.service.power.parallel_requests import Job
from climate.service.transaction import run
from climate.settings import SettingError, Settings
from climate.store.hosts import pool_membership, power
from climate.store.hosts.power import Supply

log = structlog.get_logger(__name__)

LOOK_AGAIN = timedelta(seconds=60)
"""Interval of checks of a host without a pending request."""

MOST_AT_ONCE = 50
"""Maximum number of hosts that one round switches off: the cloud is asked about each of them."""

TRY_AGAIN = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=10)
"""Maximum interval of retries of a power supply that does not obey; the interval grows with each failure."""


def rules(settings: Settings) -> Rules:
    """Return the parameters of power saving; raise InvalidInput if the settings contradict each other."""
    saving = settings.idle_off_after > 0
    return Rules.of_seconds(
        warm=settings.warm_hosts if saving else 0,
        idle_off_after=settings.idle_off_after,
        power_on_lead=settings.power_on_lead,
        boot=settings.power_timeout,
        least_on=settings.least_on,
        least_off=settings.least_off,
    )


def check(settings: Settings) -> None:
    """Raise SettingError if the settings of power saving contradict each other."""
    try:
        rules(settings)
    except InvalidInput as error:
        raise SettingError(f"the settings of power saving are invalid: {error}") from None


def run_round(climate: Climate) -> int:
    """Switch hosts as planned, and check those that are switching; return the number of new requests.

    The number of statements is constant for any number of hosts. Two concurrent rounds are harmless, because
    writes are compared with the values read, and repeated requests have no effect.
    """
    result = run(climate, _read_state, climate)
    if result is None:
        return 0
    empty = _empty(climate, result)
    wanted = {
        result.places[switch.host]: ON if switch.on else OFF
        for switch in result.switches
        if switch.on or switch.host in empty
    }
    jobs = switching.wish(climate, wanted, result.supplies)
    for job in jobs:
        log.info("host power change planned", host=job.place.name, wish=job.wish, reason=result.reason(job))
    switching.run_jobs(climate, [*jobs, *result.due_jobs({job.place.host for job in jobs})])
    return len(jobs)


def _empty(climate: Climate, state: "_RoundState") -> frozenset[int]:
    """Return the hosts to switch off on which the cloud has no server, such as one created by hand.

    A host with servers is in use, so its idle time begins anew.
    """
    going = [state.places[switch.host] for switch in state.switches if not switch.on][:MOST_AT_ONCE]
    used: dict[int, bool] = {}
    for place in going:
        try:
            used[place.host] = bool(climate.cloud.servers_on(place.name))
        except CloudError as error:
            log.warning("host kept on: server count unknown", host=place.name, error=str(error))
    in_use = [host for host, has_servers in used.items() if has_servers]
    if in_use:
        run(climate, power.use, in_use, state.now)
    return frozenset(used) - frozenset(in_use)


@dataclass(frozen=True, slots=True)
class _RoundState:
    """Work of a round."""

    places: Mapping[int, HostPlace]
    supplies: Mapping[int, Supply]
    needs: Mapping[int, datetime]
    due: frozenset[int]
    """Hosts whose power supplies are to be asked."""
    switches: Sequence[Switch]
    settings: Settings
    now: datetime

    def reason(self, job: Job) -> str:
        return next(switch.reason for switch in self.switches if switch.host == job.place.host)

    def due_jobs(self, others: Collection[int]) -> list[Job]:
        """Return all due hosts except the others: those that are switching get their request again."""
        return [Job(self.places[h], self.supplies[h], self._again(h)) for h in sorted(self.due - set(others))]

    def _again(self, host: int) -> str | None:
        place, supply = self.places[host], self.supplies[host]
        if switching.is_coming(place, supply):
            return ON
        kind = switching.is_going(place, supply) and switching.far(self.needs.get(host), self.settings, self.now)
        return OFF if kind else None


def _read_state(conn: Connection, climate: Climate) -> _RoundState | None:
    known = power.listed(conn)
    if not known:
        return None
    now, here = climate.now(conn), {place.host: place for place in pool_membership.listed(conn)}
    supplies = {host: supply for host, supply in known.items() if host in here}
    needs = power.needs(conn, [place.host for place in here.values() if place.pool is Pool.RESERVATION])
    machines = [_machine(place, supplies.get(place.host), needs.get(place.host)) for place in here.values()]
    switches = _switches(machines, climate.settings, now)
    due = frozenset(host for host, supply in supplies.items() if _is_due(here[host], supply, now, climate.settings))
    return _RoundState(here, supplies, needs, due, switches, climate.settings, now)


def _switches(machines: Sequence[Machine], settings: Settings, now: datetime) -> tuple[Switch, ...]:
    """Return the planned switches; without CLIMATE_IDLE_OFF_AFTER only those that power a host on."""
    switches = plan(machines, rules(settings), now)
    return switches if settings.idle_off_after else tuple(switch for switch in switches if switch.on)


def _machine(place: HostPlace, supply: Supply | None, need: datetime | None) -> Machine:
    """Return the host as the planner's input. A host without an answer stays on; one that is off is tried anyway.

    A host without permission for new allocations is no spare.
    """
    unmanaged = Machine(
        host=place.host,
        on=place.on,
        changed_at=place.since,
        idle_since=place.since,
        next_need=need,
        busy=place.pool is not Pool.RESERVATION or (need is None and not place.reservable),
        changing=False,
        managed=False,
    )
    if supply is None:
        return unmanaged
    moving = _is_changing(place, supply)
    on = supply.wanted == ON if moving else place.on
    asked_at = supply.wanted_at if supply.wanted == (ON if on else OFF) else None
    return replace(
        unmanaged,
        on=on,
        changed_at=asked_at or supply.since,
        idle_since=max(place.since, supply.used_at or place.since),
        changing=moving,
        managed=not (on and supply.failures),
    )


def _is_changing(place: HostPlace, supply: Supply) -> bool:
    return switching.is_coming(place, supply) or switching.is_going(place, supply)


def _is_due(place: HostPlace, supply: Supply, now: datetime, settings: Settings) -> bool:
    """Return whether its power supply is due: always while a request is pending, otherwise at intervals."""
    moving = _is_changing(place, supply)
    if supply.asked_at is None or (moving and switching.is_overdue(supply, now, settings)):
        return True
    pause = timedelta(0) if moving and not supply.failures else TRY_AGAIN if moving else LOOK_AGAIN
    return now - supply.asked_at >= min(LONGEST_PAUSE, pause * (1 << min(supply.failures, 10)))


def switch_on(climate: Climate, held: Sequence[HostPlace]) -> Mapping[HostPlace, str]:
    """Switch on hosts of the reservation pool; return those that are not up yet, with their states."""
    numbers = [place.host for place in held if place.pool is Pool.RESERVATION]

    with reading(climate.engine) as conn:
        if not power.managed(conn, numbers):
            return {}
    present, supplies, now = run(climate, _read_power, climate, numbers)
    jobs = _jobs(climate, present, supplies, now)
    if jobs:
        switching.run_jobs(climate, jobs)
        present, supplies, now = run(climate, _read_power, climate, numbers)
    return {
        place: supplies[host].error or ("is being switched off" if place.on else "is coming up")
        for host, place in _not_up(present, supplies).items()
    }


def _jobs(
    climate: Climate, present: Mapping[int, HostPlace], supplies: Mapping[int, Supply], now: datetime
) -> list[Job]:
    """Record the wish to switch on the hosts without one; return their calls and the due ones of the others."""
    asleep = {host for host, place in present.items() if not place.on and supplies[host].wanted != ON}
    jobs = switching.wish(climate, {present[host]: ON for host in asleep}, supplies)
    awake = {place: supplies[host] for host, place in _not_up(present, supplies).items() if host not in asleep}
    return [*jobs, *_due_jobs(awake, now, climate.settings)]


def _due_jobs(awake: Mapping[HostPlace, Supply], now: datetime, settings: Settings) -> list[Job]:
    """Return the due calls of power supplies: again for hosts that come up, and otherwise to read the state."""
    return [
        Job(place, supply, ON if switching.is_coming(place, supply) else None)
        for place, supply in awake.items()
        if _is_due(place, supply, now, settings)
    ]


def _not_up(present: Mapping[int, HostPlace], supplies: Mapping[int, Supply]) -> dict[int, HostPlace]:
    """Return the hosts that are off or being switched off."""
    return {host: place for host, place in present.items() if not place.on or switching.is_going(place, supplies[host])}


def _read_power(
    conn: Connection, climate: Climate, numbers: Sequence[int]
) -> tuple[Mapping[int, HostPlace], Mapping[int, Supply], datetime]:
    supplies = power.of(conn, numbers)
    return pool_membership.of(conn, supplies), supplies, climate.now(conn)
