"""Switching of hosts: record the request, call the power supplies, and record the observed states.

The request is recorded first, under the host's row lock. A later allocation of the host then sees it going
off, and an earlier one keeps it on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError
from climate.context import Climate
from climate.domain.facts import HostFact, HostMoved, HostSwitched
from climate.domain.hosts import pools
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.hosts.power_state import PowerObservation, PowerTimeLimits, Verdict, coming, going, judge
from climate.domain.notifications import Notice
from climate.domain.policy import Caller
from climate.power import OFF, ON, UNKNOWN
from climate.service.hosts import reconcile
from climate.service.notifications import delivery
from climate.service.power import parallel_requests
from climate.service.power.parallel_requests import Job, JobResult
from climate.service.transaction import run
from climate.settings import Settings
from climate.store import locks
from climate.store.hosts import pool_membership, power
from climate.store.hosts.power import Supply
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)

AUTHOR = Caller("climate:power", "")

TOLD_AFTER = 3
"""Number of consecutive failures after which admins are notified."""

FAILURES = frozenset({Verdict.STAYED_OFF, Verdict.STAYED_ON})

NOT_ASKED = "not asked for by climate"

Word = Mapping[str, str | None]
"""Problem of each host as the cloud reports it."""


def patience(settings: Settings) -> PowerTimeLimits:
    return PowerTimeLimits(timedelta(seconds=settings.power_timeout), timedelta(seconds=settings.service_down_seconds))


def is_coming(place: HostPlace, supply: Supply) -> bool:
    return coming(place.on, supply.wanted)


def is_going(place: HostPlace, supply: Supply) -> bool:
    return going(place.on, supply.wanted)


def is_overdue(supply: Supply, now: datetime, settings: Settings) -> bool:
    """Return whether it should be in the requested state by now."""
    return supply.wanted_at is not None and now - supply.wanted_at >= patience(settings).switching


def far(need: datetime | None, settings: Settings, now: datetime) -> bool:
    """Return whether the host can be off for a while before anybody needs it."""
    return need is None or need - now > timedelta(seconds=settings.power_on_lead + settings.least_off)


def wish(
    climate: Climate, wanted: Mapping[HostPlace, str], supplies: Mapping[int, Supply], *, hard: bool = False
) -> list[Job]:
    """Record the requested states of these hosts, and return the jobs for their power supplies.

    Skips hosts that others have allocated, moved or switched meanwhile. A host of the reservation pool that is
    needed soon is not switched off, unless its power is to be cut (`hard`).
    """
    return run(climate, _insert_jobs, climate, wanted, supplies, hard) if wanted else []


def _insert_jobs(
    conn: Connection, climate: Climate, wanted: Mapping[HostPlace, str], supplies: Mapping[int, Supply], hard: bool
) -> list[Job]:
    numbers = [place.host for place in wanted]
    locks.lock_host_allocation(conn)
    present, known = pool_membership.of(conn, numbers, lock=True), power.of(conn, numbers)
    needs, now = power.needs(conn, numbers), climate.now(conn)
    meant = {
        place.host: state
        for place, state in wanted.items()
        if present[place.host].version == place.version
        and supplies[place.host].is_as(known.get(place.host))
        and (state == ON or hard or far(needs.get(place.host), climate.settings, now))
    }
    power.wish(conn, meant, now)
    renewed = power.of(conn, meant)
    return [Job(present[host], renewed[host], state, hard=hard) for host, state in meant.items()]


def run_jobs(climate: Climate, jobs: Sequence[Job]) -> list[JobResult]:
    """Call the power supplies, and record the observed states; return the result of each job."""
    results: list[JobResult] = []
    for part in parallel_requests.run_jobs(climate, jobs):
        word = _word(climate, part)
        failed = run(climate, _record, climate, part, word)
        reconcile.send_moves(climate, failed)
        results += part
    return results


def _word(climate: Climate, results: Iterable[JobResult]) -> Word | None:
    """Return the cloud's report on its hosts, if needed; None if it does not answer."""
    if not any(result.state == ON and not result.job.place.on for result in results):
        return {}
    try:
        return climate.cloud.health()
    except CloudError as error:
        log.warning("host health unknown: cloud unreachable", error=str(error))
        return None


@dataclass(frozen=True, slots=True)
class _Turn:
    """Host with its observed state, and the verdict on it."""

    place: HostPlace
    supply: Supply
    seen: JobResult
    verdict: Verdict
    used: bool
    """Set if somebody uses it or counts on it now."""

    @property
    def fails(self) -> bool:
        """Return whether it should be available for leases and is not."""
        return self.verdict is Verdict.STAYED_OFF and self.place.pool is Pool.RESERVATION

    @property
    def was_requested(self) -> bool:
        return self.supply.wanted == (ON if self.verdict is Verdict.CAME_UP else OFF)


def _record(conn: Connection, climate: Climate, part: Sequence[JobResult], word: Word | None) -> list[HostPlace]:
    """Record facts, notes and notifications for observed states; return the hosts that have failed.

    A host whose power settings or request changed meanwhile is judged at the next check.
    """
    now = climate.now(conn)
    turns = _turns(conn, climate, part, word, now)
    moved = _write(conn, turns, now)
    for turn in turns:
        if turn.verdict is not Verdict.AS_BEFORE:
            log.info("host power changed", host=turn.place.name, outcome=turn.verdict, error=turn.seen.error)
    return [place for place in moved if place.pool is Pool.FAILED and place.since == now]


