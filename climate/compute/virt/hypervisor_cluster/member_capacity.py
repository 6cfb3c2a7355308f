"""Capacity of cluster members: placement of servers, and moves for balance.

Memory decides, because members run out of it first:

- A server is placed on a member with enough contiguous capacity; of those, on the one with the largest free share of
  memory; of equals, on the first by name.
- A server moves from the member with the largest allocated share to the one with the smallest. It moves if
  the shares differ by more than a threshold, and differ less afterwards.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.models.node import NodeDefaults, NodeSpec

MOVES = 10
"""Maximum number of moves for balance per round."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a server or a member: MB of memory, GB of disk."""

    vcpus: int = 0
    ram_mb: int = 0
    disk_gb: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.vcpus + other.vcpus, self.ram_mb + other.ram_mb, self.disk_gb + other.disk_gb)

    def __sub__(self, other: "Size") -> "Size":
        return Size(self.vcpus - other.vcpus, self.ram_mb - other.ram_mb, self.disk_gb - other.disk_gb)

    def holds(self, other: "Size") -> bool:
        """Return whether the other size fits into this one."""
        left = self - other
        return min(left.vcpus, left.ram_mb, left.disk_gb) >= 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Overcommit ratios of each member, and MB reserved on each."""

    ram_ratio: float
    cpu_ratio: float
    disk_ratio: float
    reserved_ram_mb: int
    reserved_disk_mb: int

    @staticmethod
    def of(spec: NodeSpec, defaults: NodeDefaults) -> "Limits":
        """Return the limits in the entry of a cluster, or the defaults."""

        def chosen(name: str) -> float:
            said = getattr(spec, name)
            return float(getattr(defaults, name) if said is None else said)

        ratios = (chosen("ram_ratio"), chosen("cpu_ratio"), chosen("disk_ratio"))
        return Limits(*ratios, int(chosen("reserved_ram_mb")), int(chosen("reserved_disk_mb")))

    def promised(self, has: Size) -> Size:
        """Return the allocatable capacity of a member of this size."""
        return Size(
            int(has.vcpus * self.cpu_ratio),
            int(has.ram_mb * self.ram_ratio) - self.reserved_ram_mb,
            (int(has.disk_gb * 1024 * self.disk_ratio) - self.reserved_disk_mb) // 1024,
        )


@dataclass(frozen=True, slots=True)
class Room:
    """Capacity of a member that accepts servers: its size, its limits, and its allocations."""

    member: str
    has: Size
    most: Size
    taken: Size = Size()

    @property
    def free(self) -> Size:
        """Return the largest server that fits, which never exceeds the member's size, whatever the ratios."""
        left = self.most - self.taken
        return Size(
            min(left.vcpus, self.has.vcpus), min(left.ram_mb, self.has.ram_mb), min(left.disk_gb, self.has.disk_gb)
        )

    @property
    def share(self) -> float:
        """Return the allocated share of the memory."""
        return self.taken.ram_mb / self.most.ram_mb if self.most.ram_mb > 0 else 1.0

    def with_more(self, size: Size) -> "Room":
        return replace(self, taken=self.taken + size)

    def with_less(self, size: Size) -> "Room":
        return replace(self, taken=self.taken - size)


@dataclass(frozen=True, slots=True)
class Move:
    """Move of a server from one member to another."""

    server_id: str
    source: str
    target: str


def size_of(member: MemberSpec) -> Size:
    """Return the size of a member."""
    return Size(member.vcpus, member.memory_mb, member.local_gb)


def choose(rooms: Sequence[Room], size: Size) -> Room | None:
    """Return the member for a server of this size; None if no member has enough contiguous capacity."""
    fitting = [room for room in rooms if room.free.holds(size)]
    return min(fitting, key=lambda room: (room.share, room.member), default=None)


def balance(rooms: Sequence[Room], servers: Mapping[str, tuple[str, Size]], percent: int) -> Iterator[Move]:
    """Yield moves that bring the members' shares within `percent` of each other, as far as possible.

    `servers`: id -> its member and size, without servers that must stay.
    """
    now = {room.member: room for room in rooms}
    where = dict(servers)
    for _ in range(MOVES if percent and len(now) > 1 else 0):
        order = sorted(now.values(), key=lambda room: (room.share, room.member))
        low, high = order[0], order[-1]
        if (high.share - low.share) * 100 <= percent:
            return
        server_id = _best(where, high, low)
        if server_id is None:
            return
        size = where[server_id][1]
        now[high.member], now[low.member] = high.with_less(size), low.with_more(size)
        where[server_id] = (low.member, size)
        yield Move(server_id, high.member, low.member)


def _best(where: Mapping[str, tuple[str, Size]], high: Room, low: Room) -> str | None:
    """Return the server whose move makes the two members most alike; None if there is none."""
    result: list[tuple[float, str]] = []
    for server_id, (member, size) in where.items():
        if member == high.member and size.ram_mb and low.free.holds(size):
            after = abs(high.with_less(size).share - low.with_more(size).share)
            result.append((after, server_id))
    best = min(result, default=None)
    return best[1] if best is not None and best[0] < high.share - low.share else None
