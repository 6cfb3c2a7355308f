"""Detection of failed and recovered hosts, from the health that the cloud reports over some time."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudServer
from climate.context import Climate
from climate.domain.errors import Busy, Conflict, InvalidInput
from climate.domain.facts import HostMoved, PoolCause
from climate.domain.hosts import pools
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.notifications import Notice
from climate.domain.policy import Caller, require
from climate.service.host_operations.recovery import Return, return_hosts
from climate.service.host_operations.round_settings import AUTHOR
from climate.service.hosts import reconcile
from climate.service.hosts.inventory import number
from climate.service.leases import shortages
from climate.service.notifications import delivery
from climate.service.transaction import run
from climate.settings import Settings
from climate.store import locks
from climate.store.hosts import cleaning, hosts, pool_membership
from climate.store.hosts import health as ailing
from climate.store.hosts.health import Health
from climate.store.leases import event_claims, row_consistency

WELL = "declared well"
"""Reason of failed hosts that an administrator has declared well."""

RECOVERED = "it is well again"
UNKNOWN = "the cloud does not know it"
LONGEST_REASON = 1000

SEVERAL = 2
"""Number of hosts that do not fail if all of them are unwell at once."""

log = structlog.get_logger(__name__)

Word = Mapping[str, str | None]
"""Problem of each host as the cloud reports it."""


def check(climate: Climate) -> None:
    """Move hosts that were unwell for a while to FAILED, and move recovered ones back.

    Hosts that an admin took out, or that cannot be cleaned, wait for an admin: the cloud's report of health does not
    know these reasons. Hosts that are switched off or in maintenance are not unwell. The number of
    statements is constant for any number of hosts, plus a few for each returning host. No host fails while all of
    several are unwell at once, because the cloud itself is then likely broken. Raises CloudError if the cloud does
    not answer.
    """
    word = climate.cloud.health()
    failed, well = run(climate, _judge, climate, word)
    reconcile.send_moves(climate, failed)
    return_hosts(climate, well, Return(AUTHOR, RECOVERED, "host.recovered"))


def _judge(conn: Connection, climate: Climate, word: Word) -> tuple[list[HostPlace], Sequence[int]]:
    """Return the memberships of hosts that fail now, and the numbers of those that recovered."""
    glance = pool_membership.list_columns(conn)
    if glance.is_quiet and all(word.get(name, UNKNOWN) is None for name in glance.names):
        return [], []
    now, known, taken_out = climate.now(conn), ailing.health(conn), ailing.taken_out(conn)
    present = [place for place in pool_membership.listed(conn) if place.host in known]  # no host just registered
    nobody = _nobody_is_well(present, known, word)
    findings: list[_Finding] = []
    for place in present:
        said, health = word.get(place.name, UNKNOWN), known[place.host]
        trouble = trouble_of(place, health, said, now, climate.settings)
        if place.pool is Pool.FAILED:
            doubted = _is_well(place, said) and not _waits_for_admin(place, taken_out)
        else:
            doubted = _seems_unwell(trouble, said, nobody)
        since = (health.doubted_since or now) if doubted else None
        findings.append(_Finding(place, trouble, health.doubted_since, since))
    return _record(conn, findings, now, timedelta(seconds=climate.settings.failed_after))


@dataclass(frozen=True, slots=True)
class _Finding:
    """Judgement of one host: it seems unwell, or well again if it has failed."""

    place: HostPlace
    trouble: str | None
    noted: datetime | None
    """Recorded time since which it seems so."""
    since: datetime | None
    """Time since which it seems so now."""

    @property
    def is_new(self) -> bool:
        return self.since != self.noted


def _record(
    conn: Connection, findings: Sequence[_Finding], now: datetime, after: timedelta
) -> tuple[list[HostPlace], Sequence[int]]:
    """Record the findings; return the hosts that fail, and the numbers of those that recovered, after this time."""
    doubts = {finding.place.host: finding.since for finding in findings if finding.is_new}
    settled = [finding for finding in findings if finding.since is not None and now - finding.since >= after]
    well = [one.place.host for one in settled if one.place.pool is Pool.FAILED]
    ill = {one.place.host: one.trouble for one in settled if one.trouble and one.place.pool is not Pool.FAILED}
    locks.lock_hosts(conn, {*doubts, *ill})
    ailing.doubt(conn, doubts)
    return _fail(conn, AUTHOR, ill, now), well


def _waits_for_admin(place: HostPlace, taken_out: Collection[int]) -> bool:
    """Return whether a failed host was taken out by an admin, or could not be cleaned."""
    out = place.host in taken_out and place.cause is not PoolCause.DECLARED_WELL
    return out or place.cause is PoolCause.NOT_CLEANED


def _nobody_is_well(present: Sequence[HostPlace], known: Mapping[int, Health], word: Word) -> bool:
    """Return whether the cloud reports none of several hosts as well that should run."""
    kept_out = (Pool.FAILED, Pool.MAINTENANCE)
    ought = [p for p in present if p.on and p.pool not in kept_out and known[p.host].wanted != "off"]
    silent = len(ought) >= SEVERAL and all(word.get(place.name, UNKNOWN) for place in ought)
    if silent:
        log.warning("host failures ignored: cloud reports no host as well", hosts=len(ought))
    return silent


def _is_well(place: HostPlace, said: str | None) -> bool:
    """Return whether the host is well. The cloud's report does not count for a host declared well that is off."""
    return said is None or (place.cause is PoolCause.DECLARED_WELL and not place.on)


