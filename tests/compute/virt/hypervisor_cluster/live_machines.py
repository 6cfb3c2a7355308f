"""Machines that can die, and migrate running guests to each other."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from climate.compute.errors import VirtError
from climate.compute.virt import Guest, State
from climate.compute.virt.live_migrator import SECRETS, Limits, LiveMigrator, MigrationCommand, Progress, Watch
from tests.compute.virt.hypervisor_cluster.machines import Machine

KEY = "the key of a migration"
"""What only the two machines of a migration may read."""

RUNNING = frozenset({State.RUNNING, State.PAUSED})


class Dies(BaseException):
    """The end of a worker, which nothing in it catches."""


@dataclass
class Strikes:
    """How the next verbs of all drivers end: by which error, and whether after their effect."""

    ahead: list[tuple[type[BaseException] | None, bool]] = field(default_factory=list)

    def around(self, act: Callable[[], Any], *, whole: bool = False) -> Any:
        """Carry out a verb; `whole`: after a VirtError it has had no effect."""
        error, late = self.ahead.pop(0) if self.ahead else (None, False)
        late = late and not (whole and error is VirtError)
        answer = act() if error is None or late else None
        if error is not None:
            raise error("the end")
        return answer


@dataclass
class Host(Machine):
    """A machine that can die, and move running guests to others."""

    name: str = ""
    strikes: Strikes = field(default_factory=Strikes)
    others: dict[str, "Host"] = field(default_factory=dict)
    """The machines that guests can be moved to, by their names."""
    awaited: set[str] = field(default_factory=set)
    """Guests that wait for their memory here."""

    def live(self, node: str) -> LiveMigrator | None:
        return Migrator(self) if self.others else None

    def delete(self, server_id: str) -> None:
        super().delete(server_id)
        self.awaited.discard(server_id)

    def die(self) -> None:
        """Lose its power: no guest of it runs any more."""
        self.up = False
        self.guests.update({one: State.DEAD for one, state in self.guests.items() if state in RUNNING})

    def _set(self, verb: str, guest: Guest, state: State) -> None:
        self.strikes.around(lambda: super(Host, self)._set(verb, guest, state))


@dataclass
class Migrator:
    """The part of a machine in live migrations; memory and disk of a guest are where its entry is."""

    here: Host

    def offer(self, guest: Guest) -> Mapping[str, Any]:
        self.here._reached()
        if self.here.guests.get(guest.id) not in RUNNING:
            raise VirtError("the guest does not run")
        return self.here.strikes.around(lambda: {"from": self.here.name})  # type: ignore[no-any-return]

    def receive(self, guest: Guest, offer: Mapping[str, Any]) -> Mapping[str, Any]:
        self.here._reached()
        self.here.strikes.around(lambda: self.here.awaited.add(guest.id))
        return {**offer, "to": self.here.name, "shared": False, SECRETS: {"key": KEY}}

    def send(self, guest: Guest, arrangement: Mapping[str, Any], limits: Limits, watch: Watch) -> Mapping[str, Any]:
        self.here._reached()
        assert arrangement[SECRETS] == {"key": KEY}
        target = self.here.others[arrangement["to"]]
        self.here.strikes.around(lambda: self._hand_over(guest, target, watch), whole=True)
        return {}

    def keep(self, guest: Guest, sent: Mapping[str, Any]) -> None:
        self.here._reached()
        if guest.id not in self.here.guests:
            raise VirtError("no guest has arrived")
        self.here.strikes.around(lambda: self.here.awaited.discard(guest.id))

    def drop(self, server_id: str, *, spare_disk: bool = False) -> None:
        self.here._reached()
        if server_id in self.here.awaited:  # a guest that was sent and not kept ends as well
            self.here.awaited.discard(server_id)
            self.here.guests.pop(server_id, None)

    def clear(self, guest: Guest, arrangement: Mapping[str, Any]) -> None:
        """Nothing of it is here any more."""

    def waiting(self) -> Collection[str]:
        return self.here.awaited

    def _hand_over(self, guest: Guest, target: Host, watch: Watch) -> None:
        if guest.id in target.guests and guest.id not in self.here.guests:
            return  # by a sender that has died since
        if watch(Progress(memory_total=8)) is MigrationCommand.ABORT:
            raise VirtError("it was aborted")
        if not target.up or guest.id not in target.awaited:
            raise VirtError("nobody waits for it at the destination")
        target.guests[guest.id] = self.here.guests.pop(guest.id)
        target.disks[guest.id] = self.here.disks.pop(guest.id, "carried")
