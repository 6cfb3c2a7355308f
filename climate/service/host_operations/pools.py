"""Pools as admins see them: sizes, hosts with their states and reasons, settings, and promises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from climate.cloud import CloudServer
from climate.context import Climate
from climate.domain.errors import InvalidInput, InvalidPeriod, NotFound
from climate.domain.hosts.pools import DeadlineAction, HostPlace, OnEnd, OnIdle, Pool
from climate.domain.operator_facts import terms_stream
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.host_operations import recycling
from climate.service.host_operations.recycling import UpcomingAction
from climate.service.hosts import unregistered_hosts
from climate.service.transaction import run
from climate.store.hosts import drift, pool_membership, pool_settings, pools
from climate.store.hosts.pool_settings import PoolSettings
from climate.store.hosts.pools import Count, Promise
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.leases import event_claims

SOON = timedelta(hours=24)
MOST_HOSTS = 100_000

LONGEST_AHEAD = 366 * 86400
"""Longest horizon and longest dwell, in seconds."""

MOST: Mapping[str, int] = {
    **dict.fromkeys(("target", "spare", "slack"), MOST_HOSTS),
    **dict.fromkeys(("horizon", "dwell"), LONGEST_AHEAD),
    "margin": 1000,
}

WORDS: Mapping[str, frozenset[str]] = {
    "on_end": frozenset(OnEnd),
    "recycle_deadline": frozenset(DeadlineAction),
    "idle": frozenset(OnIdle),
}


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """Pool with its counts and settings."""

    pool: Pool
    count: Count
    terms: PoolSettings | None = None
    """Terms of the reservation pool that apply now."""
    own: frozenset[str] = frozenset()
    """Names of the terms that an admin has set; the others come from the settings."""
    unregistered: int | None = 0
    """Hosts of the cloud in the multi-tenant pool that are not registered; None if the cloud cannot be asked."""

    @property
    def hosts(self) -> int:
        """Return the known number of hosts in the pool."""
        return self.count.hosts + (self.unregistered or 0)


@dataclass(frozen=True, slots=True)
class Resident:
    """Host in its pool. `servers` is None if not requested, or if the cloud does not answer."""

    place: HostPlace
    lease: tuple[UUID, str] | None = None
    """Lease and project to which it is lent, or after which it is recycling or being cleaned."""
    next: Promise | None = None
    """Its next promise."""
    drift: str = ""
    servers: Sequence[CloudServer] | None = None
    server_count: int | None = None
    """Number of servers on it, if known."""
    ahead: UpcomingAction | None = None
    """Next action on the servers of a recycling host, if they may not stay until they leave by themselves."""
    promises: Sequence[Promise] = ()
    """Its leases now and later, if it was asked for alone."""


def named(name: str) -> Pool:
    """Return the pool of that name; raise NotFound with the known names."""
    try:
        return Pool(name)
    except ValueError:
        raise NotFound(f"There is no pool {name[:80]!r}; there are {', '.join(Pool)}") from None


def listed(climate: Climate, caller: Caller) -> list[PoolStatus]:
    """Return all pools; the number of statements does not depend on the number of hosts."""
    require(caller, "pools:get")
    return _counted(climate, run(climate, _statuses, climate))


def get(climate: Climate, caller: Caller, pool: Pool, at: datetime | None = None) -> PoolStatus:
    """Return a pool; with `at`, its terms are those of that time."""
    require(caller, "pools:get")
    result = run(climate, _statuses, climate, at)
    one = next(one for one in result if one.pool is pool)
    return _counted(climate, [one])[0] if pool is Pool.MULTI_TENANT else one


def _counted(climate: Climate, pools: Sequence[PoolStatus]) -> list[PoolStatus]:
    """Return the pools with the unregistered hosts of the multi-tenant pool."""
    strangers = unregistered_hosts.unregistered(climate)
    others = None if strangers is None else len(strangers)
    return [replace(pool, unregistered=others) if pool.pool is Pool.MULTI_TENANT else pool for pool in pools]


def history(climate: Climate, caller: Caller, pool: Pool) -> list[Entry]:
    """Return the changes of the terms of a pool with their authors."""
    require(caller, "pools:get")
    return run(climate, journal.read, terms_stream(pool))


def _statuses(conn: Connection, climate: Climate, at: datetime | None = None) -> list[PoolStatus]:
    now = climate.now(conn)
    counts = pools.counted(conn, now, now + SOON)
    own = pool_settings.stored_settings(conn) if at is None else pool_settings.settings_at(conn, at)
    said = frozenset(name for name in pool_settings.NAMES if own.get(name) is not None)
    result = [PoolStatus(pool, counts.get(pool, Count())) for pool in Pool]
    kept = PoolStatus(
        Pool.RESERVATION, counts.get(Pool.RESERVATION, Count()), pool_settings.of(conn, climate.settings, own), said
    )
    return [kept if one.pool is Pool.RESERVATION else one for one in result]


def change(
    climate: Climate, caller: Caller, pool: Pool, changes: Mapping[str, object], *, dry_run: bool = False
) -> PoolStatus:
    """Set the target and the terms of the reservation pool; None restores the value of the settings.

    Existing leases keep the terms with which they were created.
    """
    require(caller, "pools:put")
    if pool is not Pool.RESERVATION:
        raise InvalidInput(f"Only the pool {Pool.RESERVATION} has terms that can be set")
    if not changes:
        raise InvalidInput(f"Nothing to change; known are {', '.join(sorted(pool_settings.NAMES))}")
    for name, value in changes.items():
        _check(climate, name, value)
    return run(climate, _write_changes, climate, caller, pool, changes, keep=not dry_run)


def _write_changes(
    conn: Connection, climate: Climate, caller: Caller, pool: Pool, changes: Mapping[str, object]
) -> PoolStatus:
    pool_settings.store(conn, caller, changes, climate.now(conn))
    event_claims.wake_rounds(conn)
    return next(one for one in _statuses(conn, climate) if one.pool is pool)


def _check(climate: Climate, name: str, value: object) -> None:
    longest = climate.settings.max_grace_period
    most = {**MOST, "grace_period": longest}
    if value is None:
        return
    if name in most and not (isinstance(value, int) and 0 <= value <= most[name]):
        raise InvalidInput(f"{name} must be a number from 0 to {most[name]}, or null")
    if name in WORDS and value not in WORDS[name]:
        raise InvalidInput(f"{name} must be one of {', '.join(sorted(WORDS[name]))}, or null")
    if name in ("drain", "move_servers") and not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false, or null")
    if name not in pool_settings.NAMES:
        raise InvalidInput(f"{name[:80]!r} is not known; known are {', '.join(sorted(pool_settings.NAMES))}")


@dataclass(frozen=True, slots=True)
class Page:
    """Page of a list: up to `limit` hosts after the one with the number `marker`."""

    marker: int | None = None
    limit: int | None = None


def _page(conn: Connection, pool: Pool, page: Page) -> Sequence[HostPlace]:
    """Read a page; the marker may have left the pool since the page before."""
    if page.marker is not None and not pool_membership.of(conn, [page.marker]):
        raise InvalidInput(f"marker {page.marker} is not the id of a host")
    rest = [place for place in pool_membership.listed(conn, pool) if page.marker is None or place.host > page.marker]
    return rest if page.limit is None else rest[: page.limit]


def hosts_of(
    climate: Climate, caller: Caller, pool: Pool, page: Page = Page(), *, servers: bool | None = None
) -> list[Resident]:
    """Return the hosts of a pool, in the order of their numbers, in a constant number of statements.

    With `servers`, the cloud is asked for their servers; otherwise only for those of hosts that wait for the last
    one to leave. The number of servers on hosts of the multi-tenant pool is always included.
    """
    require(caller, "pools:get")
    residents = run(climate, _read_hosts, climate, pool, page)
    asked = pool in (Pool.RECYCLING, Pool.DRAINING) if servers is None else servers
    if asked:
        return [
            _with_servers(resident, unregistered_hosts.servers_on(climate, resident.place.name))
            for resident in residents
        ]
    known = unregistered_hosts.server_counts(climate) if pool is Pool.MULTI_TENANT and residents else {}
    return [replace(resident, server_count=known.get(resident.place.name)) for resident in residents]


def resident(climate: Climate, caller: Caller, host: int) -> Resident:
    """Return a host in its pool, with its leases; the cloud is not asked for its servers. Raise NotFound."""
    require(caller, "pools:get")
    return run(climate, _read_host, climate, host)


def _read_host(conn: Connection, climate: Climate, host: int) -> Resident:
    place = pool_membership.get(conn, host)
    return replace(_residents(conn, climate, place.pool, [place])[0], promises=pools.allocations_on(conn, [host]))


def _read_hosts(conn: Connection, climate: Climate, pool: Pool, page: Page) -> list[Resident]:
    return _residents(conn, climate, pool, _page(conn, pool, page))


def _residents(conn: Connection, climate: Climate, pool: Pool, result: Sequence[HostPlace]) -> list[Resident]:
    owners = pools.owners(conn, [place.host for place in result])
    coming = pools.following(conn, [place.host for place in result], climate.now(conn))
    wrong = drift.noted(conn)
    due = recycling.ahead(conn, climate.settings, result) if pool is Pool.RECYCLING else {}
    return [
        Resident(
            place,
            owners.get(place.host),
            coming.get(place.host),
            wrong.get(place.host, ""),
            ahead=due.get(place.host),
        )
        for place in result
    ]


def _with_servers(one: Resident, servers: Sequence[CloudServer] | None) -> Resident:
    return replace(one, servers=servers, server_count=None if servers is None else len(servers))


@dataclass(frozen=True, slots=True)
class Plan:
    """Promises of one host within a period."""

    place: HostPlace
    promises: Sequence[Promise]


AHEAD = timedelta(days=7)
LONGEST = timedelta(days=3660)


def backlog(
    climate: Climate,
    caller: Caller,
    pool: Pool,
    between: tuple[datetime | None, datetime | None] = (None, None),
    page: Page = Page(),
) -> tuple[Period, list[Plan]]:
    """Return the promises of hosts of a pool: to leases, to maintenance windows, or to cleaning.

    The period defaults to one week from now.
    """
    require(caller, "pools:get")
    return run(climate, _read_backlog, climate, pool, between, page)


def _read_backlog(
    conn: Connection, climate: Climate, pool: Pool, between: tuple[datetime | None, datetime | None], page: Page
) -> tuple[Period, list[Plan]]:
    start = between[0] or climate.now(conn)
    end = between[1] or start + AHEAD
    if not start < end <= start + LONGEST:
        raise InvalidPeriod(f"`to` must be later than `from`, by {LONGEST.days} days at most")
    period = Period(start, end)
    result = _page(conn, pool, page)
    taken: dict[int, list[Promise]] = {place.host: [] for place in result}
    for one in pools.promised(conn, taken, period):
        taken[one.host].append(one)
    return period, [Plan(place, taken[place.host]) for place in result]
