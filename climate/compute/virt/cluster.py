"""One compute service over many nodes: the nodes of a file, each with the driver it names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.host import NodeSpec
from climate.compute.virt import Guest, State, VirtDriver


@dataclass(frozen=True)
class ClusterDriver:
    """Hands each verb to the member that works on the guest's node; the nodes are read anew each time."""

    read_nodes: Callable[[], Sequence[NodeSpec]]
    members: Mapping[str, VirtDriver]

    def nodes(self) -> Sequence[NodeSpec]:
        return [spec for spec in self.read_nodes() if spec.driver in self.members]

    def remembers(self, node: str) -> bool:
        spec = self._spec(node)
        return spec is not None and self.members[spec.driver].remembers(node)

    def hold(self, guest: Guest) -> None:
        self._member(guest).hold(guest)

    def run(self, guest: Guest) -> None:
        self._member(guest).run(guest)

    def stop(self, guest: Guest) -> None:
        self._member(guest).stop(guest)

    def suspend(self, guest: Guest) -> None:
        self._member(guest).suspend(guest)

    def resume(self, guest: Guest) -> None:
        self._member(guest).resume(guest)

    def snapshot(self, guest: Guest, target: Path) -> None:
        self._member(guest).snapshot(guest, target)

    def delete(self, server_id: str) -> None:
        # The node may be gone from the file: whoever has anything of the guest clears it away.
        for member in self.members.values():
            member.delete(server_id)

    def states(self) -> Mapping[str, State]:
        return {server_id: state for member in self.members.values() for server_id, state in member.states().items()}

    def console(self, guest: Guest, lines: int | None) -> str:
        return self._member(guest).console(guest, lines)

    def _member(self, guest: Guest) -> VirtDriver:
        spec = self._spec(guest.node)
        if spec is None:
            raise VirtError(f"The resource {guest.node} does not exist")
        return self.members[spec.driver]

    def _spec(self, node: str) -> NodeSpec | None:
        return next((spec for spec in self.nodes() if spec.name == node), None)
