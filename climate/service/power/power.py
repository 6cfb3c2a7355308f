"""Power of hosts for admins: settings, state, switching by hand, and energy saved."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from marshmallow import ValidationError
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, InvalidPeriod, NotFound, Unavailable
from climate.domain.facts import HostPowerCleared, HostPowerSet, HostSwitched
from climate.domain.hosts import power_planner
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.hosts.power_planner import Report
from climate.domain.policy import Caller, require
from climate.power import OFF, ON, PowerDriver
from climate.service.hosts.inventory import marker_number, number
from climate.service.leases import shortages
from climate.service.power import switching
from climate.service.power.parallel_requests import Job
from climate.service.transaction import run
from climate.store.hosts import pool_membership, power, power_history, row_consistency
from climate.store.hosts.power import Supply

USED = frozenset({Pool.LENT, Pool.RECYCLING, Pool.DRAINING, Pool.CLEANING})
"""Pools whose hosts are in use."""

MOST_SETTINGS = 64
LONGEST_REPORT = timedelta(days=366)
USUAL_REPORT = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Wiring:
    """Power settings of a host: the driver, its settings including secrets, and the power draw."""

    driver: str
    settings: Mapping[str, object] = field(default_factory=dict, repr=False)
    watts: int | None = None


@dataclass(frozen=True, slots=True)
class Powered:
    """Host with power settings. `secrets` are the names of the secrets; their values are never shown."""

    place: HostPlace
    supply: Supply
    secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HoursOff:
    """Hours that hosts were off within a period. `names` are those of the hosts in the report, by number."""

    start: datetime
    end: datetime
    names: Mapping[int, str]
    report: Report


def put(
    climate: Climate,
    caller: Caller,
    host_id: str,
    wiring: Wiring,
    *,
    dry_run: bool = False,
) -> Powered:
    """Set the power settings of a host, as a whole; raise InvalidInput for settings that the driver refuses."""
    require(caller, "power:put")
    chosen = _driver(climate, wiring.driver)
    accepted = _accepted(chosen, wiring.settings)
    secrets = {name: value for name, value in accepted.items() if name in chosen.secrets and value}
    plain = {name: value for name, value in accepted.items() if name not in chosen.secrets}
    sealed = climate.vault.seal(secrets) if secrets else ""
    return run(climate, _put, climate, caller, host_id, replace(wiring, settings=plain), sealed, keep=not dry_run)


def _put(conn: Connection, climate: Climate, caller: Caller, host_id: str, wiring: Wiring, sealed: str) -> Powered:
    place, now = pool_membership.get(conn, number(host_id), lock=True), climate.now(conn)
    row_consistency.refuse_tampered(conn, place)
    fact = HostPowerSet(now, wiring.driver, wiring.settings, wiring.watts, bool(sealed))
    pool_membership.record(conn, caller, [(place, [fact])])
    made = power.store(conn, Supply(place.host, wiring.driver, wiring.settings, now, sealed, wiring.watts), now)
    return _powered(climate, place, made)


def get(climate: Climate, caller: Caller, host_id: str) -> Powered:
    """Return the power settings and state of a host; raise NotFound without settings."""
    require(caller, "power:get")
    return run(climate, _get, climate, host_id)


def listed(climate: Climate, caller: Caller, marker: str | None = None, limit: int | None = None) -> list[Powered]:
    """Return all hosts with power settings, in the order of their numbers."""
    require(caller, "power:get")
    after = 0 if marker is None else marker_number(marker)
    return run(climate, _read_page, climate, limit, after)


def _read_page(conn: Connection, climate: Climate, limit: int | None, after: int) -> list[Powered]:
    supplies = power.listed(conn, after, limit)
    there = pool_membership.of(conn, supplies)
    return [_powered(climate, there[host], supply) for host, supply in supplies.items()]


def clear(climate: Climate, caller: Caller, host_id: str, *, force: bool = False, dry_run: bool = False) -> None:
    """Remove the power settings of a host; raise Conflict while it is off or going off.

    Nobody would switch it on again. With `force` it counts as on from then.
    """
    require(caller, "power:delete")
    run(climate, _clear, climate, caller, host_id, force, keep=not dry_run)


def _clear(conn: Connection, climate: Climate, caller: Caller, host_id: str, force: bool) -> None:
    result = _get(conn, climate, host_id, lock=True)
    place = result.place
    if not force and (not place.on or result.supply.wanted == OFF):
        raise Conflict(f"Host {place.name} is switched off: switch it on first, or force it")
    now = climate.now(conn)
    row_consistency.refuse_tampered(conn, place)
    power.clear(conn, place.host)
    on = () if place.on else (HostSwitched(now, True, "no longer switched by climate"),)
    pool_membership.record(conn, caller, [(place, [HostPowerCleared(now), *on])])


@dataclass(frozen=True, slots=True)
class ManualRequest:
    """Request of an admin for a host's power. `hard` cuts it; `force` also applies if the host is in use."""

    on: bool
    hard: bool = False
    force: bool = False

    @property
    def state(self) -> str:
        return ON if self.on else OFF


