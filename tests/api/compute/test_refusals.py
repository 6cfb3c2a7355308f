"""Pages, ids and names that compute refuses, whatever they are of."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.compute.api_clients import Person, World, done, message

C = "/compute/v2.1"
SERVERS = f"{C}/servers"
NOBODY = "6f9d2c7e-0000-4000-8000-00000000abcd"
"""An id that nothing has."""

LONG = "x" * 10_000


@pytest.fixture
def member(standing: World) -> Person:
    return Person(standing.app, "member")


@pytest.fixture
def admin(standing: World) -> Person:
    return Person(standing.app, "admin")


LISTS = {
    "/servers": "2.1",
    "/servers/detail": "2.1",
    "/flavors": "2.1",
    "/flavors/detail": "2.1",
    "/os-keypairs": "2.35",
    "/os-hypervisors": "2.33",
    "/os-hypervisors/detail": "2.33",
    "/os-server-groups": "2.1",
}


@pytest.mark.parametrize(("path", "version"), LISTS.items())
def test_pages_that_are_none(admin: Person, path: str, version: str) -> None:
    headers = {"OpenStack-API-Version": f"compute {version}"}

    def ask(query: str) -> Any:
        return admin("GET", f"{C}{path}?{query}", headers=headers)

    if path.startswith("/servers"):
        assert done(ask("limit=0")) == {"servers": []}
    for limit in ("-1", "abc", "1.5", *(() if path.startswith("/servers") else ("0",))):
        assert "limit must be a whole number from 1" in message(ask(f"limit={limit}"), 400, "badRequest")
    assert done(ask("limit=1000000000"))
    if path == "/os-server-groups":
        assert "offset must be a whole number" in message(ask("offset=-1"), 400, "badRequest")
    else:
        assert "marker" in message(ask(f"marker={NOBODY}"), 400, "badRequest")


@pytest.fixture(scope="module")
def theirs(standing: World) -> dict[str, str]:
    """What another project has: by the noun of its path."""
    stranger = Person(standing.app, "stranger")
    group = {"name": "g", "policies": ["affinity"]}
    made = done(stranger("POST", f"{C}/os-server-groups", {"server_group": group}))["server_group"]["id"]
    return {"servers": stranger.booted(), "os-server-groups": str(made)}


OF_ONE: list[tuple[str, str, Any]] = [
    ("GET", "servers/ID", None),
    ("PUT", "servers/ID", {"server": {"name": "x"}}),
    ("DELETE", "servers/ID", None),
    ("GET", "servers/ID/metadata", None),
    ("PUT", "servers/ID/metadata", {"metadata": {}}),
    ("POST", "servers/ID/metadata", {"metadata": {}}),
    ("GET", "servers/ID/metadata/a", None),
    ("PUT", "servers/ID/metadata/a", {"meta": {"a": "b"}}),
    ("DELETE", "servers/ID/metadata/a", None),
    ("GET", "servers/ID/os-instance-actions", None),
    ("GET", "servers/ID/os-instance-actions/req-1", None),
    ("POST", "servers/ID/action", {"os-stop": None}),
    ("POST", "servers/ID/action", {"lock": None}),
    ("POST", "servers/ID/remote-consoles", {"remote_console": {"protocol": "vnc", "type": "novnc"}}),
    ("GET", "os-server-groups/ID", None),
    ("DELETE", "os-server-groups/ID", None),
]


@pytest.mark.parametrize(("method", "path", "body"), OF_ONE, ids=lambda value: str(value)[:40])
def test_no_uuid_nobodys_and_another_projects_are_reported_alike(
    theirs: dict[str, str], member: Person, method: str, path: str, body: Any
) -> None:
    told = set()
    for name in (theirs[path.partition("/")[0]], NOBODY, "no-uuid"):
        answer = member(method, f"{C}/{path.replace('ID', name)}", body)
        told.add((answer.status_code, answer.get_data(as_text=True).replace(name, "ID")))
    assert [code for code, _ in told] == [404]


KEPT = "\u200fخادم 👩‍🔬 é"
"""Right to left, with a sign of several code points."""


def test_text_of_any_script_is_kept_faithfully(member: Person, admin: Person) -> None:
    texts = {"name": KEPT, "metadata": {KEPT: KEPT}, "description": KEPT}
    shown = member.get(f"{SERVERS}/{member.booted(**texts)}", "2.79")["server"]
    assert {key: shown[key] for key in texts} == texts
    for who, path, noun, body in (
        (member, "os-server-groups", "server_group", {"policies": ["affinity"]}),
        (admin, "os-aggregates", "aggregate", {}),
        (admin, "flavors", "flavor", {"vcpus": 1, "ram": 1, "disk": 1}),
    ):
        made = done(who("POST", f"{C}/{path}", {noun: {"name": KEPT, **body}}))[noun]
        assert who.get(f"{C}/{path}/{made['id']}")[noun]["name"] == KEPT


NAMED: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("member", "os-server-groups", lambda name: {"server_group": {"name": name, "policies": ["affinity"]}}),
    ("member", "os-keypairs", lambda name: {"keypair": {"name": name}}),
    ("admin", "os-aggregates", lambda name: {"aggregate": {"name": name}}),
    ("admin", "os-aggregates", lambda name: {"aggregate": {"name": "a", "availability_zone": name or ""}}),
    ("admin", "flavors", lambda name: {"flavor": {"name": name, "vcpus": 1, "ram": 1, "disk": 1}}),
]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("who", "path", "body"), NAMED)
@pytest.mark.parametrize("name", ["", "   ", "a\nb", "a\0b", "\udfff", LONG, 7, None, ["a"]], ids=repr)
def test_names_that_are_none(standing: World, who: str, path: str, body: Callable[[Any], Any], name: Any) -> None:
    assert message(Person(standing.app, who)("POST", f"{C}/{path}", body(name)), 400, "badRequest")
