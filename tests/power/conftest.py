"""One subject after the other; the emulator and the controller are started once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.power import bmc, driver_cases, emulator
from tests.power.driver_cases import Ports, Subject


@pytest.fixture(scope="session")
def systems(tmp_path_factory: pytest.TempPathFactory) -> emulator.Systems:
    return emulator.prepared(tmp_path_factory.mktemp("emulator"))


@pytest.fixture(scope="session")
def redfish_address(systems: emulator.Systems) -> Iterator[str]:
    with emulator.serving(systems) as served:
        yield served.address


@pytest.fixture(scope="session")
def machine() -> bmc.Machine:
    """A machine behind a controller that speaks IPMI; needs ipmitool."""
    driver_cases.needs_ipmitool()
    return bmc.started()


@pytest.fixture
def ports() -> Iterator[Ports]:
    ports = Ports()
    yield ports
    for taken in ports.taken:
        taken.close()


@pytest.fixture
def make_subject(request: pytest.FixtureRequest, tmp_path: Path, ports: Ports) -> Callable[[str], Subject]:
    def make(name: str) -> Subject:
        if name == "memory":
            return driver_cases.memory(tmp_path / "power")
        if name == "redfish":
            of = request.getfixturevalue
            return driver_cases.redfish(tmp_path, of("systems"), of("redfish_address"), ports)
        return driver_cases.ipmi(tmp_path, request.getfixturevalue("machine"), ports)

    return make


@pytest.fixture(params=["memory", "redfish", "ipmi"])
def subject(request: pytest.FixtureRequest, make_subject: Callable[[str], Subject]) -> Subject:
    return make_subject(request.param)
