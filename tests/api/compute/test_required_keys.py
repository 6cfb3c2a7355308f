"""What clients need of each answer, and what they show of it, is there.

`client_keys.json` was found by taking each key out of each answer to the
clients: they fail without a `required` one, and show less without a `shown` one.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from climate.compute.nodes.services import IMAGE_ID
from tests.api.compute.api_clients import NODES, Person, World, done, server
from tests.api.compute.projects.test_keypairs import KEY
from tests.identity.identity_factory import Asker

C = "/compute/v2.1"
ROWS = json.loads(Path(__file__).with_name("client_keys.json").read_text())
READ = [row for row in ROWS if row["route"].startswith("GET") and "/identity" not in row["route"]]
WRITTEN = [row for row in ROWS if row["route"].startswith(f"POST {C}")]
IDENTITY = [row for row in ROWS if "/identity" in row["route"]]

BODIES: dict[str, dict[str, Any]] = {
    "/flavors": {"flavor": {"name": "f", "vcpus": 1, "ram": 1, "disk": 1, "id": None}},
    "/flavors/<i>/os-extra_specs": {"extra_specs": {"a": "b"}},
    "/os-aggregates": {"aggregate": {"name": "a2", "availability_zone": "z"}},
    "/os-aggregates/<i>/action": {"add_host": {"host": NODES[0]}},
    "/os-keypairs": {"keypair": {"name": "k2", "public_key": KEY}},
    "/os-server-groups": {"server_group": {"name": "g2", "policy": "affinity"}},
    "/servers": {"server": server()},
}


def holds(body: Any, path: list[str]) -> bool:
    """Whether a key is in a body; `*` stands for each of the things there, of which there is one at least."""
    if not path:
        return True
    if path[0] == "*":
        inside = list(body.values()) if isinstance(body, dict) else body
        return bool(inside) and all(holds(each, path[1:]) for each in inside)
    if not isinstance(body, dict):
        return False
    found = next((size for size in range(len(path), 0, -1) if ".".join(path[:size]) in body), 0)
    return found > 0 and holds(body[".".join(path[:found])], path[found:])


def missing(body: Any, row: dict[str, Any]) -> list[str]:
    return [key for key in (*row["required"], *row["shown"]) if not holds(body, key.split("."))]


def title(row: dict[str, Any]) -> str:
    return f"{row['route']} {row.get('version', '')}"


@pytest.fixture
def furnished(there: World, admin: Person) -> Callable[[str, str], str]:
    """One of everything; gives the path of a route."""
    groups = f"{C}/os-server-groups"
    group = done(admin("POST", groups, {"server_group": {"name": "g", "policies": ["affinity"]}}))["server_group"]["id"]
    done(admin("POST", f"{C}/os-keypairs", {"keypair": {"name": "k", "public_key": KEY}}))
    aggregate = done(admin("POST", f"{C}/os-aggregates", {"aggregate": {"name": "a"}}))["aggregate"]["id"]
    server_id = admin.booted({"group": group}, key_name="k", metadata={"a": "b"})
    there.settle()
    assert admin.status(server_id) == "ACTIVE"

    def path_of(path: str, version: str) -> str:
        if "/os-hypervisors/<i>" in path:
            node = admin.get(f"{C}/os-hypervisors", version)["hypervisors"][0]["id"]
            return path.replace("<i>", str(node))
        ids = {"servers": server_id, "images": IMAGE_ID, "flavors": "1", "os-aggregates": str(aggregate)}
        found = path.replace("<n>", "k").replace("<p>", "admin-project")
        for noun, known in ids.items():
            found = found.replace(f"/{noun}/<i>", f"/{noun}/{known}")
        return found

    return path_of


def test_what_clients_read_is_there(furnished: Callable[[str, str], str], admin: Person) -> None:
    lacking = {}
    for row in READ:
        version = row.get("version", "2.1")
        path = furnished(row["route"].removeprefix("GET "), version)
        headers = {"OpenStack-API-Version": f"compute {version}"} if path.startswith(C) else {}
        answer = admin("GET", path, headers=headers)
        assert answer.status_code in (200, 300), title(row)
        lacking[title(row)] = missing(answer.json, row)
    assert {row: keys for row, keys in lacking.items() if keys} == {}


def test_what_clients_read_of_what_they_created_is_there(furnished: Callable[[str, str], str], admin: Person) -> None:
    lacking = {}
    for row in WRITTEN:
        route, version = row["route"].removeprefix(f"POST {C}"), row["version"]
        headers = {"OpenStack-API-Version": f"compute {version}"}
        answer = admin("POST", furnished(C + route, version), BODIES[route], headers=headers)
        assert answer.status_code in (200, 201, 202), answer.get_data(as_text=True)
        lacking[title(row)] = missing(answer.json, row)
    assert {row: keys for row, keys in lacking.items() if keys} == {}


@pytest.mark.parametrize("row", IDENTITY, ids=title)
def test_what_clients_read_of_identity_is_there(signed_in: Callable[[str], Asker], row: dict[str, Any]) -> None:
    admin = signed_in("admin")
    method, path = row["route"].split()
    if method == "POST":
        token: Any = admin.ask("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": admin.token}).json
        assert missing(token, row) == []
        return
    projects: Any = admin.ask("GET", "/identity/v3/projects").json
    answer = admin.ask("GET", path.replace("<i>", projects["projects"][0]["id"]))
    assert answer.status_code in (200, 300)
    assert missing(answer.json, row) == []


def test_a_key_that_is_not_there_would_be_missed() -> None:
    row = {"required": ["a.*.b.c", "d"], "shown": ["a.*.x.y"]}
    assert missing({"a": [{"b": {"c": 1}, "x.y": 2}], "d": None}, row) == []
    assert missing({"a": [{"b": {"c": 1}, "x": 2}, {"b": {}, "x.y": 1}]}, row) == ["a.*.b.c", "d", "a.*.x.y"]
    assert missing({"a": [], "d": 1}, row) == ["a.*.b.c", "a.*.x.y"]
