"""Token book: the metadata of an aggregate without hosts."""

from collections.abc import Iterable

from climate.cloud.openstack import fencing, servers
from climate.cloud.openstack.fencing import Changes
from climate.cloud.openstack.http import Remote
from climate.cloud.openstack.pools import aggregates
from climate.cloud.openstack.pools.aggregates import BOOK, NOBODY, OWNER, AggregateState

REMEMBERED = 50
"""Minimum number of shared capacities whose tokens are kept; no worker is late by as many."""

LOOKED_FOR = 2
"""Number of servers that are checked per new entry, so that entries of deleted servers do not fill the book."""


def fence(remote: Remote, state: AggregateState, subjects: Iterable[str], token: int) -> None:
    """Record that a claim works on hosts or servers. Raise Fenced if a later claim works on them already."""
    wanted = list(subjects)
    fencing.check(state.book, wanted, token)
    changes = fencing.raising(state.book, wanted, token)
    if changes:
        _write(remote, state, wanted, token, changes)


def fence_server(remote: Remote, state: AggregateState, server_id: str, token: int) -> None:
    """Do the same for one server, and forget a few deleted ones."""
    wanted = [fencing.of_server(server_id)]
    fencing.check(state.book, wanted, token)
    changes = fencing.raising(state.book, wanted, token)
    if changes:
        _write(remote, state, wanted, token, _expired_servers(remote, state, token) | changes)


def fence_pool(remote: Remote, state: AggregateState, name: str, token: int) -> None:
    """Do the same for shared capacity; keep the latest tokens of capacity that was released."""
    wanted = [fencing.of_pool(name)]
    fencing.check(state.book, wanted, token)
    changes = fencing.raising(state.book, wanted, token)
    if changes:
        over = [
            each for each in fencing.oldest_pools(state.book, REMEMBERED) if each not in state.grants and each != name
        ]
        old: Changes = {key: None for each in over for key in fencing.dropping(state.book, fencing.of_pool(each))}
        _write(remote, state, wanted, token, old | changes)


def forget(remote: Remote, state: AggregateState, server_id: str) -> None:
    """Forget the tokens of a deleted server."""
    changes = fencing.dropping(state.book, fencing.of_server(server_id))
    if changes:
        aggregates.set_metadata(remote, state.pools[BOOK], changes)


def _write(remote: Remote, state: AggregateState, wanted: list[str], token: int, changes: Changes) -> None:
    page = aggregates.ensure(remote, state, BOOK)
    # It has no hosts, so that no scheduler has to consider the aggregate.
    owner: Changes = {} if OWNER in page.metadata else {OWNER: NOBODY}
    fencing.check(aggregates.set_metadata(remote, page, owner | changes), wanted, token)


def _expired_servers(remote: Remote, state: AggregateState, token: int) -> Changes:
    """Return the changes that forget deleted servers: of a few, others with each token."""
    known = fencing.servers(state.book)
    start = token % len(known) if known else 0
    gone = [each for each in (known[start:] + known[:start])[:LOOKED_FOR] if servers.find(remote, each) is None]
    return {key: None for each in gone for key in fencing.dropping(state.book, fencing.of_server(each))}
