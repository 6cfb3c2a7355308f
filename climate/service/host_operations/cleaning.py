"""Cleaning of hosts after a lease, which ends once the cleaning time is over and the hook has succeeded.

The hook is the operator's command. It gets the host's name as its last argument and nothing of this process's
environment. It runs once for each cleaning and is retried if it fails, three runs at most. After that the
host has failed. A run whose worker died counts as one.

No run begins, and no host leaves the pool, while an earlier run for it may live. The processes of a run are
killed on the machine that started them. If that machine has no worker left, its host fails, and an
administrator has to check it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from threading import Thread
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import FREEPOOL, CloudError, Fenced, NotYet
from climate.context import Climate
from climate.domain.facts import HostMoved, PoolCause
from climate.domain.hosts import pools
from climate.domain.hosts.pools import CLEANING, FAILED, RESERVATION, HostPlace
from climate.domain.notifications import Notice
from climate.processes import process_supervisor
from climate.service import transaction
from climate.service.host_operations import cleaning_hook
from climate.service.host_operations.cleaning_hook import LOST, HookProcess, HookRun, Machine
from climate.service.host_operations.round_settings import AUTHOR, HOST_CLAIM_SECONDS
from climate.service.hosts import reconcile
from climate.service.notifications import delivery
from climate.store.hosts import cleaning, pool_membership
from climate.store.hosts.cleaning import Cleaning
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)

MOST_TRIES = 3
NOT_CLEANED = "not cleaned: "
"""Prefix of the reasons of hosts that have failed because they cannot be cleaned."""

PAUSE = timedelta(seconds=30)
"""Time between two runs of the hook."""

SLACK = timedelta(seconds=30)
"""Time beyond its limit after which a run of the hook counts as lost."""

UNVERIFIED = timedelta(minutes=10)
"""Time after that for the workers of its machine to settle the run, before the host fails."""

KILL_SECONDS = 5.0

Start = Callable[[Callable[[], None]], None]


def in_the_background(act: Callable[[], None]) -> None:
    """Run an action in a thread of its own, so that rounds do not wait for hooks."""
    Thread(target=act, daemon=True, name="cleaning").start()


def run_round(climate: Climate, start: Start = in_the_background) -> int:
    """Process every host in cleaning: run the hook, return the host, or fail it; return the number that left."""
    result = transaction.run(climate, _cases, climate)
    try:
        for turn in result.to_begin:
            start(lambda turn=turn: _clean(climate, turn))  # type: ignore[misc]
        home = [case for case in result.clean if _placed(climate, case)]
        gone = [*home, *result.out_of_tries]
        return _record(climate, gone) if gone else 0
    finally:
        if result.mine:
            transaction.run(climate, pool_membership.release_claims, result.mine)


@dataclass(frozen=True, slots=True)
class _Case:
    place: HostPlace
    token: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class _HookStart:
    """Run of the hook that begins."""

    place: HostPlace
    run: UUID
    token: int


@dataclass(frozen=True, slots=True)
class _Claimed:
    """Hosts in cleaning that this worker has claimed."""

    mine: frozenset[int] = frozenset()
    to_begin: Sequence[_HookStart] = ()
    """Hosts for which the hook is to run now."""
    clean: Sequence[_Case] = ()
    out_of_tries: Sequence[_Case] = ()


def _cases(conn: Connection, climate: Climate) -> _Claimed:
    now, places = climate.now(conn), pool_membership.listed(conn, CLEANING)
    if not places:
        return _Claimed()
    mine = pool_membership.claim(conn, [place.host for place in places], now, HOST_CLAIM_SECONDS)
    places = [place for place in places if place.host in mine]
    known = cleaning.last_cleanings(conn, mine)
    cases = [_Case(p, token) for p, token in zip(places, event_claims.tokens(conn, len(places)), strict=True)]
    out_of_tries = [_Case(c.place, c.token, said) for c in cases if (said := _final_error(c.place, known, now))]
    out = {case.place.host for case in out_of_tries}
    to_begin = _begun(conn, climate, [case for case in cases if case.place.host not in out], now)
    clean = [case for case in cases if _is_clean(climate, case.place, known, now)]
    return _Claimed(mine, to_begin, clean, out_of_tries)


def _begun(conn: Connection, climate: Climate, cases: Sequence[_Case], now: datetime) -> Sequence[_HookStart]:
    if not climate.settings.cleaning_hook:
        return ()
    limit = timedelta(seconds=climate.settings.cleaning_hook_seconds) + SLACK
    runs = cleaning.begin(conn, [case.place for case in cases], now, now + limit)
    return [_HookStart(c.place, runs[c.place.host], c.token) for c in cases if c.place.host in runs]


def _is_clean(climate: Climate, place: HostPlace, known: Mapping[int, Cleaning], now: datetime) -> bool:
    last, run = known.get(place.host), _run(place, known)
    if last is not None and last.may_live:
        return False
    over = place.until is None or place.until <= now
    return over and (not climate.settings.cleaning_hook or (run is not None and run.state == cleaning.DONE))


def _run(place: HostPlace, known: Mapping[int, Cleaning]) -> Cleaning | None:
    run = known.get(place.host)
    return run if run and run.ends_at == cleaning.ends_at(place) else None


def _final_error(place: HostPlace, known: Mapping[int, Cleaning], now: datetime) -> str:
    """Return the error of the last run; empty while further runs are allowed."""
    last = known.get(place.host)
    if last is not None and last.may_live and last.next_at + UNVERIFIED <= now:
        return f"it is unknown if its run on {last.worker}, process {last.pid}, is over"
    run = _run(place, known)
    if run is None or run.attempts < MOST_TRIES or run.state == cleaning.DONE or run.next_at > now:
        return ""
    if run.state == cleaning.FAILED:
        return run.error
    return LOST if run.machine is None else ""


def _clean(climate: Climate, turn: _HookStart) -> None:
    """Run the hook for a host and record its result."""
    settings, host = climate.settings, turn.place.host

    def record(process: HookProcess) -> bool:
        return transaction.run(climate, cleaning.record_process, host, turn.run, asdict(process))

    run = HookRun(settings.cleaning_hook, turn.place.name, settings.cleaning_hook_seconds, turn.run, turn.token)
    error = cleaning_hook.execute(run, record)
    _settle(climate, host, turn.run, error)
    if error:
        log.warning("cleaning hook failed", host=turn.place.name, error=error)
    else:
        log.info("cleaning hook succeeded", host=turn.place.name)


def _settle(climate: Climate, host: int, run: UUID | None, error: str) -> bool:
    return transaction.run(climate, _write_result, climate, host, run, error)


def _write_result(conn: Connection, climate: Climate, host: int, run: UUID | None, error: str) -> bool:
    now = climate.now(conn)
    return cleaning.settle(conn, host, run, error, now + PAUSE if error else now)


def end_lost_runs(climate: Climate) -> int:
    """End the runs on this machine whose worker is gone; return the number of ended runs.

    A worker of each machine has to do this, because no other one can see its processes.
    """
    machine = cleaning_hook.this_machine()
    lost = transaction.run(climate, _overdue, climate, machine)
    return sum(_settle(climate, host, run.run, LOST) for host, run in lost.items() if _is_over(machine, run))


def _overdue(conn: Connection, climate: Climate, machine: Machine) -> Mapping[int, Cleaning]:
    return cleaning.overdue(conn, machine.identity, climate.now(conn))


def _is_over(machine: Machine, run: Cleaning) -> bool:
    if machine.outlives(run.machine or ""):
        return True
    over = machine.sees(run.machine or "") and process_supervisor.kill_run(str(run.run), KILL_SECONDS)
    if not over:
        log.warning("cleaning hook run not killed", run=str(run.run), worker=run.worker, pid=run.pid)
    return over


def _placed(climate: Climate, case: _Case) -> bool:
    """Move hosts in the cloud first, because only it knows whether they are empty. Errors do not stop other hosts."""
    try:
        climate.cloud.place(case.place.name, FREEPOOL, case.token)
    except (CloudError, NotYet, Fenced) as error:
        log.warning("cleaned host cannot move yet", host=case.place.name, reason=str(error) or type(error).__name__)
        return False
    return True


def _record(climate: Climate, cases: Sequence[_Case]) -> int:
    """Record the moves of hosts that nobody has moved meanwhile; return their number."""
    after = transaction.run(climate, _write_moves, climate, cases)
    reconcile.send_moves(climate, [place for place in after if place.pool is FAILED])
    return len(after)


def _write_moves(conn: Connection, climate: Climate, cases: Sequence[_Case]) -> list[HostPlace]:
    now = climate.now(conn)
    present = pool_membership.of(conn, [case.place.host for case in cases], lock=True)
    same = [case for case in cases if present[case.place.host].version == case.place.version]
    if not same:
        return []
    after = pool_membership.record(conn, AUTHOR, [(c.place, [pools.move(c.place, _fact(c, now))]) for c in same])
    cleaning.free(conn, [case.place.host for case in same])
    delivery.notify(conn, now, *(_notice(case) for case in same if case.error))
    event_claims.wake_poller(conn)  # the next lease of one of them may be waiting
    return after


def _fact(case: _Case, now: datetime) -> HostMoved:
    if not case.error:
        return HostMoved(now, RESERVATION, "cleaned", case.token)
    reason, cause = NOT_CLEANED + case.error, PoolCause.NOT_CLEANED
    return HostMoved(now, FAILED, reason, case.token, case.place.reservation_id, cause=cause)


def _notice(case: _Case) -> Notice:
    said = f"Host {case.place.name} has failed, because it cannot be cleaned: {case.error}"
    return Notice(
        "host.cleaning_failed", said, host=case.place.host, body={"host": case.place.name, "reason": case.error}
    )
