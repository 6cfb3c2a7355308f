"""The bundled cloud behind a real Keystone: the unmodified clients, with Keystone's users, roles and tokens."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import yaml

from tests.real_keystone.keystone_process import ADMIN, RealKeystone, installed, running
from tests.system.openstack_shells import Said, Shells
from tests.system.stack import Stack, await_so

PROGRAMS = installed()
"""The folder of Keystone's programs."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(PROGRAMS is None, reason="no Keystone is installed: `make test-keystone` installs one"),
    pytest.mark.filterwarnings("ignore"),
]

MEMBER, READER, STRANGER = "ann", "rita", "otto"
PEOPLE = {MEMBER: ("physics", "member"), READER: ("physics", "reader"), STRANGER: ("chemistry", "member")}
"""Project and role of each user."""
SERVICES = ("reservation", "compute", "image", "network", "volumev3")
SECONDS = 600
SETTINGS = {
    "CLIMATE_IDENTITY": "keystone",
    "CLIMATE_KEYSTONE_CLOUD": "keystone",
    "CLIMATE_KEYSTONE_CACHE_SECONDS": "0",
    "CLIMATE_KEYSTONE_SECONDS": "60",
    "CLIMATE_WEB_PROCESSES": "1",
}
SIZE = ("--flavor", "m1.nano", "--image", "demo", "--network", "private")

LEASE = ("--reservation", "resource_type=physical:host,min=1,max=1")

As = Callable[..., Said]
"""Run `openstack` as a user."""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKeystone]:
    with running(cast("Path", PROGRAMS), tmp_path_factory.mktemp("keystone")) as found:
        for name, (project, role) in PEOPLE.items():
            found.user(name, project, role)
        yield found


@pytest.fixture(scope="module")
def stack(there: RealKeystone) -> Iterator[Stack]:
    """Return a climate with the demo cloud, all of whose services are in Keystone's catalog."""
    clouds = there.folder / "clouds.yaml"
    accounts = {"keystone": ("climate", "service"), ADMIN: (ADMIN, ADMIN)}
    accounts |= {name: (name, project) for name, (project, _) in PEOPLE.items()}
    entries = {name: there.cloud(*account, region_name="RegionOne") for name, account in accounts.items()}
    clouds.write_text(yaml.safe_dump({"clouds": entries}), encoding="utf-8")
    own = {"CLIMATE_KEYSTONE_CONFIG": str(clouds), "OS_CLIENT_CONFIG_FILE": str(clouds)}
    made = Stack(there.folder / "home", {**SETTINGS, **own})
    try:
        made.start()
        services = [word for name in SERVICES for word in ("--service", name)]
        done = made.run("--os-cloud", ADMIN, "openstack", "register", "--url", made.url, *services)
        assert done.returncode == 0, done
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def as_(stack: Stack) -> Iterator[As]:
    shells: dict[str, Shells] = {}

    def run(user: str, *words: str) -> Said:
        if user not in shells:
            shells[user] = Shells({**stack.environ, "OS_CLOUD": user})
        return shells[user].run("openstack", *words)

    yield run
    for one in shells.values():
        one.close()