def _seems_unwell(trouble: str | None, said: str | None, nobody: bool) -> bool:
    """Return whether the time counts after which a host fails; `nobody`: the cloud reports no host well.

    All timers restart with the first host that is reported well again.
    """
    return trouble is not None and not (nobody and trouble == said)


def trouble_of(place: HostPlace, health: Health, said: str | None, now: datetime, settings: Settings) -> str | None:
    """Return the problem of a host that should run servers now, or None; a host has its time to boot.

    A host that is off in the reservation pool is switched on when needed. One that is lent is needed now.
    """
    if place.pool is Pool.MAINTENANCE:
        return None
    if health.is_to_come_up and health.wanted_at and (said or not place.on):
        waited = now - health.wanted_at >= timedelta(seconds=settings.power_timeout)
        return (health.error or said or "it does not come up") if waited else None
    if not place.on and place.pool is Pool.LENT:
        return "it is switched off, and lent"
    return None if health.wanted == "off" or not place.on else said


def _fail(conn: Connection, author: Caller, ill: Mapping[int, str], now: datetime) -> list[HostPlace]:
    """Record failures, keeping the reservation of each host, because its servers are on the host."""
    present = pool_membership.of(conn, ill, lock=True)
    struck = [p for p in present.values() if p.pool not in (Pool.FAILED, Pool.MAINTENANCE) and not p.removed]
    tokens = event_claims.tokens(conn, len(struck)) if struck else []
    changes = [
        (place, [pools.move(place, HostMoved(now, Pool.FAILED, ill[place.host], token, place.reservation_id))])
        for place, token in zip(struck, tokens, strict=True)
    ]
    failed = pool_membership.record(conn, author, changes)
    ailing.doubt(conn, dict.fromkeys((place.host for place in failed), None))
    delivery.notify(conn, now, *(_notice(place) for place in failed))
    return failed


def _notice(place: HostPlace) -> Notice:
    return Notice("host.failed", f"Host {place.name} has failed: {place.reason}", host=place.host)


