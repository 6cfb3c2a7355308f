"""Room on the members of a cluster: which member takes a server, and which servers move for balance.

The rules, all of them over memory first, as it is what members run out of:

- A server goes to a member that has room for it in one piece, and of those to
  the one with the greatest share of its memory free; of equals, to the first by name.
- A server moves from the member with the greatest share promised to the one with
  the least, when these shares differ by more than a threshold, and differ less afterwards.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.models.node import NodeDefaults, NodeSpec

MOVES = 10
"""So many servers move for balance in one round at most."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a server takes, or a member has.  MB of memory, GB of disk."""

    vcpus: int = 0
    ram_mb: int = 0
    disk_gb: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.vcpus + other.vcpus, self.ram_mb + other.ram_mb, self.disk_gb + other.disk_gb)

    def __sub__(self, other: "Size") -> "Size":
        return Size(self.vcpus - other.vcpus, self.ram_mb - other.ram_mb, self.disk_gb - other.disk_gb)

    def holds(self, other: "Size") -> bool:
        """Whether the other one fits into this one."""
        left = self - other
        return min(left.vcpus, left.ram_mb, left.disk_gb) >= 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How often the room of each member may be promised, and the MB that each keeps for itself."""

    ram_ratio: float
    cpu_ratio: float
    disk_ratio: float
    reserved_ram_mb: int
    reserved_disk_mb: int

    @staticmethod
    def of(spec: NodeSpec, defaults: NodeDefaults) -> "Limits":
        """Return the limits that the entry of a cluster names, or the defaults."""

        def chosen(name: str) -> float:
            said = getattr(spec, name)
            return float(getattr(defaults, name) if said is None else said)

        ratios = (chosen("ram_ratio"), chosen("cpu_ratio"), chosen("disk_ratio"))
        return Limits(*ratios, int(chosen("reserved_ram_mb")), int(chosen("reserved_disk_mb")))

    def promised(self, has: Size) -> Size:
        """Return what may be promised of a member of this size, in all."""
        return Size(
            int(has.vcpus * self.cpu_ratio),
            int(has.ram_mb * self.ram_ratio) - self.reserved_ram_mb,
            (int(has.disk_gb * 1024 * self.disk_ratio) - self.reserved_disk_mb) // 1024,
        )


@dataclass(frozen=True, slots=True)
class Room:
    """A member that servers can be put on: what it has, what may be promised of it, and what is."""

    member: str
    has: Size
    most: Size
    taken: Size = Size()

    @property
    def free(self) -> Size:
        """The largest server that fits; one server never gets more than the member has, whatever the ratios."""
        left = self.most - self.taken
        return Size(
            min(left.vcpus, self.has.vcpus), min(left.ram_mb, self.has.ram_mb), min(left.disk_gb, self.has.disk_gb)
        )

    @property
    def share(self) -> float:
        """The share of the memory that is promised."""
        return self.taken.ram_mb / self.most.ram_mb if self.most.ram_mb > 0 else 1.0

    def with_more(self, size: Size) -> "Room":
        return replace(self, taken=self.taken + size)

    def with_less(self, size: Size) -> "Room":
        return replace(self, taken=self.taken - size)


@dataclass(frozen=True, slots=True)
class Move:
    """A server that leaves a member for another one."""

    server_id: str
    source: str
    target: str


def size_of(member: MemberSpec) -> Size:
    """Return what a member has."""
    return Size(member.vcpus, member.memory_mb, member.local_gb)


def choose(rooms: Sequence[Room], size: Size) -> Room | None:
    """Return the member that a server of this size goes to; None where no member has room for it in one piece."""
    fitting = [room for room in rooms if room.free.holds(size)]
    return min(fitting, key=lambda room: (room.share, room.member), default=None)


def balance(rooms: Sequence[Room], servers: Mapping[str, tuple[str, Size]], percent: int) -> Iterator[Move]:
    """Yield the moves that bring the members' shares within `percent` of each other, as far as they can.

    `servers`: id -> the member that it is on, and its size; those that must stay are not among them.
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
    """Return the server whose move makes the two members most alike; None where none does."""
    found: list[tuple[float, str]] = []
    for server_id, (member, size) in where.items():
        if member == high.member and size.ram_mb and low.free.holds(size):
            after = abs(high.with_less(size).share - low.with_more(size).share)
            found.append((after, server_id))
    best = min(found, default=None)
    return best[1] if best is not None and best[0] < high.share - low.share else None
