"""The network drivers of the hosts that a process works on: one for each network namespace."""

from collections.abc import Callable
from dataclasses import dataclass, field

from climate.compute.network.driver import NetworkDriver
from climate.compute.network.recording_driver import RecordingNetwork


@dataclass(frozen=True)
class Wires:
    """Makes each driver when it is first asked for."""

    make: Callable[[str | None], NetworkDriver] = lambda _: RecordingNetwork()
    made: dict[str | None, NetworkDriver] = field(default_factory=dict)

    def on(self, netns: str | None) -> NetworkDriver:
        """The driver of a host: of the namespace of that name, or with None of this one."""
        if netns not in self.made:
            self.made[netns] = self.make(netns)
        return self.made[netns]
