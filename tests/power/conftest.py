"""One subject after the other; the emulator and the controller are started once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.power import bmc, emulator, subjects
from tests.power.subjects import Ports, Subject


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
    subjects.needs_ipmitool()
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
            return subjects.memory(tmp_path / "power")
        if name == "redfish":
            of = request.getfixturevalue
            return subjects.redfish(tmp_path, of("systems"), of("redfish_address"), ports)
        return subjects.ipmi(tmp_path, request.getfixturevalue("machine"), ports)

    return make


@pytest.fixture(params=["memory", "redfish", "ipmi"])
def subject(request: pytest.FixtureRequest, make_subject: Callable[[str], Subject]) -> Subject:
    return make_subject(request.param)