def _turns(
    conn: Connection, climate: Climate, part: Sequence[JobResult], word: Word | None, now: datetime
) -> list[_Turn]:
    """Judge the observed states; where something changes, once more with the hosts locked.

    Skips hosts that were removed, or whose power settings or request changed meanwhile.
    """
    numbers = [seen.job.supply.host for seen in part]
    needs = power.needs(conn, numbers)
    turns = _judged(climate, part, {seen.job.supply.host: seen.job.place for seen in part}, needs, word, now)
    if any(turn.verdict is not Verdict.AS_BEFORE for turn in turns):
        locks.lock_host_allocation(conn)
        present, needs = pool_membership.of(conn, numbers, lock=True), power.needs(conn, numbers)
        turns = _judged(climate, part, present, needs, word, now)
    known = power.of(conn, numbers)
    turns = [turn for turn in turns if turn.supply.is_as(known.get(turn.place.host)) and not turn.place.removed]
    power.note(conn, [_noted(turn, known[turn.place.host], now) for turn in turns])
    return turns


def _write(conn: Connection, turns: Sequence[_Turn], now: datetime) -> list[HostPlace]:
    """Record the facts and notifications of turns; return the memberships of the hosts with facts."""
    failing = sum(turn.fails for turn in turns)
    tokens = iter(event_claims.tokens(conn, failing) if failing else ())
    facts = [(turn.place, list(_facts(turn, now, next(tokens) if turn.fails else 0))) for turn in turns]
    moved = pool_membership.record(conn, AUTHOR, [(place, happened) for place, happened in facts if happened])
    delivery.notify(conn, now, *(notice for turn in turns for notice in _notices(turn)))
    return moved


def _judged(
    climate: Climate,
    part: Sequence[JobResult],
    present: Mapping[int, HostPlace],
    needs: Mapping[int, datetime],
    word: Word | None,
    now: datetime,
) -> list[_Turn]:
    limits, turns = patience(climate.settings), []
    for seen in part:
        place = present[seen.job.supply.host]
        need = needs.get(place.host)
        used = need is not None and need <= now
        verdict = judge(_glance(place, seen, used, word), now, limits)
        turns.append(_Turn(place, seen.job.supply, seen, verdict, used))
    return turns


def _glance(place: HostPlace, result: JobResult, used: bool, word: Word | None) -> PowerObservation:
    supply = result.job.supply
    return PowerObservation(
        on=place.on,
        since=supply.since,
        wanted=supply.wanted,
        wanted_at=supply.wanted_at,
        state=result.state or "",
        well=None if word is None else place.name in word and word[place.name] is None,
        refused=result.refused,
        idle=place.pool is Pool.RESERVATION and not used,
    )


def _noted(turn: _Turn, known: Supply, now: datetime) -> Supply:
    seen, verdict = turn.seen, turn.verdict
    settled = verdict not in FAILURES
    keeps = verdict is Verdict.AS_BEFORE or (settled and turn.was_requested)
    return replace(
        known,
        wanted=known.wanted if keeps else None,
        wanted_at=known.wanted_at if keeps else None,
        asked_at=now,
        state=seen.state or UNKNOWN,
        seen_at=now if seen.state else known.seen_at,
        # A host that did not go off counts as just switched on, so that it is not asked again at once.
        changed_at=known.changed_at if verdict in (Verdict.AS_BEFORE, Verdict.STAYED_OFF) else now,
        used_at=now if turn.used else known.used_at,
        failures=_failures(turn, known),
        error=seen.error or ("" if settled else _trouble(turn)),
    )


def _failures(turn: _Turn, known: Supply) -> int:
    if turn.seen.refused:  # notified at once, and once
        return max(known.failures + 1, TOLD_AFTER)
    return known.failures + 1 if turn.seen.error or turn.verdict in FAILURES else 0


def _facts(turn: _Turn, now: datetime, token: int) -> Iterator[HostFact]:
    if turn.verdict in (Verdict.CAME_UP, Verdict.WENT_OFF):
        why = f"asked for at {turn.supply.wanted_at:%Y-%m-%d %H:%M:%S} UTC" if turn.was_requested else NOT_ASKED
        yield HostSwitched(now, turn.verdict is Verdict.CAME_UP, why)
    if turn.fails:
        yield pools.move(turn.place, HostMoved(now, Pool.FAILED, _trouble(turn), token))


def _trouble(turn: _Turn) -> str:
    since = f"since it was asked to at {turn.supply.wanted_at:%Y-%m-%d %H:%M:%S} UTC"
    did = "come up" if turn.verdict is Verdict.STAYED_OFF else "gone off"
    said = turn.seen.error or f"its power supply says {turn.seen.state or UNKNOWN}"
    return f"it has not {did} {since}: {said}"


def _notices(turn: _Turn) -> Iterator[Notice]:
    """Yield notifications to admins about unexpected states."""
    name, verdict = turn.place.name, turn.verdict
    if verdict in FAILURES:
        yield _notice(turn, "power.failed", f"Host {name}: {_trouble(turn)}")
    elif turn.supply.failures < TOLD_AFTER <= _failures(turn, turn.supply):
        yield _notice(turn, "power.failed", f"The power supply of host {name} cannot be used: {turn.seen.error}")
    elif verdict is not Verdict.AS_BEFORE and not turn.was_requested:
        does = "on" if verdict is Verdict.CAME_UP else "off"
        yield _notice(turn, "power.switched", f"Host {name} was switched {does}, and not by climate")


def _notice(turn: _Turn, kind: str, message: str) -> Notice:
    body = {"host": turn.place.name, "state": turn.seen.state or UNKNOWN, "error": turn.seen.error}
    return Notice(kind, message, host=turn.place.host, body=body)
