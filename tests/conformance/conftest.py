"""The implementations of the cloud port, each with what a test needs to set a scene in it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest

from climate.cloud import ACTIVE, RESERVED, Cloud, Refused
from climate.cloud.bundled import BundledCloud
from climate.cloud.fake import FakeCloud, host
from climate.cloud.openstack.servers import SLEEPS
from climate.compute.projects import flavors
from climate.compute.servers import create
from tests.compute.cloud_factory import Place, node, place, request
from tests.conformance.remote import Remote, remote
from tests.databases import unsafe

HOSTS = ("h1", "h2", "h3")


class Scene(Protocol):
    """A cloud of the hosts h1, h2, h3, and the users of it."""

    @property
    def cloud(self) -> Cloud: ...

    def server(self, pool: str | None = None, project_id: str = "demo", status: str = ACTIVE) -> str | None:
        """A user boots a server on the pool's hosts, or on the ordinary ones; its id, None when refused."""

    def granted(self, pool: str, project_id: str = "demo") -> str | None:
        """A user boots a server with the flavor of what is granted; its host, None when refused."""

    def settle(self) -> None:
        """Let the cloud finish what it is at."""

    def effects(self, verb: str) -> int:
        """How often the verb took effect."""


def booted(scene: Scene, pool: str | None = None, status: str = ACTIVE) -> str:
    """A user boots a server; its id."""
    server_id = scene.server(pool, status=status)
    assert server_id is not None
    return server_id


class FakeScene:
    def __init__(self) -> None:
        self.cloud = FakeCloud({name: replace(host(name), ids=(f"{at}",)) for at, name in enumerate(HOSTS, 1)})

    def server(self, pool: str | None = None, project_id: str = "demo", status: str = ACTIVE) -> str | None:
        pools = self.cloud.pools()
        kept = frozenset[str]().union(*pools.values())
        names = sorted(pools.get(pool, frozenset()) if pool else set(HOSTS) - kept)
        try:
            return self.cloud.boot(project_id, names[0], status=status) if names else None
        except Refused:
            return None

    def granted(self, pool: str, project_id: str = "demo") -> str | None:
        capacity = self.cloud.granted.get(pool)
        names = sorted(capacity.slots) if capacity and capacity.project_id == project_id else []
        for name in names:
            with suppress(Refused):
                self.cloud.boot_granted(pool, name)
                return name
        return None

    def settle(self) -> None:
        """Nothing is under way in it."""

    def effects(self, verb: str) -> int:
        return sum(times for (its, _, _), times in self.cloud.effects.items() if its == verb)


DRIVER_VERBS = {
    "wake": "run",
    "suspend": "suspend",
    "snapshot": "snapshot",
    "delete_server": "delete",
    "move_server": "stop",
}


class BundledScene:
    def __init__(self, here: Place) -> None:
        self.here = here
        self.cloud = BundledCloud(here.compute)

    def server(self, pool: str | None = None, project_id: str = "demo", status: str = ACTIVE) -> str | None:
        hints: dict[str, Any] = {"reservation": pool} if pool else {}
        wanted = request(hints=hints, project_id=project_id)
        if status == RESERVED:
            made = create.reserve(self.here.compute, wanted, str(uuid4()))
        else:
            made = create.boot(self.here.compute, wanted)[0]
        self.settle()
        return made.id if self.here.look(made.id).status == status else None

    def granted(self, pool: str, project_id: str = "demo") -> str | None:
        return booted_on(self.here, pool, project_id)

    def settle(self) -> None:
        self.here.settle()

    def effects(self, verb: str) -> int:
        return [name for name, _ in self.here.driver.calls].count(DRIVER_VERBS[verb])


def booted_on(here: Place, pool: str, project_id: str) -> str | None:
    """The node of a server of the flavor that bears the name of a pool, if the project may use it and there is room."""
    flavor = flavors.find(here.compute, pool, project_id)
    return here.boot_one(flavor, project_id=project_id).node if flavor else None


class OpenStackScene:
    """The port over HTTP; its users are at the other end, where the cloud is."""

    def __init__(self, here: Place, there: Remote) -> None:
        there.over(here.compute)
        self.here, self.there, self.cloud = here, there, there.cloud

    def server(self, pool: str | None = None, project_id: str = "demo", status: str = ACTIVE) -> str | None:
        hints: dict[str, Any] = {"reservation": pool} if pool else {}
        marks = {SLEEPS: "true"} if status == RESERVED else {}
        made = create.boot(self.here.compute, request(hints=hints, project_id=project_id, metadata=marks))[0]
        self.settle()
        if status == RESERVED:
            self.there.ask("POST", f"/servers/{made.id}/action", {"shelve": None})
            self.settle()
        found = self.cloud.server(made.id)
        return made.id if found and found.status == status else None

    def granted(self, pool: str, project_id: str = "demo") -> str | None:
        return booted_on(self.here, pool, project_id)

    def settle(self) -> None:
        self.here.settle()

    def effects(self, verb: str) -> int:
        return self.there.done[ACTIONS[verb]]


ACTIONS = {"wake": "unshelve", "suspend": "suspend", "snapshot": "createImage", "delete_server": "delete"}


@pytest.fixture(scope="session")
def scratch(make_database: Callable[..., str], cloud_template: str) -> str:
    return unsafe(make_database(cloud_template))


@pytest.fixture
def fake() -> Scene:
    return FakeScene()


@pytest.fixture
def bundled(scratch: str, tmp_path: Path) -> Iterator[Scene]:
    with place(scratch, tmp_path, [node(name) for name in HOSTS]) as here:
        yield BundledScene(here)


@pytest.fixture(scope="session")
def there(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Remote]:
    with remote(unsafe(make_database(cloud_template)), tmp_path_factory.mktemp("remote")) as found:
        yield found


@pytest.fixture
def openstack(there: Remote, tmp_path: Path) -> Iterator[Scene]:
    with place(there.database, tmp_path, [node(name) for name in HOSTS]) as here:
        yield OpenStackScene(here, there)


SDK_WARNS = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of its own code


@pytest.fixture(params=["fake", "bundled", pytest.param("openstack", marks=SDK_WARNS)])
def scene(request: pytest.FixtureRequest) -> Scene:
    found: Scene = request.getfixturevalue(request.param)
    return found
