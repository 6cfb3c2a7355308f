"""Pretended machines whose clock is the test's, behind the hosts of an engine that saves power."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import HostPlace
from climate.power import OFF, ON, Target
from climate.power.simulated import MemoryDriver, Trouble
from climate.service.power import power, power_saving
from climate.service.power.power import Wiring
from climate.store.hosts import pool_membership
from climate.store.hosts import power as supplies
from climate.store.hosts.power import Supply
from climate.store.tables.limits_and_notices import notices
from tests.conftest import ADMIN, Clock

PASSWORD = "correct horse battery"
SAVING = {
    "idle_off_after": 300,
    "power_on_lead": 600,
    "warm_hosts": 0,
    "least_on": 600,
    "least_off": 600,
    "power_timeout": 600,
}


STEPS = ((1800, 60), (3600, 120))
"""Seconds that pass, and the seconds between rounds in a time of at most that length."""
LONGEST_STEP = 300
"""Seconds between rounds in a longer time."""


@dataclass
class Machines:
    """Eight hosts of which each has a machine: booting takes 120 s, shutting down 60.

    The cloud sees at each `pass_` whether a machine is up: its word is a look old, as a real one's.
    """

    climate: Climate
    clock: Clock
    driver: MemoryDriver

    @property
    def cloud(self) -> FakeCloud:
        assert isinstance(self.climate.cloud, FakeCloud)
        return self.climate.cloud

    def wire(self, *numbers: int, **settings: Any) -> None:
        given = {"boot_seconds": 120, "shutdown_seconds": 60, "password": PASSWORD, **settings}
        for number in numbers:
            power.put(self.climate, ADMIN, str(number), Wiring("memory", given, 150))

    def tell(self, number: int, trouble: Trouble) -> None:
        self.driver.inject(f"h{number}", trouble)

    def state(self, number: int) -> str:
        """What the machine itself says, whatever its trouble."""
        return self.driver.machine(f"h{number}").state(self.clock.time.timestamp())

    def states(self) -> str:
        return "".join({ON: "1", OFF: "0"}.get(self.state(number), "?") for number in range(1, 9))

    def by_itself(self, number: int, state: str) -> None:
        """Let a machine be on or off as if somebody had pressed its button."""
        host = f"h{number}"
        target = Target(host, {"boot_seconds": 0}, token=self.driver.machine(host).token)
        self.driver.on(target) if state == ON else self.driver.off(target, hard=True)

    def pass_(self, seconds: float = 0, step: float | None = None) -> None:
        """Let time pass, with a round and a look of the cloud at every step of so many seconds."""
        step = step or next((step for limit, step in STEPS if seconds <= limit), LONGEST_STEP)
        self.look()
        while seconds > 0:
            self.clock.forward(seconds=min(step, seconds))
            seconds -= step
            self.look()

    def look(self) -> None:
        self.cloud.unwell = {f"h{n}": "its service is down" for n in range(1, 9) if self.state(n) != ON}
        power_saving.run_round(self.climate)

    def place(self, number: int) -> HostPlace:
        with self.climate.engine.connect() as conn:
            return pool_membership.of(conn, [number])[number]

    def supply(self, number: int) -> Supply:
        with self.climate.engine.connect() as conn:
            return supplies.of(conn, [number])[number]

    def off(self) -> list[int]:
        """Hosts that are off by the books."""
        return [number for number in range(1, 9) if not self.place(number).on]

    def told(self) -> Sequence[tuple[str, str]]:
        with self.climate.engine.connect() as conn:
            found = conn.execute(select(notices.c.kind, notices.c.message).order_by(notices.c.id))
            return [(row.kind, row.message) for row in found]


def machines(climate: Climate, clock: Clock, folder: Path, **settings: Any) -> Machines:
    driver = MemoryDriver(folder / "power", lambda: clock.time.timestamp())
    saving = replace(climate.settings, **{**SAVING, **settings})
    return Machines(replace(climate, settings=saving, power={"memory": driver}), clock, driver)
