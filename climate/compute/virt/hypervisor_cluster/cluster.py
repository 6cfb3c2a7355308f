"""State of one cluster: total capacity of its members, and the placement of its servers.

Capacity is allocated in the ledger under its lock before a member is called, so two processes never allocate the same
capacity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from climate.compute.clusters.cluster_spec import ClusterSpec
from climate.compute.errors import VirtError
from climate.compute.models.node import NodeDefaults, NodeSpec
from climate.compute.virt import Guest, State
from climate.compute.virt.hypervisor_cluster.member import Member
from climate.compute.virt.hypervisor_cluster.member_capacity import Limits, Room, Size, choose
from climate.compute.virt.hypervisor_cluster.member_capacity import size_of as size_of_member
from climate.compute.virt.hypervisor_cluster.server_placements import Entry, Place, ServerPlacements, size_of
from climate.compute.virt.live_migrator import Limits as LiveLimits
from climate.sealed_secrets import Vault

STATS = "cluster"
"""Statistics of a cluster's node: capacity per member, for the scheduler's `contiguous_room`, and its members."""

log = structlog.get_logger("climate.compute.virt")


@dataclass(frozen=True)
class Cluster:
    """Snapshot of a cluster: its entry, its members, and its ledger."""

    spec: NodeSpec
    members: Mapping[str, Member]
    placements: ServerPlacements
    limits: Limits
    live_limits: LiveLimits = field(default_factory=LiveLimits)
    """Limits of live migrations between machines."""
    reasons: dict[str, str | None] = field(default_factory=dict)
    """Machine -> why its members do not work, cached for this snapshot."""
    silent: set[str] = field(default_factory=set)
    """Machines that left an order of this snapshot without an answer; they get no server."""
    vault: Vault = field(default_factory=Vault.of_this_process)
    """Seals the keys of live migrations in the ledger."""

    @property
    def terms(self) -> ClusterSpec:
        """Return the rules for moves of servers."""
        return self.spec.cluster or ClusterSpec(())

    def open_members(self) -> list[Member]:
        """Return the members that accept servers: they work, answer, and are not in maintenance."""
        answering = [one for one in self.members.values() if one.machine not in self.silent]
        return [one for one in answering if not one.spec.maintenance and self.trouble(one) is None]

    def trouble(self, member: Member) -> str | None:
        """Return why a member does not work; each machine is asked once."""
        if member.machine not in self.reasons:
            self.reasons[member.machine] = member.trouble()
        return self.reasons[member.machine]

    def rooms(self, entries: Mapping[str, Entry] | None = None) -> list[Room]:
        """Return the capacity of the members that accept servers, in the order of their entries."""
        known = self.placements.entries() if entries is None else entries
        taken: dict[str, Size] = {}
        for entry in known.values():
            arriving = [entry.moving.other] if entry.moving is not None and entry.moving.sent is None else []
            for place in (entry.place, *arriving):
                taken[place.member] = taken.get(place.member, Size()) + entry.size
        sizes = [(one.spec.name, size_of_member(one.spec)) for one in self.open_members()]
        return [Room(name, has, self.limits.promised(has), taken.get(name, Size())) for name, has in sizes]

    def described(self, defaults: NodeDefaults) -> NodeSpec:
        """Return the node of the cluster: the sum of its members, and the free capacity of each."""
        entries = self.placements.entries()
        rooms = self.rooms(entries)
        has = sum((room.has for room in rooms), start=Size())
        limits, members = self.limits, len(rooms)
        reserved = limits.reserved_ram_mb * members
        stats = {
            "members": members,
            "taken_ram_mb": sum(entry.size.ram_mb for entry in entries.values()) + reserved,
            "slots": [[room.free.vcpus, room.free.ram_mb, room.free.disk_gb] for room in rooms],
        }
        return replace(
            self.spec,
            vcpus=has.vcpus,
            memory_mb=has.ram_mb,
            local_gb=has.disk_gb,
            ram_ratio=limits.ram_ratio,
            cpu_ratio=limits.cpu_ratio,
            disk_ratio=limits.disk_ratio,
            reserved_ram_mb=reserved,
            reserved_disk_mb=limits.reserved_disk_mb * members,
            stats={**self.spec.stats, STATS: stats},
        )

    def host(self, entry: Entry) -> Member:
        """Return the member of a server. Raise VirtError if it cannot be reached."""
        member = self.at(entry.place)
        reason = "it has left the cluster" if member is None else self.trouble(member)
        if member is None or reason is not None:
            raise VirtError(f"the cluster member of server {entry.guest.id} cannot be reached: {reason}")
        return member

    def at(self, place: Place) -> Member | None:
        """Return the member at a location; if it left the cluster, another one on its machine."""
        own = self.members.get(place.member)
        if own is not None and own.machine == place.machine:
            return own
        return next((one for one in self.members.values() if one.machine == place.machine), None)

    def works(self, place: Place) -> bool:
        """Return whether the machine at a location can be reached."""
        member = self.at(place)
        return member is not None and self.trouble(member) is None

    def keepers(self, place: Place) -> frozenset[str]:
        """Return the members on other machines that can reach the disks at a location."""
        own = self.at(place)
        disks = "" if own is None else own.disks
        others = {name: one for name, one in self.members.items() if one.machine != place.machine}
        return frozenset(name for name, one in others.items() if disks and one.disks == disks)

    def takes(self, guest: Guest) -> Entry:
        """Return the entry of a server before its preparation or start, on a member with room for it.

        It keeps its member if that works and has room; the caller holds its lock. Raise VirtError if no member has
        room, or the server may still run on a failed member.
        """
        with self.placements.locked():
            entries = self.placements.entries()
            before = entries.pop(guest.id, None)
            entry = self._placed(guest, before, self.rooms(entries))
            self.placements.write(entry)
        return self.arrived(entry)

    def moved(self, entry: Entry, *, within: str | None = None) -> Entry | None:
        """Return the entry of a server on another member with allocated capacity; None if none has room.

        The server is not ended on the old member: see `arrived`. `within`: only members of this machine. A server whose
        disk is shared moves only to members that can reach the disk.
        """
        keepers = self.keepers(entry.place) if within is None else frozenset()
        reach = keepers if entry.state is not State.PREPARED else frozenset()
        with self.placements.locked():
            entries = self.placements.entries()
            entries.pop(entry.guest.id, None)
            own = entry.place
            rooms = self._rooms_elsewhere(own, entries, within)
            room = choose([one for one in rooms if one.member in reach] if reach else rooms, entry.size)
            if room is None:
                return None
            starts = not self.works(own) and entry.state not in (State.DEAD, State.SUSPENDED)
            keeps = room.member in keepers
            leaves = entry.leaves or own
            target = replace(entry, place=self._place(room), leaves=leaves, starts=starts, keeps=keeps)
            self.placements.write(target)
        return target

    def _rooms_elsewhere(self, own: Place, entries: Mapping[str, Entry], within: str | None) -> list[Room]:
        """Return the capacity of other members than that of a location; `within`: only of this machine."""
        rooms = [room for room in self.rooms(entries) if room.member != own.member]
        return [room for room in rooms if within in (None, self.members[room.member].machine)]

    def rested(self, entry: Entry) -> Entry | None:
        """Return the entry of a server without a process on another member that reaches its disk; None: there is none.

        Nothing is copied or ended for that.
        """
        keepers = self.keepers(entry.place)
        with self.placements.locked():
            room = choose([room for room in self.rooms() if room.member in keepers], entry.size)
            if room is None:
                return None
            left = tuple(dict.fromkeys((*entry.left, entry.place.machine)))
            target = replace(entry, place=self._place(room), left=left)
            self.placements.write(target)
        return target

    def arrived(self, entry: Entry) -> Entry:
        """Return the entry once the server certainly runs only on its member; the caller holds its lock.

        Raise VirtError while that is uncertain; the server is then not started anywhere.
        """
        if entry.leaves is None:
            return entry
        if entry.leaves.machine != entry.place.machine or not self.works(entry.leaves):
            source = self.at(entry.leaves)
            if source is None:
                raise VirtError(f"server {entry.guest.id} may still run on a failed cluster member")
            source.fence(replace(entry.guest, node=entry.leaves.member))
        left = (*entry.left, entry.leaves.machine) if entry.leaves.machine != entry.place.machine else entry.left
        settled = replace(entry, leaves=None, left=tuple(dict.fromkeys(left)))
        self.placements.write(settled)
        return settled

    def _placed(self, guest: Guest, before: Entry | None, rooms: Sequence[Room]) -> Entry:
        """Return the new entry of a server."""
        size = size_of(guest)
        if before is not None and self._stays(before, size, rooms):
            return replace(before, guest=guest)
        room = choose(rooms if before is None else self._reachable(before, rooms), size)
        if room is None:
            raise VirtError(
                f"no member of the cluster has {guest.ram_mb} MB of memory, {guest.vcpus} VCPUs and "
                f"{guest.disk_gb} GB of disk free in one piece"
            )
        if before is None:
            return Entry(guest, self._place(room), State.DEAD)
        return replace(before, guest=guest, place=self._place(room), leaves=before.leaves or before.place)

    def _stays(self, before: Entry, size: Size, rooms: Sequence[Room]) -> bool:
        """Return whether a server of this size stays where it is."""
        own = next((room for room in rooms if room.member == before.place.member), None)
        return own.free.holds(size) if own is not None else self.works(before.place) and before.size == size

    def _reachable(self, before: Entry, rooms: Sequence[Room]) -> list[Room]:
        """Return the rooms where the disk of a server is: on its machine, or if that failed, where it is kept too."""
        if self.works(before.place):
            return [room for room in rooms if self.members[room.member].machine == before.place.machine]
        if before.state is State.PREPARED:
            return list(rooms)
        keepers = self.keepers(before.place)
        if not keepers:
            self.host(before)  # the disk exists only there
        return [room for room in rooms if room.member in keepers]

    def _place(self, room: Room) -> Place:
        return Place(room.member, self.members[room.member].machine)