def fail(climate: Climate, caller: Caller, host_id: str, reason: str, *, dry_run: bool = False) -> HostPlace:
    """Fail a host until an admin declares it well; raise Conflict if it has failed or is in maintenance."""
    require(caller, "oshosts:fail")
    if not reason.strip() or len(reason) > LONGEST_REASON:
        raise InvalidInput(f"reason must be a text of 1 to {LONGEST_REASON} characters")
    failed = run(climate, _mark_failed, climate, caller, host_id, reason, keep=not dry_run)
    if not dry_run:
        reconcile.send_moves(climate, [failed])
    return failed


def _mark_failed(conn: Connection, climate: Climate, caller: Caller, host_id: str, reason: str) -> HostPlace:
    place = pool_membership.get(conn, number(host_id), lock=True)
    row_consistency.refuse_places(conn, [place])
    failed = _fail(conn, caller, {place.host: reason.strip()}, climate.now(conn))
    if not failed:
        raise Conflict(f"Host {place.name} is in the pool {place.pool} already: {place.reason}")
    return failed[0]


def heal(climate: Climate, caller: Caller, host_id: str, *, dry_run: bool = False) -> HostPlace:
    """Declare a failed host well, so that it returns at once or soon.

    Raises Conflict if it has not failed, or the cloud reports it as unwell. A host that is switched off returns
    as it is.
    """
    require(caller, "oshosts:heal")
    with shortages.of_the_cloud():
        word = climate.cloud.health()
    place = run(climate, _mark_healed, climate, caller, host_id, word, keep=not dry_run)
    if dry_run:
        return place
    return_hosts(climate, [place.host], Return(caller, RECOVERED, "host.recovered"))
    present = run(climate, pool_membership.get, place.host)
    if present.pool is Pool.FAILED:
        raise Busy(f"Host {place.name} is well, and comes back as soon as the cloud and its lease allow it")
    return present


def _mark_healed(conn: Connection, climate: Climate, caller: Caller, host_id: str, word: Word) -> HostPlace:
    place, now = pool_membership.get(conn, number(host_id), lock=True), climate.now(conn)
    if place.pool is not Pool.FAILED:
        raise Conflict(f"Host {place.name} has not failed: it is in the pool {place.pool}")
    if place.on and (said := word.get(place.name, UNKNOWN)):
        raise Conflict(f"Host {place.name} is unwell: {said}")
    row_consistency.refuse_places(conn, [place])
    cause = PoolCause.DECLARED_WELL
    fact = HostMoved(now, Pool.FAILED, WELL, place.token, place.reservation_id, place.until, cause)
    after = pool_membership.record(conn, caller, [(place, [fact])])[0]
    cleaning.presume_over(conn, place.host, now)
    ailing.doubt(conn, {place.host: now - timedelta(seconds=climate.settings.failed_after)})
    return after


@dataclass(frozen=True, slots=True)
class Report:
    """Health of a host: its pool and the reason, the cloud's report, its servers, and the leases that hold it."""

    place: HostPlace
    trouble: str | None
    """Problem reported by the cloud or the power controller; None without one."""
    doubted_since: datetime | None
    """Time since which it seems unwell, or well again if it has failed."""
    servers: tuple[CloudServer, ...]
    leases: tuple[UUID, ...]
    """Leases that hold it, now or later."""


def report(climate: Climate, caller: Caller, host_id: str) -> Report:
    require(caller, "oshosts:health")
    place, known, held, now = run(climate, _read_report, climate, host_id)
    with shortages.of_the_cloud():
        said = climate.cloud.health().get(place.name, UNKNOWN)
        servers = climate.cloud.servers_on(place.name)
    on = said if place.on and known.wanted != "off" else None
    trouble = on or trouble_of(place, known, said, now, climate.settings)
    return Report(place, trouble, known.doubted_since, tuple(servers), tuple(sorted(held)))


def _read_report(
    conn: Connection, climate: Climate, host_id: str
) -> tuple[HostPlace, Health, Sequence[UUID], datetime]:
    place = pool_membership.get(conn, number(host_id))
    known = ailing.health(conn, [place.host])[place.host]
    return place, known, hosts.promised(conn, place.host), climate.now(conn)
