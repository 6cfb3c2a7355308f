"""The rounds of a cluster: what runs where, restarts after a member has failed, and moves for balance.

The lock of a server is only tried: who works on it has the last word, and there is a next round.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import structlog

from climate.compute.errors import VirtError
from climate.compute.virt import State
from climate.compute.virt.hypervisor_cluster.cluster import Cluster
from climate.compute.virt.hypervisor_cluster.ledger import KEPT, LOST, Entry, Place
from climate.compute.virt.hypervisor_cluster.member import Member
from climate.compute.virt.hypervisor_cluster.rooms import Move, balance

_RESTARTED = frozenset({State.RUNNING, State.PAUSED})
"""States of servers that are started again on another member; the memory of the others is lost with theirs."""

log = structlog.get_logger("climate.compute.virt")


def state_on(member: Member, entry: Entry) -> State:
    """Return what a member finds of a server; of what members do not remember, what was last made of it."""
    found = member.driver.states()
    if member.driver.remembers(member.spec.name):
        return found.get(entry.guest.id, State.DEAD)
    return found.get(entry.guest.id, entry.state)


def states(cluster: Cluster) -> Mapping[str, State]:
    """Return what is found of all servers of a cluster; of those whose member does not answer, what was last seen."""
    found = _found(cluster)
    told: dict[str, State] = {}
    for server_id, entry in cluster.ledger.entries().items():
        there = found.get(entry.place.machine)
        if there is None or entry.starts:
            told[server_id] = entry.state
        elif server_id in there:
            told[server_id] = there[server_id]
    return told


def tend(cluster: Cluster, told: dict[str, str]) -> None:
    """Look after the servers of a cluster once; what goes wrong with one of them is logged, once."""
    found = _found(cluster)
    for server_id in cluster.ledger.entries():
        try:
            _tend_one(cluster, server_id, found)
            told.pop(server_id, None)
        except VirtError as error:
            if told.get(server_id) != str(error):
                told[server_id] = str(error)
                log.warning("a server of a cluster waits", server=server_id, reason=str(error))
    _clear(cluster, found)
    for move in _moves(cluster):
        _move(cluster, move)


def _tend_one(cluster: Cluster, server_id: str, found: Mapping[str, Mapping[str, State]]) -> None:
    with cluster.ledger.holding(server_id, wait=False) as held:
        entry = cluster.ledger.get(server_id) if held else None
        if entry is not None:
            _settle(cluster, entry, found)


def _found(cluster: Cluster) -> dict[str, Mapping[str, State]]:
    """Machine -> what is found there, of the machines that answer."""
    found: dict[str, Mapping[str, State]] = {}
    for member in cluster.members.values():
        if member.machine not in found and cluster.trouble(member) is None:
            with suppress(VirtError):
                found[member.machine] = member.driver.states()
    return found


def _settle(cluster: Cluster, entry: Entry, found: Mapping[str, Mapping[str, State]]) -> None:
    """Bring one server where it should be.  VirtError when that must wait."""
    if entry.leaves is not None:
        _finish(cluster, entry)
    elif not cluster.works(entry.place):
        _restart(cluster, entry)
    elif entry.starts:
        _start(cluster, entry)
    else:
        _leave(cluster, _seen(cluster, entry, found))


def _seen(cluster: Cluster, entry: Entry, found: Mapping[str, Mapping[str, State]]) -> Entry:
    """Return the entry with the state that its server is in; it is looked at again where it seems to have changed."""
    there = found.get(entry.place.machine)
    if there is None or there.get(entry.guest.id) is entry.state:
        return entry
    state = state_on(cluster.host(entry), entry)
    if state is entry.state:
        return entry
    seen = replace(entry, state=state)
    cluster.ledger.put(seen)
    return seen


def _leave(cluster: Cluster, entry: Entry) -> None:
    """Bring a server to another member of its machine when its own has left the cluster, or is in maintenance."""
    if not _must_go(cluster, entry.place):
        return
    target = cluster.moved(entry, within=entry.place.machine)
    if target is None:
        raise VirtError("its member takes no servers any more, and no other of its machine has room for it")
    cluster.arrived(target)
    _tell(entry, target, "its member takes no servers any more")


def _must_go(cluster: Cluster, place: Place) -> bool:
    """Whether a member has left the cluster, or is in maintenance."""
    member = cluster.members.get(place.member)
    return member is None or member.spec.maintenance


def _restart(cluster: Cluster, entry: Entry) -> None:
    """Bring a server of a failed member to another one: one that ran is started, one that waits is prepared.

    Any other one goes where its disk is found.  Where that is on the failed member only, the server is
    there until the member is back.
    """
    keepers = cluster.keepers(entry.place)
    if not cluster.terms.restart or not (keepers or entry.state in (*_RESTARTED, State.PREPARED)):
        return
    target = cluster.moved(entry)
    if target is None:
        which = "no other that finds its disk" if keepers else "no other"
        raise VirtError(f"its member has failed, and {which} has room for it")
    try:
        settled = cluster.arrived(target)
    except VirtError:
        cluster.ledger.put(entry)  # it stays where it may be running
        raise
    _tell(entry, settled, "its member has failed")
    if settled.starts:
        _start(cluster, settled)


def _finish(cluster: Cluster, entry: Entry) -> None:
    """Go on with a move that a worker has begun and not ended."""
    if entry.leaves is not None and cluster.works(entry.leaves):
        if entry.leaves.machine != entry.place.machine:
            # It has come back meanwhile.
            cluster.ledger.put(replace(entry, place=entry.leaves, leaves=None, starts=False, keeps=False))
            return
        cluster.arrived(entry)
        return
    settled = cluster.arrived(entry)
    if settled.starts:
        _start(cluster, settled)


def _start(cluster: Cluster, entry: Entry) -> None:
    """Make of a server on its new member what it was on the old one; what cannot be is shut off.

    It begins from its disk where the member finds that, and else from its image.
    """
    member = cluster.host(entry)
    guest = replace(entry.guest, node=member.spec.name)
    state = State.PREPARED if entry.state is State.PREPARED else State.RUNNING
    kept = entry.keeps and guest.id in member.driver.states()
    restarted = "" if state is State.PREPARED else KEPT if kept else LOST
    settled = replace(entry, starts=False, keeps=False, restarted=restarted)
    try:
        if not entry.keeps:
            member.driver.delete(guest.id)  # an old disk of an earlier stay is not the one that it had
        member.driver.prepare(guest) if state is State.PREPARED else member.driver.run(guest)
    except VirtError:
        cluster.ledger.put(replace(settled, state=State.DEAD))
        raise
    cluster.ledger.put(replace(settled, state=state))


def _clear(cluster: Cluster, found: Mapping[str, Mapping[str, State]]) -> None:
    """Take away what a member that has come back still has of servers that are on another machine now."""
    for machine, there in found.items():
        member = next(one for one in cluster.members.values() if one.machine == machine)
        for server_id in there:
            with suppress(VirtError):
                _clear_one(cluster, member, server_id)


def _clear_one(cluster: Cluster, member: Member, server_id: str) -> None:
    with cluster.ledger.holding(server_id, wait=False) as held:
        entry = cluster.ledger.get(server_id) if held else None
        if entry is None or entry.leaves is not None or entry.place.machine == member.machine:
            return
        if member.spec.name not in cluster.keepers(entry.place):  # else it is the disk that the server has now
            member.driver.delete(server_id)
            log.info("what a member had left of a server is gone", server=server_id)


def _moves(cluster: Cluster) -> Iterator[Move]:
    """The moves for balance between members of one machine each: nothing is stopped or carried for balance."""
    entries = cluster.ledger.entries()
    rooms = cluster.rooms(entries)
    for machine in sorted({one.machine for one in cluster.open_members()}):
        here = [room for room in rooms if cluster.members[room.member].machine == machine]
        names = {room.member for room in here}
        servers = {
            server_id: (entry.place.member, entry.size)
            for server_id, entry in entries.items()
            if entry.place.member in names and entry.leaves is None
        }
        yield from balance(here, servers, cluster.terms.balance_percent)


def _move(cluster: Cluster, move: Move) -> None:
    with cluster.ledger.holding(move.server_id, wait=False) as held, cluster.ledger.locked():
        entry = cluster.ledger.get(move.server_id) if held else None
        if entry is None or entry.place.member != move.source:
            return
        room = next((room for room in cluster.rooms() if room.member == move.target), None)
        if room is not None and room.free.holds(entry.size):
            moved = replace(entry, place=Place(move.target, cluster.members[move.target].machine))
            cluster.ledger.put(moved)
            _tell(entry, moved, "its member has more to do than others")


def _tell(before: Entry, after: Entry, why: str) -> None:
    where = {"source": before.place.member, "target": after.place.member}
    log.info("a server of a cluster moves", server=after.guest.id, why=why, **where)
