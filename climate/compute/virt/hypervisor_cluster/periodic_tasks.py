"""Periodic maintenance of a cluster: states, restarts after a member failed, and moves for balance.

Server locks are only tried. A server that another worker uses waits for the next round.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import structlog

from climate.compute.errors import Unanswered, VirtError
from climate.compute.virt import State
from climate.compute.virt.hypervisor_cluster import live_moves
from climate.compute.virt.hypervisor_cluster.cluster import Cluster
from climate.compute.virt.hypervisor_cluster.member import ConnectingDriver, Member
from climate.compute.virt.hypervisor_cluster.member_capacity import Move, balance
from climate.compute.virt.hypervisor_cluster.server_placements import KEPT, LOST, Entry, Place

_RESTARTED = frozenset({State.RUNNING, State.PAUSED})
"""States of servers that are restarted on another member; memory of other states would be lost."""

log = structlog.get_logger("climate.compute.virt")


def state_on(member: Member, entry: Entry) -> State:
    """Return the state of a server on a member; if the member does not keep states, the last recorded one."""
    states = member.driver.states()
    if member.driver.knows_guests(member.spec.name):
        return states.get(entry.guest.id, State.DEAD)
    return states.get(entry.guest.id, entry.state)


def states(cluster: Cluster) -> Mapping[str, State]:
    """Return the states of all servers of a cluster; if a member does not answer, the last known ones."""
    states = _member_states(cluster)
    result: dict[str, State] = {}
    for server_id, entry in cluster.placements.entries().items():
        there = states.get(entry.place.machine)
        if there is None or entry.starts or entry.moving is not None:
            result[server_id] = entry.state
        elif server_id in there:
            result[server_id] = there[server_id]
    return result


def run_round(cluster: Cluster, failures: dict[str, str]) -> None:
    """Run one round for the servers of a cluster; log each problem of a server once."""
    states = _member_states(cluster)
    for server_id in cluster.placements.entries():
        try:
            _process(cluster, server_id, states)
            failures.pop(server_id, None)
        except VirtError as error:
            if failures.get(server_id) != str(error):
                failures[server_id] = str(error)
                log.warning("server of a cluster not reconciled", server=server_id, reason=str(error))
    _clear(cluster, states)
    for move in _moves(cluster):
        _move(cluster, move)
    _move_live(cluster, failures)


def _process(cluster: Cluster, server_id: str, states: Mapping[str, Mapping[str, State]]) -> None:
    with cluster.placements.holding(server_id, wait=False) as held:
        entry = cluster.placements.get(server_id) if held else None
        if entry is not None:
            _settle(cluster, entry, states)


def _member_states(cluster: Cluster) -> dict[str, Mapping[str, State]]:
    """Return machine -> states found there, for machines that answer; the others are recorded as silent."""
    states: dict[str, Mapping[str, State]] = {}
    for member in cluster.members.values():
        if member.machine not in (states.keys() | cluster.silent) and cluster.trouble(member) is None:
            try:
                states[member.machine] = member.driver.states()
            except Unanswered:
                cluster.silent.add(member.machine)
            except VirtError:
                continue
    return states


def _settle(cluster: Cluster, entry: Entry, states: Mapping[str, Mapping[str, State]]) -> None:
    """Reconcile one server. Raise VirtError if it must wait."""
    if _waits(cluster, entry):
        raise VirtError("a member that it needs does not answer")
    if entry.moving is not None:
        entry = _continue(cluster, entry)
        if entry.moving is not None:
            return
    if entry.leaves is not None:
        _finish(cluster, entry)
    elif not cluster.works(entry.place):
        _restart(cluster, entry)
    elif entry.starts:
        _start(cluster, entry)
    else:
        _move_away(cluster, _with_state(cluster, entry, states))


def _waits(cluster: Cluster, entry: Entry) -> bool:
    """Return whether the next order for a server would go to a machine that does not answer."""
    places = [entry.place] if entry.starts else []
    if entry.moving is not None:
        places += [entry.place, entry.moving.other]
    return live_moves.is_silent(cluster, *places)


def _with_state(cluster: Cluster, entry: Entry, states: Mapping[str, Mapping[str, State]]) -> Entry:
    """Return the entry with the found state, which is read again if it changed."""
    there = states.get(entry.place.machine)
    if there is None or there.get(entry.guest.id) is entry.state:
        return entry
    state = state_on(cluster.host(entry), entry)
    if state is entry.state:
        return entry
    seen = replace(entry, state=state)
    cluster.placements.write(seen)
    return seen


def _continue(cluster: Cluster, entry: Entry) -> Entry:
    """Continue the live migration of a server; if its member failed, nothing of it remains."""
    if not cluster.works(entry.place):
        return live_moves.drop(cluster, entry)
    after = live_moves.advance(cluster, entry)
    if after.place != entry.place:
        _log_change(entry, after, "it was migrated live")
    return after


def _move_away(cluster: Cluster, entry: Entry) -> None:
    """Move a server to another member if its own left the cluster or is in maintenance.

    Within its machine nothing is stopped. To other machines a running server is migrated live, and one without a
    process goes where its disk is reachable.
    """
    if not _must_go(cluster, entry.place):
        return
    target = cluster.moved(entry, within=entry.place.machine)
    if target is not None:
        cluster.arrived(target)
    elif entry.state in _RESTARTED:
        begun = live_moves.begin(cluster, entry)
        if begun is not None:
            _continue(cluster, begun)
            return
        if live_moves.can_leave(cluster, entry) and live_moves.is_busy(cluster):
            return  # another server goes first
    elif not entry.is_resting(time.time()):
        target = cluster.rested(entry)
    if target is None:
        raise VirtError("its member does not accept servers, and no other takes it")
    _log_change(entry, target, "its member does not accept servers")


def _must_go(cluster: Cluster, place: Place) -> bool:
    """Return whether a member has left the cluster or is in maintenance."""
    member = cluster.members.get(place.member)
    return member is None or member.spec.maintenance


def _restart(cluster: Cluster, entry: Entry) -> None:
    """Restart a server of a failed member on another one: start it if it ran, prepare it if it was PREPARED.

    Servers in other states move only where their disk is reachable. Otherwise they stay until the failed member
    returns.
    """
    keepers = cluster.keepers(entry.place)
    if not cluster.terms.restart or not (keepers or entry.state in (*_RESTARTED, State.PREPARED)):
        return
    target = cluster.moved(entry)
    if target is None:
        which = "no other that can reach its disk" if keepers else "no other"
        raise VirtError(f"its member failed, and {which} has room for it")
    try:
        settled = cluster.arrived(target)
    except VirtError:
        cluster.placements.write(entry)  # it may still run there, so it stays
        raise
    _log_change(entry, settled, "its member failed")
    if settled.starts:
        _start(cluster, settled)


def _finish(cluster: Cluster, entry: Entry) -> None:
    """Continue a move that an interrupted worker began."""
    if entry.leaves is not None and cluster.works(entry.leaves):
        if entry.leaves.machine != entry.place.machine:
            # The old member has returned meanwhile.
            cluster.placements.write(replace(entry, place=entry.leaves, leaves=None, starts=False, keeps=False))
            return
        cluster.arrived(entry)
        return
    settled = cluster.arrived(entry)
    if settled.starts:
        _start(cluster, settled)


def _start(cluster: Cluster, entry: Entry) -> None:
    """Restore a server's earlier state on its new member; states that cannot be restored become shut off.

    The server keeps its disk if the member can reach it, and else is built from its image.
    """
    member = cluster.host(entry)
    guest = replace(entry.guest, node=member.spec.name)
    state = State.PREPARED if entry.state is State.PREPARED else State.RUNNING
    kept = entry.keeps and guest.id in member.driver.states()
    restarted = "" if state is State.PREPARED else KEPT if kept else LOST
    settled = replace(entry, starts=False, keeps=False, restarted=restarted)
    try:
        if not entry.keeps:
            member.driver.delete(guest.id)  # a disk of an earlier stay is outdated
        member.driver.prepare(guest) if state is State.PREPARED else member.driver.run(guest)
    except VirtError:
        cluster.placements.write(replace(settled, state=State.DEAD))
        raise
    cluster.placements.write(replace(settled, state=state))


def _clear(cluster: Cluster, states: Mapping[str, Mapping[str, State]]) -> None:
    """Delete servers from a member that returned, if they are on another machine now, and disconnect them there."""
    left = {server_id: entry.left for server_id, entry in cluster.placements.entries().items() if entry.left}
    for machine, there in states.items():
        member = next(one for one in cluster.members.values() if one.machine == machine)
        for server_id in sorted({*there, *(one for one, machines in left.items() if machine in machines)}):
            with suppress(VirtError):
                _clear_one(cluster, member, server_id)


def _clear_one(cluster: Cluster, member: Member, server_id: str) -> None:
    with cluster.placements.holding(server_id, wait=False) as held:
        entry = cluster.placements.get(server_id) if held else None
        if entry is None or entry.leaves is not None or entry.moving is not None:
            return
        if entry.place.machine != member.machine:
            _delete_from(cluster, member, entry)
        if member.machine in entry.left:
            cluster.placements.write(replace(entry, left=tuple(one for one in entry.left if one != member.machine)))


def _delete_from(cluster: Cluster, member: Member, entry: Entry) -> None:
    """Delete what a server left on a member; with shared storage only its interfaces, since the disk is in use."""
    if member.spec.name not in cluster.keepers(entry.place):
        member.driver.delete(entry.guest.id)
        log.info("outdated server deleted from a returned member", server=entry.guest.id)
    elif member.machine in entry.left and isinstance(member.driver, ConnectingDriver):
        member.driver.disconnect(entry.guest.id)


def _moves(cluster: Cluster) -> Iterator[Move]:
    """Return moves for balance between members of one machine, which need no stop and no copy."""
    entries = cluster.placements.entries()
    rooms = cluster.rooms(entries)
    for machine in sorted({one.machine for one in cluster.open_members()}):
        here = [room for room in rooms if cluster.members[room.member].machine == machine]
        names = {room.member for room in here}
        servers = {
            server_id: (entry.place.member, entry.size)
            for server_id, entry in entries.items()
            if entry.place.member in names and entry.leaves is None and entry.moving is None
        }
        yield from balance(here, servers, cluster.terms.balance_percent)


def _move(cluster: Cluster, move: Move) -> None:
    with cluster.placements.holding(move.server_id, wait=False) as held, cluster.placements.locked():
        entry = cluster.placements.get(move.server_id) if held else None
        if entry is None or entry.place.member != move.source or entry.moving is not None:
            return
        room = next((room for room in cluster.rooms() if room.member == move.target), None)
        if room is not None and room.free.holds(entry.size):
            moved = replace(entry, place=Place(move.target, cluster.members[move.target].machine))
            cluster.placements.write(moved)
            _log_change(entry, moved, "its member has more load than others")


def _move_live(cluster: Cluster, failures: dict[str, str]) -> None:
    """Begin a live migration for balance between two machines, if none is in progress; log a failure once."""
    move = live_moves.for_balance(cluster)
    if move is None:
        return
    with cluster.placements.holding(move.server_id, wait=False) as held:
        entry = cluster.placements.get(move.server_id) if held else None
        if entry is None or entry.place.member != move.source:
            return
        try:
            begun = live_moves.begin(cluster, entry, move.target)
            if begun is not None:
                _continue(cluster, begun)
        except VirtError as error:
            failures[move.server_id] = str(error)
            log.warning("server of a cluster not moved", server=move.server_id, reason=str(error))


def _log_change(before: Entry, after: Entry, why: str) -> None:
    where = {"source": before.place.member, "target": after.place.member}
    log.info("server of a cluster moved", server=after.guest.id, why=why, **where)
