"""Live migrations of servers between the machines of a cluster, without a task and without the scheduler.

A round of the cluster continues a migration for some seconds; QEMU copies on in between. The ledger has each step
before the next one begins, so a round of another worker continues where one ended. Until the source has sent
everything, the server belongs to it, and has capacity on both members; from then on it belongs to the destination.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog

from climate.compute.errors import Unanswered, VirtError
from climate.compute.virt import Guest, State
from climate.compute.virt.hypervisor_cluster.cluster import Cluster
from climate.compute.virt.hypervisor_cluster.member import Member
from climate.compute.virt.hypervisor_cluster.member_capacity import Move, balance, choose
from climate.compute.virt.hypervisor_cluster.server_placements import REST_SECONDS, Entry, LiveMove, Place
from climate.compute.virt.live_migrator import LiveMigrator, MigrationCommand, Progress, opened, opened_result, sealed

DISK_SECONDS, MEMORY_SECONDS = 10.0, 40.0
"""Seconds of one round for a migration: while its disk is copied, and in all once its memory is.

The guest may stand still until the next round if one ends in its last moments, so there is more time for the memory.
"""

_ALIVE = frozenset({State.RUNNING, State.PAUSED})

log = structlog.get_logger("climate.compute.virt")


class RoundOver(Exception):
    """The time of this round is over; the migration goes on in the next one."""


@dataclass
class Watcher:
    """Watch of a live migration that stops the sender at the end of its round."""

    since: float = field(default_factory=time.monotonic)

    def __call__(self, progress: Progress) -> MigrationCommand:
        """Return that the sender may go on; raise RoundOver when it has had its time."""
        if time.monotonic() - self.since > (MEMORY_SECONDS if progress.memory_total else DISK_SECONDS):
            raise RoundOver
        return MigrationCommand.GO_ON


def abort(progress: Progress) -> MigrationCommand:
    """Return the order to abort."""
    return MigrationCommand.ABORT


def can_leave(cluster: Cluster, entry: Entry) -> bool:
    """Return whether a server could be migrated live: it runs, its driver can do that, and it does not rest."""
    source = cluster.members.get(entry.place.member) or cluster.at(entry.place)
    settled = entry.leaves is None and entry.moving is None and not entry.starts
    ready = settled and entry.state in _ALIVE and not entry.is_resting(time.time())
    if not ready or source is None or is_silent(cluster, entry.place):
        return False
    return _live(source) is not None and cluster.trouble(source) is None


def rest(cluster: Cluster, entry: Entry) -> Entry:
    """Record that a server is not moved for a while: its member may yet carry out an order that it did not answer."""
    resting = replace(entry, rests_until=time.time() + REST_SECONDS)
    cluster.placements.write(resting)
    return resting


def is_busy(cluster: Cluster) -> bool:
    """Return whether a server of the cluster is being migrated: one is at a time.

    A migration that waits for a member without an answer does not count.
    """
    moves = ((entry.place, entry.moving) for entry in cluster.placements.entries().values() if entry.moving is not None)
    return any(not move.unanswered and not is_silent(cluster, place, move.other) for place, move in moves)


def is_silent(cluster: Cluster, *places: Place) -> bool:
    """Return whether a machine of these locations left an order of this round without an answer."""
    return any(place.machine in cluster.silent for place in places)


def for_balance(cluster: Cluster) -> Move | None:
    """Return the next move for balance between two machines; None if there is none."""
    entries = cluster.placements.entries()
    movable = {one: (entry.place.member, entry.size) for one, entry in entries.items() if can_leave(cluster, entry)}
    if not movable or is_busy(cluster):
        return None
    move = next(balance(cluster.rooms(entries), movable, cluster.terms.balance_percent), None)
    if move is None or cluster.members[move.source].machine == cluster.members[move.target].machine:
        return None
    return move


def begin(cluster: Cluster, entry: Entry, target: str | None = None) -> Entry | None:
    """Allocate capacity on another machine, on the member `target` or any, and record the migration.

    None if no member takes the server now. The caller holds the server's lock.
    """
    with cluster.placements.locked():
        if not can_leave(cluster, entry) or is_busy(cluster):
            return None
        there = _targets(cluster, entry.place.machine, target)
        rooms = [room for room in cluster.rooms() if room.member in there]
        untried = [room for room in rooms if room.member not in entry.refused]
        room = choose(untried, entry.size)
        if room is None:
            entry, room = replace(entry, refused=()), choose(rooms, entry.size)
        if room is None:
            return None
        begun = replace(entry, moving=LiveMove(Place(room.member, there[room.member].machine)))
        cluster.placements.write(begun)
    return begun


def _targets(cluster: Cluster, machine: str, target: str | None) -> dict[str, Member]:
    """Return the members on other machines that take running guests; only `target`, if it is given."""
    return {
        name: one
        for name, one in cluster.members.items()
        if target in (None, name) and one.machine != machine and _live(one) is not None
    }


def advance(cluster: Cluster, entry: Entry, watch: Callable[[Progress], MigrationCommand] | None = None) -> Entry:
    """Continue a migration for a round; return the entry, which still has it if it is not over.

    Raise VirtError if it failed: the server then goes on at its member. The caller holds the server's lock.
    """
    try:
        return _advance(cluster, entry, watch)
    except Unanswered:
        _mark(cluster, entry.guest.id, unanswered=True)
        raise


def _advance(cluster: Cluster, entry: Entry, watch: Callable[[Progress], MigrationCommand] | None) -> Entry:
    move = entry.moving
    if move is None:
        return entry
    if move.sent is None:
        try:
            entry = _send(cluster, entry, move, watch or Watcher())
        except RoundOver:
            _mark(cluster, entry.guest.id, unanswered=False)
            return cluster.placements.get(entry.guest.id) or entry
        except Unanswered:
            raise
        except VirtError as error:
            drop(cluster, entry, rests=watch is not abort)
            raise VirtError(f"it cannot be moved to member {move.other.member}: {error}") from error
    return _settle(cluster, entry)


def _mark(cluster: Cluster, server_id: str, *, unanswered: bool) -> None:
    """Record whether the last order of a migration had an answer."""
    entry = cluster.placements.get(server_id)
    if entry is not None and entry.moving is not None and entry.moving.unanswered is not unanswered:
        cluster.placements.write(replace(entry, moving=replace(entry.moving, unanswered=unanswered)))


def ended(cluster: Cluster, entry: Entry) -> Entry:
    """Return the entry without a migration, before other work on the server: it stays unless it has left.

    Raise VirtError while that is uncertain. The caller holds the server's lock.
    """
    if entry.moving is None:
        return entry
    if not cluster.works(entry.place):
        return drop(cluster, entry)
    try:
        after = advance(cluster, entry, abort)
    except Unanswered:
        raise
    except VirtError:
        after = cluster.placements.get(entry.guest.id) or entry
    if after.moving is not None:
        raise VirtError(f"server {entry.guest.id} is being moved to another member of its cluster: try again")
    return after


def drop(cluster: Cluster, entry: Entry, *, rests: bool = False) -> Entry:
    """Record that a server stays at its member, and delete what waits for it elsewhere.

    A source that failed may have sent it already: then raise VirtError until the destination has deleted it.
    """
    if entry.moving is not None and entry.moving.sent is None:
        uncertain = entry.moving.arrangement is not None and not cluster.works(entry.place)
        try:
            _drop_waiting(cluster, entry, entry.moving.other)
        except VirtError as error:
            if uncertain:
                raise VirtError(f"it may run on member {entry.moving.other.member} already: {error}") from error
    stays = replace(entry, moving=None)
    if rests and entry.moving is not None:
        refused = (*entry.refused, entry.moving.other.member)
        stays = replace(stays, rests_until=time.time() + REST_SECONDS, refused=refused)
    cluster.placements.write(stays)
    return stays


def _drop_waiting(cluster: Cluster, entry: Entry, place: Place) -> None:
    target = cluster.at(place)
    reason = "it has left the cluster" if target is None else cluster.trouble(target)
    if target is None or reason is not None:
        raise VirtError(reason or "")
    _migrator(target).drop(entry.guest.id)


def _send(cluster: Cluster, entry: Entry, move: LiveMove, watch: Callable[[Progress], MigrationCommand]) -> Entry:
    """Send a server to its destination; return its entry there."""
    source, target = cluster.host(entry), cluster.at(move.other)
    reason = "it has left the cluster" if target is None else cluster.trouble(target)
    if move.arrangement is None:
        if target is None or reason is not None or watch is abort:
            raise VirtError(reason or "it was aborted")
        offer = _migrator(source).offer(_guest(entry, source))
        arrangement = _migrator(target).receive(_guest(entry, target), offer)
        move = replace(move, arrangement=sealed(cluster.vault, arrangement))
        entry = replace(entry, moving=move)
        cluster.placements.write(entry)
    # A destination that fails may have everything already: only the source knows.
    given = abort if reason is not None else watch
    arrangement = opened(cluster.vault, move.arrangement or {})
    sent = sealed(cluster.vault, _migrator(source).send(_guest(entry, source), arrangement, cluster.live_limits, given))
    settled = replace(entry, place=move.other, moving=replace(move, other=entry.place, sent=sent))
    cluster.placements.write(settled)
    return settled


def _settle(cluster: Cluster, entry: Entry) -> Entry:
    """Let a server that has arrived run, and delete what is left of it at its source."""
    move, member = entry.moving, cluster.host(entry)
    if move is None or move.arrangement is None:
        return entry
    try:
        _migrator(member).keep(_guest(entry, member), opened_result(cluster.vault, move.sent or {}))
    except Unanswered:
        raise
    except VirtError as error:  # its process has ended, and its disk is here: the next round sees its state
        log.error("moved server ended", server=entry.guest.id, reason=str(error))
    source = cluster.at(move.other)
    with suppress(VirtError):  # what remains is deleted in a later round
        if source is not None and cluster.trouble(source) is None:
            _migrator(source).clear(_guest(entry, source), opened_result(cluster.vault, move.arrangement))
    settled = replace(entry, moving=None, refused=())
    cluster.placements.write(settled)
    return settled


def _guest(entry: Entry, member: Member) -> Guest:
    return replace(entry.guest, node=member.spec.name)


def _live(member: Member) -> LiveMigrator | None:
    return member.driver.live(member.spec.name)


def _migrator(member: Member) -> LiveMigrator:
    live = _live(member)
    if live is None:
        raise VirtError(f"the driver of member {member.spec.name} cannot migrate running servers")
    return live
