"""Registry of network drivers: one for each network namespace that a process works in."""

from collections.abc import Callable
from dataclasses import dataclass, field

from climate.compute.network.driver import NetworkDriver
from climate.compute.network.driver.recording import RecordingNetwork


@dataclass(frozen=True)
class DriverCache:
    """Creates each driver on first use."""

    make: Callable[[str | None], NetworkDriver] = lambda _: RecordingNetwork()
    made: dict[str | None, NetworkDriver] = field(default_factory=dict)

    def on(self, netns: str | None) -> NetworkDriver:
        """Return the driver of a network namespace; None: the machine's own."""
        if netns not in self.made:
            self.made[netns] = self.make(netns)
        return self.made[netns]
