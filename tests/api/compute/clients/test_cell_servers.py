"""The unmodified openstack client at a top cell: the servers are in a cell two levels below."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast
from uuid import uuid4

import pytest

from climate.cloud.bundled import BundledCloud
from climate.compute.cells.state import state
from climate.compute.nodes import services
from climate.context import Climate
from climate.settings import Settings
from tests.api.compute.clients.conftest import Person
from tests.api.reservation.api_clients import Deployment
from tests.compute.cells.server_tree import ServerTree, server_tree
from tests.compute.cells.tree import CellDatabases
from tests.compute.served_cloud import BEAT_SECONDS, repeated
from tests.databases import unsafe
from tests.flask_apps import app_of
from tests.identity import identity_factory as people
from tests.installed_plugins import installed_plugins
from tests.system.openstack_shells import Shells
from tests.system.stack import await_so, free_port


@pytest.fixture(scope="module")
def user(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Person]:
    """A member of the project demo of the top cell."""
    home = tmp_path_factory.mktemp("cells")
    databases = CellDatabases(lambda: unsafe(make_database(cloud_template)))
    with server_tree(databases, home) as cells, ExitStack() as stack:
        beat(cells)
        for name in cells.tree.places:
            services.furnish(cells.tree[name])
        settings = Settings(home=cells.top.home, port=free_port())
        known = stack.enter_context(people.place(databases("top"), cells.top.home, settings))
        climate = Climate(cells.top.engine, BundledCloud(cells.top), installed_plugins(), settings)
        app = app_of(cast("Any", Deployment(settings, climate, known.identity, cells.top)))
        stack.enter_context(people.served(app, settings.port))
        stack.enter_context(repeated(cast("Any", cells.step)))
        stack.enter_context(repeated(lambda: beat(cells), BEAT_SECONDS))
        clouds = str(cells.top.home / "clouds.yaml")
        shells = Shells({"HOME": str(home), "OS_CLIENT_CONFIG_FILE": clouds, "OS_CLOUD": "climate-demo"})
        stack.callback(shells.close)
        yield Person(shells)


def beat(cells: ServerTree) -> None:
    """Have the compute services heard, and the capacities of the cells reported."""
    for name in ("leaf", "right"):
        services.refresh(cells.tree[name])
        state.report(cells.tree[name])


@pytest.mark.slow
def test_the_life_of_a_server(user: Person) -> None:
    name = f"s-{uuid4().hex[:8]}"
    made = user.read(f"server create --flavor m1.tiny --image demo --property a=b --wait {name}")
    assert (made["status"], made["properties"]) == ("ACTIVE", {"a": "b"})
    assert list(made["addresses"]) == ["private"]
    assert user.names("server list") == [name]
    user(f"server stop {name}")
    user.sees(name, "SHUTOFF")
    assert user.names("server list --status SHUTOFF") == [name]
    assert "409" in user.refused(f"server stop {name}")
    user(f"server start {name}")
    user.sees(name, "ACTIVE")
    user(f"server reboot --hard --wait {name}")
    assert "is running" in user(f"console log show {name}")
    user(f"server set --property c=d {name}")
    assert user.read(f"server show {name}")["properties"] == {"a": "b", "c": "d"}
    assert {row["Action"] for row in user.read(f"server event list {name}")} >= {"create", "stop", "start", "reboot"}
    user(f"server delete --wait {name}")
    await_so(lambda: not user.names("server list"), 60, "the server to be gone")
