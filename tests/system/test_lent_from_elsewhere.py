"""A climate that lends the hosts of another cloud: over HTTP, with nothing but an entry of that one's clouds.yaml."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from climate import bootstrap
from climate.identity import projects_and_users, roles
from climate.identity.audit_trail import SETUP
from climate.identity.models import Project
from climate.identity.projects_and_users import NewUser
from climate.identity.store import projects
from climate.identity.store.assignments import Holder
from climate.settings import Settings
from tests.api.reservation.api_clients import run_due
from tests.compute.served_cloud import Served, repeated, served
from tests.databases import unsafe
from tests.flask_apps import app_of
from tests.identity import identity_factory as people
from tests.system.api_client import Api, host_lease
from tests.system.stack import Stack, await_so, free_port

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's own code
]

COMPUTE = "/compute/v2.1"


@contextmanager
def stack(home: Path, settings: Settings) -> Iterator[None]:
    """All processes of a climate of its own."""
    names = ("database_url", "cloud", "openstack_cloud", "openstack_config")
    one = Stack(home, {f"CLIMATE_{name.upper()}": getattr(settings, name) for name in names})
    try:
        one.start()
        yield
    finally:
        one.stop()


@contextmanager
def in_process(home: Path, settings: Settings) -> Iterator[None]:
    """Its web process as a thread, and another one that does what pollers and workers do."""
    bootstrap.migrate(settings)
    deployment = bootstrap.build(settings)
    with people.place(settings.database_url, home, settings) as known:
        deployment = replace(deployment, identity=known.identity)
        with people.served(app_of(deployment), settings.port), repeated(lambda: run_due(deployment.climate)):
            yield
    deployment.climate.engine.dispose()


Start = Callable[[Path, Settings], AbstractContextManager[None]]


@pytest.fixture(scope="module", params=[in_process, pytest.param(stack, marks=pytest.mark.slow)])
def start(request: pytest.FixtureRequest) -> Start:
    """How the climate runs that lends."""
    way: Start = request.param
    return way


@pytest.fixture(scope="module")
def there(
    start: Start, make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The cloud elsewhere, with two nodes, new for each climate that lends of it: it remembers the tokens of one."""
    database = unsafe(make_database(engine_template))
    with served(database, tmp_path_factory.mktemp("there"), ("n1", "n2")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def lender(
    start: Start,
    there: Served,
    make_database: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """The home of a climate whose hosts are that cloud's."""
    home = tmp_path_factory.mktemp("lender")
    settings = Settings(
        home=home,
        port=free_port(),
        database_url=unsafe(make_database()),
        cloud="openstack",
        openstack_cloud="climate",
        openstack_config=str(there.home / "clouds.yaml"),
    )
    with start(home, settings):
        yield home


@pytest.fixture(scope="module")
def lends(lender: Path) -> Iterator[Api]:
    """The lender's administrator."""
    api = Api(lender, "climate")
    yield api
    api.close()


@pytest.fixture(scope="module")
def leases(lender: Path) -> Iterator[Api]:
    """Who makes leases: a member of the lender's project demo."""
    api = Api(lender, "climate-demo")
    yield api
    api.close()


@pytest.fixture(scope="module")
def boots(there: Served, leases: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The same project in the cloud elsewhere, by its id."""
    leases.sign_in()
    name = f"tenant-{leases.project_id[:8]}"
    with there.identity.engine.begin() as conn:
        projects.add(conn, Project(leases.project_id, name, "", enabled=True))
    user = projects_and_users.create_user(there.identity, SETUP, NewUser(name, "open-sesame"))
    roles.assign(there.identity, SETUP, Holder(user.id), leases.project_id, "member")
    folder = tmp_path_factory.mktemp("tenant")
    entry = yaml.safe_load((there.home / "clouds.yaml").read_text())["clouds"]["climate-demo"]
    entry["auth"] |= {"username": name, "password": "open-sesame", "project_name": name}
    (folder / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"tenant": entry}}))
    api = Api(folder, "tenant")
    yield api
    api.close()


@pytest.fixture(scope="module")
def looks(there: Served) -> Iterator[Api]:
    """The administrator of the cloud elsewhere."""
    api = Api(there.home, "climate")
    yield api
    api.close()


@pytest.fixture(scope="module")
def stranger(there: Served) -> Iterator[Api]:
    """A member of another project of the cloud elsewhere."""
    api = Api(there.home, "climate-demo")
    yield api
    api.close()


def boot(who: Api, name: str, **hints: str) -> Any:
    """Ask the cloud elsewhere for a server; the answer."""
    image = who.read("/image/v2/images")["images"][0]["id"]
    flavor = next(each["id"] for each in who.read(f"{COMPUTE}/flavors")["flavors"] if each["name"] == "m1.tiny")
    server = {"name": name, "imageRef": image, "flavorRef": flavor, "networks": "auto"}
    body = {"server": server, "OS-SCH-HNT:scheduler_hints": hints}
    return who.ask("POST", f"{COMPUTE}/servers", body, **{"OpenStack-API-Version": "compute 2.79"})


def settled(who: Api, answer: Any) -> dict[str, Any]:
    """A server that was asked for, when it is no longer being built."""
    assert answer.status_code == 202, answer.text
    path = f"{COMPUTE}/servers/{answer.json()['server']['id']}"
    await_so(lambda: who.read(path)["server"]["status"] != "BUILD", 300, "the server")
    found: dict[str, Any] = who.read(path)["server"]
    return found


def pools(looks: Api) -> dict[str, list[str]]:
    found = looks.read(f"{COMPUTE}/os-aggregates")["aggregates"]
    return {each["name"]: each["hosts"] for each in found}


def test_a_host_is_allocated_and_comes_back(lends: Api, leases: Api, boots: Api, looks: Api, stranger: Api) -> None:
    made = lends.ask("POST", "/v1/os-hosts", {"name": "n1", "gpu": "a100"})
    assert made.status_code == 201, made.text
    assert (made.json()["host"]["vcpus"], made.json()["host"]["gpu"]) == (8, "a100")
    assert pools(looks)["freepool"] == ["n1"]

    lease = leases.ask("POST", "/v1/leases", host_lease("elsewhere", "now", time.time() + 7200)).json()["lease"]
    path, pool = f"/v1/leases/{lease['id']}", lease["reservations"][0]["id"]
    await_so(lambda: leases.read(path)["lease"]["status"] == "ACTIVE", 300, "the start of the lease")
    assert (pools(looks)["freepool"], pools(looks)[pool]) == ([], ["n1"])

    mine = settled(boots, boot(boots, "mine", reservation=pool))
    assert mine["status"] == "ACTIVE"
    seen = looks.read(f"{COMPUTE}/servers/{mine['id']}")["server"]
    assert seen["OS-EXT-SRV-ATTR:hypervisor_hostname"] == "n1"
    assert boot(stranger, "theirs", reservation=pool).status_code == 404
    elsewhere = settled(stranger, boot(stranger, "ordinary"))
    assert looks.read(f"{COMPUTE}/servers/{elsewhere['id']}")["server"]["OS-EXT-SRV-ATTR:hypervisor_hostname"] == "n2"

    assert leases.ask("DELETE", path).status_code == 204
    await_so(lambda: leases.ask("GET", path).status_code == 404, 300, "the end of the lease")
    assert (pools(looks)["freepool"], pool in pools(looks)) == (["n1"], False)
    assert boots.ask("GET", f"{COMPUTE}/servers/{mine['id']}").status_code == 404
    assert stranger.read(f"{COMPUTE}/servers/{elsewhere['id']}")["server"]["status"] == "ACTIVE"
    stranger.ask("DELETE", f"{COMPUTE}/servers/{elsewhere['id']}")


def test_a_shelved_server_is_woken_by_its_lease(leases: Api, boots: Api) -> None:
    server = settled(boots, boot(boots, "sleeper"))
    path = f"{COMPUTE}/servers/{server['id']}"
    assert boots.ask("POST", f"{path}/action", {"shelve": None}).status_code == 202
    await_so(lambda: boots.read(path)["server"]["status"] == "SHELVED_OFFLOADED", 300, "its sleep")
    wanted = {
        "name": "sleeper",
        "start_date": "now",
        "end_date": host_lease("", "now", time.time() + 7200)["end_date"],
        "reservations": [{"resource_type": "virtual:instance", "resource_id": server["id"], "on_end": "delete"}],
    }
    made = leases.ask("POST", "/v1/leases", wanted)
    assert made.status_code == 201, made.text
    await_so(lambda: boots.read(path)["server"]["status"] == "ACTIVE", 300, "its awakening")
    lease = f"/v1/leases/{made.json()['lease']['id']}"
    await_so(lambda: leases.read(lease)["lease"]["status"] == "ACTIVE", 300, "the start of its lease")
    assert leases.ask("DELETE", lease).status_code == 204
    await_so(lambda: boots.ask("GET", path).status_code == 404, 300, "its end")
