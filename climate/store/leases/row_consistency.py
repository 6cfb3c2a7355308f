"""Detection of rows that differ from their facts, before a command derives new facts from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from climate.domain.errors import Tampered
from climate.domain.hosts import pools
from climate.domain.hosts.pools import HostPlace
from climate.domain.lease import Lease, fold
from climate.store.journal import journal


def refuse_lease(conn: Connection, lease: Lease) -> None:
    """Raise Tampered unless the lease is the fold of its journal."""
    known = fold(journal.of_lease(journal.read(conn, lease.id)))
    refuse(f"lease {lease.id}", lease, known)


def refuse_places(conn: Connection, places: Iterable[HostPlace]) -> None:
    """Raise Tampered unless each host is in the pool of its journal, in one statement for any number of hosts."""
    by_stream = {place.stream: place for place in places}
    entries = journal.read_many(conn, list(by_stream))
    for stream, result in groupby(entries, key=lambda entry: entry.stream):
        place = by_stream.pop(stream)
        refuse(f"host {place.name}", place, pools.fold(journal.of_host(result), stream))
    for place in by_stream.values():
        raise Tampered(_message(f"host {place.name}", ["everything"]))


def refuse_values(what: str, rows: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Raise Tampered unless values by name match the facts."""
    if rows != known:
        names = sorted(name for name in {*rows, *known} if rows.get(name) != known.get(name))
        raise Tampered(_message(what, names))


def differing(row: object, known: Any) -> list[str]:
    """Return the names of the fields in which two values of one dataclass differ."""
    return [f.name for f in fields(known) if getattr(row, f.name) != getattr(known, f.name)]


def refuse(what: str, row: object, known: object) -> None:
    """Raise Tampered unless two values of one dataclass are equal."""
    if row != known:
        raise Tampered(_message(what, differing(row, known)))


def _message(what: str, names: Sequence[str]) -> str:
    """Return the names only: unverified values are shown to operators alone."""
    return (
        f"The rows of {what} are not what its journal says ({', '.join(names)}): nothing was changed. "
        "An administrator has to look at `climate journal check`, and may mend them by `climate journal rebuild`"
    )