def minute(ahead: int) -> str:
    """Return a time in minutes from now, as the clients write it."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(time.time() + 60 * ahead))


def read(as_: As, user: str, *words: str) -> Any:
    return as_(user, *words, "-f", "json").json()


def ask(stack: Stack, token: str, path: str, method: str = "GET") -> int:
    """Return the status of an answer of climate to a token of Keystone."""
    headers = {"X-Auth-Token": token}
    return httpx.request(method, stack.url + path, headers=headers, timeout=60, trust_env=False).status_code


@pytest.fixture
def server(as_: As) -> Iterator[str]:
    """The id of a server of the member."""
    made = read(as_, MEMBER, "server", "create", *SIZE, "--wait", "one")
    assert made["status"] == "ACTIVE", made
    yield made["id"]
    as_(MEMBER, "server", "delete", "--wait", made["id"])


def test_all_services_are_found_by_the_catalog_of_keystone(as_: As, stack: Stack) -> None:
    found = {row["Type"]: row["Endpoints"] for row in read(as_, MEMBER, "catalog", "list")}
    assert found.keys() == {*SERVICES, "identity"}
    assert all(each["url"].startswith(stack.url) for kind in SERVICES for each in found[kind])


@pytest.mark.parametrize("user", [MEMBER, READER, STRANGER, ADMIN])
def test_every_user_reads_what_is_public(as_: As, user: str) -> None:
    assert [row["Name"] for row in read(as_, user, "image", "list")] == ["demo"]
    assert {row["Name"] for row in read(as_, user, "network", "list")} == {"private", "public"}
    assert {"m1.nano", "m1.large"} <= {row["Name"] for row in read(as_, user, "flavor", "list")}
    for words in (("server", "list"), ("subnet", "list"), ("port", "list"), ("volume", "list"), ("quota", "show")):
        assert as_(user, *words).code == 0, words


def test_a_server_has_the_ids_of_keystone_and_ends(as_: As, there: RealKeystone) -> None:
    made = read(as_, MEMBER, "server", "create", *SIZE, "--wait", "short")
    (known,) = there.admin("GET", "/users", params={"name": MEMBER})["users"]
    assert (made["status"], made["project_id"], made["user_id"]) == ("ACTIVE", there.project("physics"), known["id"])
    assert [row["ID"] for row in read(as_, MEMBER, "server", "list")] == [made["id"]]
    assert read(as_, MEMBER, "server", "show", "short")["id"] == made["id"]
    assert "boot finished" in as_(MEMBER, "console", "log", "show", "short").out
    assert as_(MEMBER, "server", "delete", "--wait", "short").code == 0
    assert read(as_, MEMBER, "server", "list") == []


def test_a_reader_sees_the_servers_of_the_project_and_changes_nothing(as_: As, server: str) -> None:
    assert [row["ID"] for row in read(as_, READER, "server", "list")] == [server]
    for words in (
        ("server", "create", *SIZE, "mine"),
        ("server", "delete", server),
        ("server", "stop", server),
        ("keypair", "create", "mine"),
        ("security", "group", "create", "mine"),
        ("reservation", "lease", "create", *LEASE, "--end-date", minute(60), "mine"),
    ):
        said = as_(READER, *words)
        assert (said.code != 0, "Policy doesn't allow" in said.err) == (True, True), said
    assert read(as_, MEMBER, "server", "show", server)["status"] == "ACTIVE"


def test_only_an_administrator_sees_hosts_and_all_projects(as_: As, server: str) -> None:
    names = {row["Hypervisor Hostname"] for row in read(as_, ADMIN, "hypervisor", "list")}
    assert names == {"gpu-1", "gpu-2", "gpu-3", "gpu-4", "std-1", "std-2"}
    assert [row["ID"] for row in read(as_, ADMIN, "server", "list", "--all-projects")] == [server]
    assert read(as_, ADMIN, "server", "list") == []
    assert len(read(as_, ADMIN, "reservation", "host", "list")) == 4
    for words in (("hypervisor", "list"), ("server", "list", "--all-projects"), ("reservation", "host", "list")):
        assert "Policy doesn't allow" in as_(MEMBER, *words).err, words


def test_ids_of_another_project_are_unknown(as_: As, stack: Stack, there: RealKeystone, server: str) -> None:
    group = read(as_, MEMBER, "security", "group", "create", "rules")["id"]
    port = read(as_, MEMBER, "port", "list")[0]["ID"]
    token = there.token(STRANGER, PEOPLE[STRANGER][0])
    paths = (
        f"/compute/v2.1/servers/{server}",
        f"/network/v2.0/ports/{port}",
        f"/network/v2.0/security-groups/{group}",
    )
    assert [ask(stack, token, path, method) for path in paths for method in ("GET", "DELETE")] == [404] * 6
    assert "No Server found" in as_(STRANGER, "server", "show", server).err
    assert read(as_, STRANGER, "server", "list") == []
    assert read(as_, MEMBER, "server", "show", server)["status"] == "ACTIVE"
    assert as_(MEMBER, "security", "group", "delete", group).code == 0


def test_a_lease_holds_a_host_for_its_project(as_: As, stack: Stack, there: RealKeystone) -> None:
    assert as_(MEMBER, "reservation", "lease", "create", *LEASE, "--end-date", minute(60), "mine").code == 0

    def active() -> Any:
        seen = read(as_, MEMBER, "reservation", "lease", "show", "mine")
        return seen if seen["status"] == "ACTIVE" else None

    lease = await_so(active, SECONDS, "the start of the lease")
    assert lease["project_id"] == there.project("physics")
    hint = ("--hint", f"reservation={json.loads(lease['reservations'])['id']}")
    made = read(as_, MEMBER, "server", "create", *SIZE, *hint, "--wait", "inside")
    shown = read(as_, ADMIN, "server", "show", made["id"])
    assert shown["OS-EXT-SRV-ATTR:hypervisor_hostname"].startswith("gpu-")
    assert as_(STRANGER, "server", "create", *SIZE, *hint, "--wait", "outside").code != 0
    token = there.token(STRANGER, PEOPLE[STRANGER][0])
    path = f"/reservation/v1/leases/{lease['id']}"
    assert [ask(stack, token, path, method) for method in ("GET", "DELETE")] == [404, 404]
    assert as_(READER, "reservation", "lease", "delete", "mine").code != 0
    assert as_(MEMBER, "reservation", "lease", "delete", "mine").code == 0
    await_so(lambda: read(as_, MEMBER, "server", "list") == [], SECONDS, "the deletion of the server")


PATHS = ("/compute/v2.1/servers", "/image/v2/images", "/network/v2.0/networks", "/reservation/v1/leases")


def test_revoked_tokens_and_disabled_users_are_refused_by_each_service(stack: Stack, there: RealKeystone) -> None:
    user = there.user("bert", "physics", "member")
    first, second = there.token("bert", "physics"), there.token("bert", "physics")
    assert [ask(stack, token, path) for token in (first, second) for path in PATHS] == [200] * 8
    there.ask("DELETE", "/auth/tokens", first, headers={"X-Subject-Token": first})
    assert [ask(stack, first, path) for path in PATHS] == [401] * 4
    assert [ask(stack, second, path) for path in PATHS] == [200] * 4
    there.admin("PATCH", f"/users/{user}", json={"user": {"enabled": False}})
    assert [ask(stack, second, path) for path in PATHS] == [401] * 4


def test_a_user_without_a_role_of_climate_may_nothing(stack: Stack, there: RealKeystone) -> None:
    there.user("gast", "physics", "guest")
    token = there.token("gast", "physics")
    assert [ask(stack, token, path) for path in PATHS] == [403] * 4
