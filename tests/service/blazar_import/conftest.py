"""A recorded Blazar database, the cloud that it is about, and an engine without hosts."""

from collections.abc import Mapping

import pytest
from sqlalchemy import Engine

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.plugin import ResourcePlugin
from climate.service.blazar_import import source
from climate.service.blazar_import.records import BlazarData
from climate.settings import Settings
from tests.conftest import Clock, cloud_host
from tests.databases import Databases
from tests.service.blazar_import.recordings import number, restore_postgresql

PROJECT = "project-of-leases"


@pytest.fixture(scope="session")
def blazar_url(make_database: Databases) -> str:
    """A database that Blazar 18 filled."""
    return restore_postgresql(make_database(), "18.0.0")


@pytest.fixture(scope="session")
def recorded(blazar_url: str) -> BlazarData:
    """What Blazar 18 stored."""
    return source.read(blazar_url)


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud of the recording: its hosts in Blazar's aggregates, one that has vanished, and servers that run."""
    names = ("compute-1", "compute-2", "compute-3", "compute-4", "compute-6", "compute-7")
    made = FakeCloud({f"{name}.example": cloud_host(f"{name}.example", vcpus=16) for name in names})
    for name in made.hosts:
        made.enrol(name, 0)
    made.lend(str(number("active-hosts 0")), PROJECT, ["compute-1.example"], 0)
    made.boot(PROJECT, "compute-1.example", server_id="running")
    return made


@pytest.fixture
def empty(engine: Engine, clock: Clock, cloud: FakeCloud, plugins: Mapping[str, ResourcePlugin]) -> Climate:
    """An engine without hosts over that cloud."""
    return Climate(engine, cloud, dict(plugins), Settings(minutes_before_end=0), clock, lambda: 0.5)
