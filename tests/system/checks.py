"""What has to be true after a storm, each promise by a look of its own."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

from climate.context import Climate
from climate.domain import facts
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease, fold
from climate.domain.status import EventKind, EventStatus, LeaseStatus
from climate.store.journal import journal
from climate.store.leases import leases
from tests.system.traffic import Wish

WORDS = {"start": EventKind.START, "before_end": EventKind.BEFORE_END, "end": EventKind.END}


def read_leases(climate: Climate) -> list[Lease]:
    """Every lease that there is or was."""
    with climate.engine.connect() as conn:
        return list(leases.all_of(conn))


def of_wishes(wishes: Iterable[Wish], all_leases: list[Lease]) -> list[str]:
    """Acknowledged leases that are not there once, or not with the dates that were acknowledged."""
    by_name: dict[str, list[Lease]] = defaultdict(list)
    for lease in all_leases:
        by_name[lease.name].append(lease)
    wrong = [f"{name} is there {len(found)} times" for name, found in by_name.items() if len(found) > 1]
    for wish in wishes:
        found = by_name[wish.name]
        if not found or (wish.lease_id and str(found[0].id) != wish.lease_id):
            wrong.append(f"{wish.name} was acknowledged and is lost")
        elif f"{found[0].period.end:%Y-%m-%dT%H:%M:%SZ}" not in wish.ends and not wish.deleted:
            wrong.append(f"{wish.name} ends at {found[0].period.end}, not at {wish.ends}")
        elif found[0].gone and not wish.deleted and wish.kind != "server":
            wrong.append(f"{wish.name} is gone, and nobody deleted it")
    return wrong


def of_statuses(all_leases: list[Lease]) -> list[str]:
    """Leases that are not where their dates say, now that all of them are over; a missed start has its reason."""
    wrong = []
    for lease in all_leases:
        start = lease.event(EventKind.START)
        if not lease.gone and lease.status is not LeaseStatus.TERMINATED:
            wrong.append(f"{lease.name} is {lease.status}: {lease.reason}")
        if start.status is EventStatus.ERROR and not (start.outcome == "MISSED" and start.reason):
            wrong.append(f"{lease.name} did not start: {start.outcome} {start.reason}")
    return wrong


def of_pages(folder: Path, all_leases: list[Lease], claims: dict[UUID, set[int]]) -> list[str]:
    """Hooks of the ledger that were applied twice or never, ran twice under one claim, or under none."""
    wrong = []
    for lease in (lease for lease in all_leases if lease.reservations[0].resource_type == "test:ledger"):
        page = folder / str(lease.reservations[0].id)
        lines = [json.loads(line) for line in page.read_text(encoding="utf-8").splitlines()] if page.exists() else []
        for word, kind in WORDS.items():
            wrong += [f"{lease.name} {said}" for said in _of_hook(lines, word, lease, kind, claims)]
        wrong += [f"{lease.name}: end before start" for a, b in pairwise(_applied(lines)) if (a, b) == ("end", "start")]
    return wrong


def _applied(lines: list[dict[str, Any]]) -> list[str]:
    return [line["word"] for line in lines if line["did"] == "applied"]


def _of_hook(
    lines: list[dict[str, Any]], word: str, lease: Lease, kind: EventKind, claims: dict[UUID, set[int]]
) -> list[str]:
    event = next((event for event in lease.events if event.kind is kind), None)
    calls = Counter(line["token"] for line in lines if line["word"] == word)
    applied = _applied(lines).count(word)
    done = event is not None and event.status is EventStatus.DONE and event.outcome in ("OK", "LATE")
    wrong = [f"{word} ran {count} times under one claim" for count in calls.values() if count > 1]
    if event is None or not set(calls) <= claims[event.id]:
        wrong.append(f"{word} ran without a claim: {set(calls)}")
    if applied > 1 or (done and applied != 1):
        wrong.append(f"{word} was applied {applied} times, and its event is {event}")
    return wrong


def claims_of(climate: Climate) -> tuple[dict[UUID, set[int]], dict[UUID, list[journal.Entry]]]:
    """Event -> tokens of its claims, and lease -> its facts; both from the journal."""
    tokens: dict[UUID, set[int]] = defaultdict(set)
    streams: dict[UUID, list[journal.Entry]] = defaultdict(list)
    with climate.engine.connect() as conn:
        for entry in journal.read_all(conn):
            streams[entry.stream].append(entry)
            if isinstance(entry.fact, facts.EventClaimed):
                tokens[entry.fact.event_id].add(entry.fact.token)
    return tokens, streams


def of_hosts(streams: dict[UUID, list[journal.Entry]]) -> list[str]:
    """Hosts that were handed to a lease before the lease before had given them back.

    By the times at which the journal was written: a fact's own time is read
    before its transaction has seen what others did. The last claim of a start counts:
    a start that waits for the lease before is put back and claimed again. A claim that
    was taken back before its work began does not. `of_lent_hosts` finds hosts that an
    earlier claim was given too early.
    """
    lent: dict[int, list[tuple[datetime, datetime, str]]] = defaultdict(list)
    for entries in streams.values():
        lease = fold([entry.fact for entry in entries])
        claimed = _claims_of_start(lease, entries)
        if claimed and lease.event(EventKind.START).outcome != "MISSED":
            for host in lease.reservations[0].hosts:
                lent[host].append((claimed[-1], _given_back(lease, entries), lease.name))
    return [f"host {host}: {a} {b}" for host, times in lent.items() for a, b in pairwise(sorted(times)) if b[0] < a[1]]


def _claims_of_start(lease: Lease, entries: Sequence[journal.Entry]) -> list[datetime]:
    """Times of the claims of a start that were not taken back, oldest first."""
    start, times = lease.event(EventKind.START).id, list[datetime]()
    for entry in entries:
        match entry.fact:
            case facts.EventClaimed(event_id=event_id) if event_id == start:
                times.append(entry.recorded_at)
            case facts.EventClaimTakenBack(event_id=event_id) if event_id == start:
                times.pop()
    return times


def read_moves(climate: Climate) -> dict[UUID, list[journal.Entry]]:
    """Host -> moves of its journal, oldest first."""
    moves: dict[UUID, list[journal.Entry]] = defaultdict(list)
    with climate.engine.connect() as conn:
        for entry in journal.read_all(conn, of=facts.HostFact):
            if isinstance(entry.fact, facts.HostMoved):
                moves[entry.stream].append(entry)
    return moves


def of_lent_hosts(moves: Mapping[UUID, Sequence[journal.Entry]]) -> list[str]:
    """Hosts that went from one reservation to another directly, by their own journals."""
    wrong = []
    for host, entries in moves.items():
        lent = [entry.fact.reservation_id if entry.fact.pool == Pool.LENT else None for entry in entries]
        wrong += [f"host {host}: {a} {b}" for a, b in pairwise(lent) if a and b and a != b]
    return wrong


def _given_back(lease: Lease, entries: list[journal.Entry]) -> datetime:
    end = lease.event(EventKind.END)
    over = [e.recorded_at for e in entries if isinstance(e.fact, facts.EventFinished) and e.fact.event_id == end.id]
    return over[-1] if over else entries[-1].recorded_at
