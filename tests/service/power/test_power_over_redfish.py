"""An engine whose hosts are switched over Redfish, as the emulator of sushy-tools speaks it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.power.redfish import RedfishDriver
from climate.service.power import power, power_saving
from climate.service.power.power import Wiring
from climate.store.hosts import pool_membership
from tests.conftest import ADMIN, Clock
from tests.power import emulator
from tests.power.emulator import Emulator
from tests.service.fake_power import SAVING
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due

EVERYBODY = range(1, 9)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with emulator.serving(emulator.prepared(tmp_path_factory.mktemp("emulator"))) as served:
        yield served


@pytest.mark.slow
def test_a_lease_finds_its_hosts_up(
    climate: Climate, clock: Clock, cloud: FakeCloud, served: Emulator, tmp_path: Path
) -> None:
    climate = replace(climate, settings=replace(climate.settings, **SAVING), power={"redfish": RedfishDriver(tmp_path)})
    systems = {number: served.systems.add() for number in EVERYBODY}
    for number, uuid in systems.items():
        served.systems.be(uuid, "On")
        settings = {
            "address": served.address,
            "system": f"/redfish/v1/Systems/{uuid}",
            "username": emulator.USER,
            "password": emulator.PASSWORD,
        }
        power.put(climate, ADMIN, str(number), Wiring("redfish", settings))

    def round_() -> None:
        """The machines follow, the cloud looks at them, and then we do."""
        for uuid in systems.values():
            served.systems.settle(uuid)
        states = {number: served.systems.get_power_state(uuid) for number, uuid in systems.items()}
        cloud.unwell = {f"h{number}": "down" for number, state in states.items() if state != "On"}
        power_saving.run_round(climate)
        clock.forward(seconds=60)

    def off() -> list[int]:
        with climate.engine.connect() as conn:
            return [number for number, place in pool_membership.of(conn, EVERYBODY).items() if not place.on]

    lease = make(climate, clock, hosts_wanted(3), start=1)
    clock.forward(seconds=700)
    for _ in range(3):
        round_()
    assert off() == list(EVERYBODY)
    assert {state for _, state in served.systems.asked} == {"GracefulShutdown"}
    while clock.time < lease.period.start:
        round_()
        run_due(climate)
    run_due(climate)
    assert get(climate, lease).status == "ACTIVE"
    assert sorted(set(EVERYBODY) - set(off())) == sorted(held(lease))
    asked = [uuid for uuid, state in served.systems.asked if state in ("On", "ForceOn")]
    assert sorted(asked) == sorted(systems[number] for number in held(lease)), "each once"
