"""The implementations of the cloud port, each with what a test needs to set a scene in it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pytest

from climate.cloud import ACTIVE, RESERVED, Cloud, Refused
from climate.cloud.bundled import BundledCloud
from climate.cloud.fake import FakeCloud, host
from climate.compute import boot
from tests.compute.place import Place, node, place, request, unsafe

HOSTS = ("h1", "h2", "h3")


class Scene(Protocol):
    """A cloud of the hosts h1, h2, h3, and the users of it."""

    @property
    def cloud(self) -> Cloud: ...

    def server(self, pool: str | None = None, project_id: str = "demo", status: str = ACTIVE) -> str | None:
        """A user boots a server on the pool's hosts, or on the ordinary ones; its id, None when refused."""

    def settle(self) -> None:
        """Let the cloud finish what it is at."""

    def effects(self, verb: str) -> int:
        """How often the verb took effect."""


class FakeScene:
    def __init__(self) -> None:
        self.cloud = FakeCloud({name: host(name) for name in HOSTS})

    def server(self, pool: str | None = None, project_id: str = "demo", status: str = ACTIVE) -> str | None:
        pools = self.cloud.pools()
        kept = frozenset[str]().union(*pools.values())
        names = sorted(pools.get(pool, frozenset()) if pool else set(HOSTS) - kept)
        try:
            return self.cloud.boot(project_id, names[0], status=status) if names else None
        except Refused:
            return None

    def settle(self) -> None:
        """Nothing is under way in it."""

    def effects(self, verb: str) -> int:
        return sum(times for (its, _, _), times in self.cloud.effects.items() if its == verb)


DRIVER_VERBS = {"wake": "run", "suspend": "suspend", "snapshot": "snapshot", "delete_server": "delete"}


class BundledScene:
    def __init__(self, here: Place) -> None:
        self.here = here
        self.cloud = BundledCloud(here.compute)

    def server(self, pool: str | None = None, project_id: str = "demo", status: str = ACTIVE) -> str | None:
        hints: dict[str, Any] = {"reservation": pool} if pool else {}
        wanted = request(hints=hints, project_id=project_id)
        if status == RESERVED:
            made = boot.reserve(self.here.compute, wanted, str(uuid4()))
        else:
            made = boot.boot(self.here.compute, wanted)[0]
        self.settle()
        return made.id if self.here.look(made.id).status == status else None

    def settle(self) -> None:
        self.here.settle()

    def effects(self, verb: str) -> int:
        return [name for name, _ in self.here.driver.calls].count(DRIVER_VERBS[verb])


@pytest.fixture(scope="session")
def scratch(make_database: Callable[..., str]) -> str:
    return unsafe(make_database())


@pytest.fixture
def fake() -> Scene:
    return FakeScene()


@pytest.fixture
def bundled(scratch: str, tmp_path: Path) -> Iterator[Scene]:
    with place(scratch, tmp_path, [node(name) for name in HOSTS]) as here:
        yield BundledScene(here)


@pytest.fixture(params=["fake", "bundled"])
def scene(request: pytest.FixtureRequest) -> Scene:
    found: Scene = request.getfixturevalue(request.param)
    return found
