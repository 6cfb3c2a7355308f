"""The real OpenStack of a test run, and users who boot servers in it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from openstack.exceptions import BadRequestException, ForbiddenException, NotFoundException

from climate.cloud import ACTIVE, RESERVED, Cloud, openstack
from climate.cloud.openstack.servers import SLEEPS
from tests.conformance.conftest import ACTIONS
from tests.real_openstack import accounts, configuration, services, stores
from tests.real_openstack.layout import HOSTS, Layout
from tests.system.stack import await_so

SECONDS = 600.0
MARKS = [
    pytest.mark.campaign,
    pytest.mark.timeout(3600),  # an OpenStack starts within the first test
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),  # of the SDK
]
"""Marks of each module."""


class People:
    """Users of the OpenStack, and its administrator."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.admin = accounts.connect(layout, "admin")
        self.users = {name: accounts.connect(layout, name) for name in (*accounts.PROJECTS, *accounts.LESSEES)}
        self.image = self.admin.image.find_image(accounts.IMAGE).id
        self.flavor = self.admin.compute.find_flavor(accounts.FLAVOR).id

    def request(self, user: str, hint: str | None = None, flavor: str = "", **more: Any) -> str:
        """Request a server, and return its id."""
        hints = {"scheduler_hints": {"reservation": hint}} if hint else {}
        wanted = {"image_id": self.image, "flavor_id": flavor or self.flavor, "networks": "none", **hints, **more}
        return str(self.users[user].compute.create_server(name=f"{user}-{time.monotonic_ns()}", **wanted).id)

    def look(self, server_id: str) -> Any:
        return self.admin.compute.get_server(server_id)

    def await_status(self, server_id: str, *wanted: str) -> Any:
        """Wait for a status without a task; return the server. Nova stores the fault of an error after its status."""

        def found() -> Any:
            seen = self.look(server_id)
            is_complete = seen.task_state is None and (seen.status != "ERROR" or seen.fault)
            return seen if seen.status in wanted and is_complete else None

        return await_so(found, SECONDS, f"the status {' or '.join(wanted)}")

    def boot(self, user: str, hint: str | None = None, **more: Any) -> Any:
        """Boot a server, and return it; None if no host was valid."""
        seen = self.await_status(self.request(user, hint, **more), ACTIVE, "ERROR")
        if seen.status == ACTIVE:
            return seen
        assert "No valid host was found" in seen.fault["message"], seen.fault
        self.delete(seen.id)
        return None

    def delete(self, server_id: str) -> None:
        with suppress(NotFoundException):
            self.admin.compute.delete_server(server_id)
        await_so(lambda: self.is_gone(server_id), SECONDS, "the deletion of a server")

    def is_gone(self, server_id: str) -> bool:
        try:
            self.look(server_id)
        except NotFoundException:
            return True
        return False

    def servers(self) -> list[Any]:
        return list(self.admin.compute.servers(all_projects=True))

    def clean(self) -> None:
        """Delete all servers, and what climate created."""
        for server in self.servers():
            self.delete(server.id)
        compute = self.admin.compute
        for each in compute.aggregates():
            for host in each.hosts or ():
                compute.remove_host_from_aggregate(each, host)
            compute.delete_aggregate(each)
        for flavor in compute.flavors(is_public=None):
            if flavor.id != self.flavor:
                compute.delete_flavor(flavor.id)
        for image in self.admin.image.images():
            if image.id != self.image:
                self.admin.image.delete_image(image.id)
        for ip in self.admin.network.ips():
            self.admin.network.delete_ip(ip.id)


class RealScene:
    """The scene of the conformance tests, on the real services."""

    def __init__(self, people: People, cloud: Cloud) -> None:
        self.people, self.cloud = people, cloud
        self.known: list[str] = []

    def server(self, pool: str | None = None, project_id: str = "demo", status: str = ACTIVE) -> str | None:
        marks = {"metadata": {SLEEPS: "true"}} if status == RESERVED else {}
        seen = self.people.boot(project_id, pool, **marks)
        if seen is None:
            return None
        self.known.append(seen.id)
        if status == RESERVED:
            self.people.users[project_id].compute.shelve_server(seen.id)
            self.people.await_status(seen.id, "SHELVED_OFFLOADED")
        return str(seen.id)

    def granted(self, pool: str, project_id: str = "demo") -> str | None:
        try:
            seen = self.people.boot(project_id, flavor=pool)
        except (BadRequestException, ForbiddenException, NotFoundException):  # the flavor is not the project's
            return None
        self.known += [seen.id] if seen else []
        return str(seen.hypervisor_hostname) if seen else None

    def settle(self) -> None:
        def is_settled() -> bool:
            return all(each.task_state is None and each.status != "BUILD" for each in self.people.servers())

        await_so(is_settled, SECONDS, "the end of all tasks")

    def effects(self, verb: str) -> int:
        compute = self.people.admin.compute
        actions = (each.action for known in self.known for each in compute.server_actions(known))
        return list(actions).count(ACTIONS[verb])


@pytest.fixture(scope="session")
def real() -> Iterator[Layout]:
    if reason := stores.missing():
        pytest.skip(f"an OpenStack cannot run here: {reason}")
    with (
        TemporaryDirectory(prefix="openstack-") as folder,
        services.running(Path(folder), configuration.BINDING) as layout,
    ):
        yield layout


@contextmanager
def _filtered(layout: Layout, *filters: str) -> Iterator[None]:
    """Let Nova use these filters in place of climate's, as long as the block lasts."""
    configuration.write(layout, *filters)
    services.restart_scheduler(layout)
    try:
        yield
    finally:
        configuration.write(layout, configuration.BINDING)
        services.restart_scheduler(layout)


@pytest.fixture
def with_blazar_filter(real: Layout) -> Iterator[None]:
    """Let Nova use blazar-nova's BlazarFilter in place of climate's, with preemptible servers."""
    with _filtered(real, configuration.BLAZAR):
        yield


@pytest.fixture
def with_usual_filters(real: Layout) -> Iterator[None]:
    """Let Nova use neither climate's filter nor Blazar's."""
    with _filtered(real):
        yield


@pytest.fixture
def people(real: Layout) -> Iterator[People]:
    """Return the users; what they and climate created before is deleted, and all hosts are up."""
    found = People(real)
    found.clean()
    yield found
    for host in HOSTS:
        if host not in real.running:
            services.start_host(real, host)


@pytest.fixture
def cloud(people: People) -> Cloud:
    return openstack.of("admin", str(accounts.clouds(people.layout)))


@pytest.fixture
def slotted(scene: RealScene) -> RealScene:
    return scene


@pytest.fixture
def scene(people: People, cloud: Cloud) -> RealScene:
    return RealScene(people, cloud)