def switch(climate: Climate, caller: Caller, host_id: str, request: ManualRequest, *, dry_run: bool = False) -> Powered:
    """Request to switch a host; the plan may switch it again after its minimum time.

    Raises Conflict if it is in use, is switching the other way, or its power supply refuses. Raises Unavailable
    if the power supply does not answer.
    """
    require(caller, "power:switch")
    result = get_for(climate, host_id)
    servers = 0
    if not request.on and not request.force:
        with shortages.of_the_cloud():
            servers = len(climate.cloud.servers_on(result.place.name))
    job = run(climate, _begin_switch, climate, host_id, request, servers, keep=not dry_run)
    if dry_run:
        return _powered(climate, job.place, job.supply)
    for seen in switching.run_jobs(climate, [job]):
        if seen.error:
            _withdraw(climate, seen.job)
            refusal = Conflict if seen.refused else Unavailable
            raise refusal(f"Host {job.place.name} cannot be switched {request.state}: {seen.error}")
    return get_for(climate, host_id)


def _begin_switch(conn: Connection, climate: Climate, host_id: str, request: ManualRequest, servers: int) -> Job:
    now_found = _get(conn, climate, host_id, lock=True)
    place, supply = now_found.place, now_found.supply
    need, now = power.needs(conn, [place.host]).get(place.host), climate.now(conn)
    if not request.on and not request.force:
        _refuse_in_use(climate, place, servers, need, now)
    if request.on and switching.is_going(place, supply) and not request.force:
        raise Conflict(f"Host {place.name} is being switched off: it can be switched on when it is off")
    power.wish(conn, {place.host: request.state}, now)
    return Job(place, power.of(conn, [place.host])[place.host], request.state, request.hard)


def _refuse_in_use(climate: Climate, place: HostPlace, servers: int, need: datetime | None, now: datetime) -> None:
    if place.pool in USED:
        raise Conflict(f"Host {place.name} is in use: it is in the pool {place.pool}")
    if servers:
        raise Conflict(f"Host {place.name} is in use: {servers} servers are on it")
    if not switching.far(need, climate.settings, now):
        raise Conflict(f"Host {place.name} is needed at {need:%Y-%m-%d %H:%M:%S} UTC")


def _withdraw(climate: Climate, job: Job) -> None:
    """Withdraw a request that could not be sent, unless there is a newer one."""
    run(climate, _forget_job, climate, job)


def _forget_job(conn: Connection, climate: Climate, job: Job) -> None:
    known = power.of(conn, [job.place.host]).get(job.place.host)
    if known and job.supply.is_as(known):
        power.wish(conn, {job.place.host: None}, climate.now(conn))


def report(climate: Climate, caller: Caller, start: datetime | None, end: datetime | None) -> HoursOff:
    """Return the hours that each host was off, and kWh if its power draw is known; by default of the last 30 days."""
    require(caller, "power:get")
    return run(climate, _read_savings, climate, start, end)


def _read_savings(conn: Connection, climate: Climate, start: datetime | None, end: datetime | None) -> HoursOff:
    now = climate.now(conn)
    until = min(end, now) if end else now
    since = start or until - USUAL_REPORT
    if not since < until:
        raise InvalidPeriod("A report must start before now, and end after its start")
    if until - since > LONGEST_REPORT:
        raise InvalidPeriod(f"A report covers {LONGEST_REPORT.days} days at most")
    history = power_history.between(conn, since, until)
    watts = {host: float(one.watts) for host, one in power.listed(conn).items() if one.watts is not None}
    saved = power_planner.saved(history.history, until, since, watts or None)
    return HoursOff(since, until, history.names, saved)


def get_for(climate: Climate, host_id: str) -> Powered:
    """Return the power settings of a host for an authorized caller."""
    return run(climate, _get, climate, host_id)


def _get(conn: Connection, climate: Climate, host_id: str, *, lock: bool = False) -> Powered:
    place = pool_membership.get(conn, number(host_id), lock=lock)
    supply = power.of(conn, [place.host]).get(place.host)
    if supply is None:
        raise NotFound(f"Host {place.host} has no power settings")
    return _powered(climate, place, supply)


def _powered(climate: Climate, place: HostPlace, supply: Supply) -> Powered:
    driver = climate.power.get(supply.driver)
    return Powered(place, supply, tuple(sorted(driver.secrets)) if driver and supply.secrets else ())


def _driver(climate: Climate, name: str) -> PowerDriver:
    try:
        return climate.power[name]
    except KeyError:
        known = ", ".join(sorted(climate.power))
        raise InvalidInput(f"There is no power driver {name[:80]!r}; there are {known}") from None


def _accepted(driver: PowerDriver, settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings as the driver accepts them. No error message contains a value."""
    if len(settings) > MOST_SETTINGS:
        raise InvalidInput(f"A host has {MOST_SETTINGS} power settings at most")
    schema = driver.schema()
    try:
        accepted: dict[str, object] = schema.load(settings)
    except ValidationError as error:
        wrong = "; ".join(
            f"settings.{str(name)[:80]}: {' '.join(map(str, said))}"
            for name, said in sorted(error.messages_dict.items())
        )
        known = ", ".join(sorted(schema.fields))
        raise InvalidInput(f"{wrong}; settings of this driver are {known}") from None
    return accepted
