"""In-memory driver for load tests and unit tests: guests exist only in this object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.models.node import NodeSpec
from climate.compute.virt import Guest, State, Wiring
from climate.compute.virt.guest_kinds import Kind, of_programs
from climate.compute.virt.live_migrator import LiveMigrator


@dataclass
class MemoryDriver:
    """Driver that keeps the state of its guests in memory; guests of nodes in `broken` cannot be built."""

    specs: Sequence[NodeSpec] = ()
    broken: set[str] = field(default_factory=set)
    wiring_mode: Wiring = Wiring.NONE
    guests: dict[str, State] = field(default_factory=dict)
    rescued: set[str] = field(default_factory=set)
    """Ids of the guests that run from another disk than their own."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """(method, server id) of every call, in order."""

    def nodes(self) -> Sequence[NodeSpec]:
        return self.specs

    def trouble(self) -> str | None:
        return None

    def kinds(self) -> tuple[Kind, ...]:
        return of_programs("fake")

    def wiring(self, node: str) -> Wiring:
        return self.wiring_mode

    def host_netns(self, node: str) -> str | None:
        return next((spec.netns for spec in self.specs if spec.name == node), None)

    def knows_guests(self, node: str) -> bool:
        return False

    def prepare(self, guest: Guest) -> None:
        self._create("prepare", guest, State.PREPARED)

    def run(self, guest: Guest) -> None:
        self._create("rescue" if guest.rescued else "run", guest, State.RUNNING)
        if guest.rescued:
            self.rescued.add(guest.id)
        else:
            self.rescued.discard(guest.id)

    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        self._set("stop", guest, State.DEAD)
        self.rescued.discard(guest.id)

    def pause(self, guest: Guest) -> None:
        self._set("pause", guest, State.PAUSED)

    def unpause(self, guest: Guest) -> None:
        self._set("unpause", guest, State.RUNNING)

    def suspend(self, guest: Guest) -> None:
        self._set("suspend", guest, State.SUSPENDED)

    def resume(self, guest: Guest) -> None:
        self._set("resume", guest, State.RUNNING)

    def rewire(self, guest: Guest) -> None:
        self.calls.append(("rewire", guest.id))

    def snapshot(self, guest: Guest, target: Path) -> None:
        self.calls.append(("snapshot", guest.id))
        target.write_text(f"{guest.name}\n", encoding="utf-8")

    def delete(self, server_id: str) -> None:
        self.calls.append(("delete", server_id))
        self.guests.pop(server_id, None)
        self.rescued.discard(server_id)

    def states(self) -> Mapping[str, State]:
        return {}

    def live(self, node: str) -> LiveMigrator | None:
        return None

    def clean_up(self) -> None:
        """Do nothing: there are no logs."""

    def console(self, guest: Guest, lines: int | None) -> str:
        return f"climate: {guest.name} is {self.guests.get(guest.id, State.DEAD).value}\n"

    def _create(self, verb: str, guest: Guest, state: State) -> None:
        if guest.node in self.broken:
            raise VirtError(f"node {guest.node} cannot make a server")
        self._set(verb, guest, state)

    def _set(self, verb: str, guest: Guest, state: State) -> None:
        self.calls.append((verb, guest.id))
        self.guests[guest.id] = state
