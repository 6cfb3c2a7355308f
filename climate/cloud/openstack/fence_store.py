"""The book of tokens: the metadata of an aggregate without hosts."""

from collections.abc import Iterable

from climate.cloud.openstack import aggregates, fencing, servers
from climate.cloud.openstack.aggregates import BOOK, NOBODY, OWNER, Look
from climate.cloud.openstack.fencing import Changes
from climate.cloud.openstack.http import Remote

REMEMBERED = 50
"""Grants whose tokens are kept at least; no worker is late by as many."""

LOOKED_FOR = 2
"""Servers that each new entry makes us look for, so that the book never fills up with those that are gone."""


def fence(remote: Remote, seen: Look, subjects: Iterable[str], token: int) -> None:
    """Write down that a claim works on hosts or servers.  Fenced when a later one does, or has just begun to."""
    wanted = list(subjects)
    fencing.check(seen.book, wanted, token)
    changes = fencing.raising(seen.book, wanted, token)
    if changes:
        _write(remote, seen, wanted, token, changes)


def fence_server(remote: Remote, seen: Look, server_id: str, token: int) -> None:
    """The same for one server; a few of those that are gone are forgotten."""
    wanted = [fencing.of_server(server_id)]
    fencing.check(seen.book, wanted, token)
    changes = fencing.raising(seen.book, wanted, token)
    if changes:
        _write(remote, seen, wanted, token, _outlived(remote, seen, token) | changes)


def fence_pool(remote: Remote, seen: Look, name: str, token: int) -> None:
    """The same for what is granted; of that which is over, the latest are remembered."""
    wanted = [fencing.of_pool(name)]
    fencing.check(seen.book, wanted, token)
    changes = fencing.raising(seen.book, wanted, token)
    if changes:
        over = [
            each for each in fencing.oldest_pools(seen.book, REMEMBERED) if each not in seen.grants and each != name
        ]
        old: Changes = {key: None for each in over for key in fencing.dropping(seen.book, fencing.of_pool(each))}
        _write(remote, seen, wanted, token, old | changes)


def forget(remote: Remote, seen: Look, server_id: str) -> None:
    """Forget the tokens of a server that is gone."""
    changes = fencing.dropping(seen.book, fencing.of_server(server_id))
    if changes:
        aggregates.set_metadata(remote, seen.pools[BOOK], changes)


def _write(remote: Remote, seen: Look, wanted: list[str], token: int, changes: Changes) -> None:
    page = aggregates.ensure(remote, seen, BOOK)
    # Given to nobody, it is no aggregate that a scheduler has to look at.
    owner: Changes = {} if OWNER in page.metadata else {OWNER: NOBODY}
    fencing.check(aggregates.set_metadata(remote, page, owner | changes), wanted, token)


def _outlived(remote: Remote, seen: Look, token: int) -> Changes:
    """What forgets servers that are gone: of a few, others with each token."""
    known = fencing.servers(seen.book)
    start = token % len(known) if known else 0
    gone = [each for each in (known[start:] + known[:start])[:LOOKED_FOR] if servers.look(remote, each) is None]
    return {key: None for each in gone for key in fencing.dropping(seen.book, fencing.of_server(each))}
