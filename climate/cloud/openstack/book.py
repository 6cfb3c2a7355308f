"""The book of tokens: the metadata of an aggregate without hosts."""

from collections.abc import Iterable

from climate.cloud.openstack import fences, pools, servers
from climate.cloud.openstack.fences import Changes
from climate.cloud.openstack.pools import BOOK, NOBODY, OWNER, Look
from climate.cloud.openstack.remote import Remote

REMEMBERED = 50
"""Grants whose tokens are kept at least; no worker is late by as many."""

LOOKED_FOR = 2
"""Servers that each new entry makes us look for, so that the book never fills up with those that are gone."""


def fence(remote: Remote, seen: Look, subjects: Iterable[str], token: int) -> None:
    """Write down that a claim works on hosts or servers.  Fenced when a later one does, or has just begun to."""
    wanted = list(subjects)
    fences.check(seen.book, wanted, token)
    changes = fences.raising(seen.book, wanted, token)
    if changes:
        _write(remote, seen, wanted, token, changes)


def fence_server(remote: Remote, seen: Look, server_id: str, token: int) -> None:
    """The same for one server; a few of those that are gone are forgotten."""
    wanted = [fences.of_server(server_id)]
    fences.check(seen.book, wanted, token)
    changes = fences.raising(seen.book, wanted, token)
    if changes:
        _write(remote, seen, wanted, token, _outlived(remote, seen, token) | changes)


def fence_pool(remote: Remote, seen: Look, name: str, token: int) -> None:
    """The same for what is granted; of that which is over, the latest are remembered."""
    wanted = [fences.of_pool(name)]
    fences.check(seen.book, wanted, token)
    changes = fences.raising(seen.book, wanted, token)
    if changes:
        over = [each for each in fences.oldest_pools(seen.book, REMEMBERED) if each not in seen.grants and each != name]
        old: Changes = {key: None for each in over for key in fences.dropping(seen.book, fences.of_pool(each))}
        _write(remote, seen, wanted, token, old | changes)


def forget(remote: Remote, seen: Look, server_id: str) -> None:
    """Forget the tokens of a server that is gone."""
    changes = fences.dropping(seen.book, fences.of_server(server_id))
    if changes:
        pools.set_metadata(remote, seen.pools[BOOK], changes)


def _write(remote: Remote, seen: Look, wanted: list[str], token: int, changes: Changes) -> None:
    page = pools.ensure(remote, seen, BOOK)
    # Given to nobody, it is no aggregate that a scheduler has to look at.
    owner: Changes = {} if OWNER in page.metadata else {OWNER: NOBODY}
    fences.check(pools.set_metadata(remote, page, owner | changes), wanted, token)


def _outlived(remote: Remote, seen: Look, token: int) -> Changes:
    """What forgets servers that are gone: of a few, others with each token."""
    known = fences.servers(seen.book)
    start = token % len(known) if known else 0
    gone = [each for each in (known[start:] + known[:start])[:LOOKED_FOR] if servers.look(remote, each) is None]
    return {key: None for each in gone for key in fences.dropping(seen.book, fences.of_server(each))}
