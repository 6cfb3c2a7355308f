"""Cells over HTTP: neighbours, names, credentials, and servers that are booted in a cell."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import text

from climate.compute.cells import neighbours
from climate.compute.cells.options import CellOptions
from climate.sealed_secrets import Vault
from climate.settings import Settings
from tests.api.compute.api_clients import Person, World, done, message, world
from tests.api.reservation.api_clients import Deployment, Doorkeeper
from tests.flask_apps import app_of

C = "/compute/v2.1/os-cells"
SECRET, PASSWORD = "a secret of sixteen letters", "broker-password"
LINK = {
    "name": "child1",
    "type": "child",
    "username": "broker",
    "password": PASSWORD,
    "rpc_host": "10.0.0.2",
    "rpc_port": 6379,
    "rpc_virtual_host": "3",
    "secret": SECRET,
}
SHOWN = {"name": "child1", "type": "child", "username": "broker", "rpc_host": "10.0.0.2", "rpc_port": 6379}


@pytest.fixture
def top(cloud_database: str, tmp_path: Path) -> Iterator[World]:
    """The API cell."""
    options = CellOptions(True, "top", "api", {"cap1": ("a", "b")}, vault=Vault.of_this_process())
    with world(cloud_database, tmp_path) as there:
        there.here.compute = replace(there.here.compute, cells=options)
        settings = Settings(home=tmp_path, public_url="http://here")
        deployment = Deployment(settings, there.climate, Doorkeeper(), there.here.compute)
        there.app = app_of(cast("Any", deployment))
        yield there


@pytest.fixture
def admin(top: World) -> Person:
    return Person(top.app, "admin")


def add(admin: Person, **changes: Any) -> Any:
    given = {key: value for key, value in {**LINK, **changes}.items() if value is not ...}
    return admin("POST", C, {"cell": given})


def test_neighbour_is_added_shown_changed_and_deleted(admin: Person) -> None:
    assert done(add(admin))["cell"] == SHOWN
    assert admin.get(C)["cells"] == [SHOWN]
    assert admin.get(f"{C}/child1")["cell"] == SHOWN
    changed = done(admin("PUT", f"{C}/child1", {"cell": {"rpc_port": 7000, "type": "parent"}}))["cell"]
    assert changed == {**SHOWN, "rpc_port": 7000, "type": "parent"}
    assert done(admin("DELETE", f"{C}/child1"), 204) is None
    assert admin.get(C)["cells"] == []


def test_detail_tells_the_state(admin: Person) -> None:
    add(admin)
    (cell,) = admin.get(f"{C}/detail")["cells"]
    assert (cell["capabilities"], cell["state"], cell["age"]) == ({}, "mute", None)
    assert cell["messages"] == {"waiting": 0, "oldest_age": 0}


def test_ce_26_info_of_this_cell(admin: Person) -> None:
    told = admin.get(f"{C}/info")["cell"]
    assert told["capabilities"] == {"cap1": "a;b"}
    assert (told["name"], told["type"], told["rpc_host"], told["rpc_port"]) == ("top", "self", None, 0)


@pytest.mark.parametrize("name", ["", "moo!cow", "moo.cow", "moo@cow", ..., None, 7, "top"])
def test_ce_26_unusable_names_are_refused(admin: Person, name: Any) -> None:
    message(add(admin, name=name), 400, "badRequest")
    assert admin.get(C)["cells"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"type": "invalid"},
        {"type": None},
        {"type": ["child"]},
        {"rpc_port": 0},
        {"rpc_port": 65536},
        {"rpc_port": "x"},
        {"rpc_host": "http://10.0.0.2/"},
        {"rpc_host": "a b"},
        {"rpc_host": 7},
        {"rpc_virtual_host": "/"},
        {"transport_url": "http://10.0.0.2"},
        {"transport_url": "file:///etc/passwd"},
        {"transport_url": "amqp://10.0.0.2"},
        {"transport_url": "redis://:broker-password@10.0.0.2:port/0"},
        {"transport_url": "redis://:broker-password@10.0.0.2:70000/0"},
        {"transport_url": "redis://:broker-password@[::1/0"},
        {"transport_url": "redis://:broker-password@10.0.0.2/zero"},
        {"transport_url": "redis://:broker#password@10.0.0.2/0"},
        {"transport_url": "redis://"},
        {"transport_url": "unix://nowhere:broker-password"},
        {"transport_url": "unix://run/valkey.sock"},
        {"secret": "short"},
        {"password": "x" * 2000},
        {"username": "two\nlines"},
        {"weight_offset": "heavy"},
        {"weight_scale": 1e300},
        {"other": 1},
    ],
)
def test_ce_26_unusable_fields_are_refused(admin: Person, change: Any) -> None:
    said = message(add(admin, **change), 400, "badRequest")
    assert PASSWORD not in said
    assert admin.get(C)["cells"] == []


@pytest.mark.parametrize("body", [{}, {"cell": []}, {"cell": None}, []])
def test_unusable_bodies_are_refused(admin: Person, body: Any) -> None:
    assert admin("POST", C, body).status_code == 400


def test_missing_type_is_a_child(admin: Person) -> None:
    assert done(add(admin, type=...))["cell"]["type"] == "child"


def test_name_that_is_taken_is_a_conflict(admin: Person) -> None:
    add(admin)
    message(add(admin, type="parent"), 409, "conflictingRequest")


def test_parent_that_is_below_a_child_is_refused(top: World, admin: Person) -> None:
    add(admin)
    told = '[{"name": "middle", "children": [{"name": "deep", "children": []}]}]'
    with top.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET children = CAST(:told AS jsonb)"), {"told": told})
    for name in ("middle", "deep"):
        said = message(add(admin, name=name, type="parent"), 400, "badRequest")
        assert "below the child child1" in said
    done(add(admin, name="other", type="parent"))
    assert [cell["name"] for cell in admin.get(C)["cells"]] == ["child1", "other"]


def test_cell_that_builds_wait_for_is_deleted_by_force_only(top: World, admin: Person) -> None:
    add(admin)
    done(Person(top.app, "member").boot(), 202)
    said = message(admin("DELETE", f"{C}/child1"), 409, "conflictingRequest")
    assert "1 build waits for it" in said
    message(admin("DELETE", f"{C}/child1?force=maybe"), 400, "badRequest")
    done(admin("DELETE", f"{C}/child1?force=true"), 204)
    assert admin.get(C)["cells"] == []


def test_cell_cannot_be_renamed(admin: Person) -> None:
    add(admin)
    message(admin("PUT", f"{C}/child1", {"cell": {"name": "other"}}), 400, "badRequest")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_ce_26_unknown_cell_is_not_found(admin: Person, method: str) -> None:
    message(admin(method, f"{C}/nobody", {"cell": {}} if method == "PUT" else None), 404, "itemNotFound")


def test_ce_26_credentials_are_sealed_and_never_reported(
    top: World, admin: Person, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"redis://:{PASSWORD}@10.0.0.2:6379/0"
    said = [done(add(admin, transport_url=url)), done(admin("PUT", f"{C}/child1", {"cell": {"password": PASSWORD}}))]
    said += [admin.get(path) for path in (C, f"{C}/detail", f"{C}/child1")]
    with top.climate.engine.connect() as conn:
        stored = str(conn.execute(text("SELECT to_jsonb(c) FROM compute_cells c")).scalar_one())
    for told in (str(said), stored, caplog.text):
        assert PASSWORD not in told
        assert SECRET not in told
    assert "is_parent" not in str(said)


def test_fields_that_are_not_changed_stay(top: World, admin: Person) -> None:
    add(admin)
    done(admin("PUT", f"{C}/child1", {"cell": {"rpc_port": 7000}}))
    compute = top.here.compute
    with compute.engine.connect() as conn:
        broker = neighbours.with_secrets(compute, conn, "child1")["child1"].broker
    assert (broker.password, broker.secret, broker.port) == (PASSWORD, SECRET, 7000)


def test_capacities(top: World, admin: Person) -> None:
    add(admin)
    assert admin.get(f"{C}/child1/capacities")["cell"] == {"capacities": {}}
    own = admin.get(f"{C}/capacities")["cell"]["capacities"]
    assert own["ram_free"]["total_mb"] == 8192
    message(admin("GET", f"{C}/nobody/capacities"), 404, "itemNotFound")


@pytest.mark.parametrize(
    "body",
    [{"foo": 1}, {"updated_since": "skjdfkjsdkf"}, {"updated_since": 7}, {"deleted": "maybe"}, {"project_id": ""}],
)
def test_ce_26_unusable_sync_is_refused(admin: Person, body: Any) -> None:
    message(admin("POST", f"{C}/sync_instances", body), 400, "badRequest")


def test_sync_goes_to_all_children(top: World, admin: Person) -> None:
    add(admin)
    body = {"project_id": "demo", "updated_since": "2030-01-01T00:00:00Z", "deleted": True}
    done(admin("POST", f"{C}/sync_instances", body), 204)
    assert top.here.count("compute_cell_outbox", "cell = 'child1' AND kind = 'broadcast'") == 1


def test_cells_are_for_administrators(top: World) -> None:
    member = Person(top.app, "member")
    for method, path in (("GET", C), ("POST", C), ("GET", f"{C}/info"), ("DELETE", f"{C}/child1")):
        message(member(method, path, {"cell": LINK} if method == "POST" else None), 403, "forbidden")


def test_server_at_the_api_cell_goes_to_the_scheduler_of_cells(top: World) -> None:
    member = Person(top.app, "member")
    made = done(member.boot(), 202)["server"]["id"]
    assert top.here.count("compute_cell_inbox", f"body LIKE '%{made}%' AND body LIKE '%schedule_run_instance%'") == 1
    assert top.here.count("compute_servers") == 0


def test_hint_that_cannot_be_followed_is_refused_at_the_api_cell(top: World) -> None:
    member = Person(top.app, "member")
    refused = member.boot({"same_host": "c11a7e00-0000-4000-8000-000000000001"})
    message(refused, 400, "badRequest")
    assert top.here.count("compute_cell_inbox") == 0


def test_figures_of_each_cell(top: World, admin: Person) -> None:
    add(admin)
    done(admin("POST", f"{C}/sync_instances", {}), 204)
    told = admin("GET", "/metrics", headers={"Accept": "text/plain"}).get_data(as_text=True)
    assert 'climate_cell_messages{cell="child1"} 1.0' in told
    assert 'climate_cell_failures{cell="child1"} 0.0' in told


def test_figures_tell_the_age_of_the_last_word_and_failures(top: World, admin: Person) -> None:
    add(admin)
    with top.climate.engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET last_seen = now() - interval '70 seconds', failures = 3"))
    told = admin("GET", "/metrics", headers={"Accept": "text/plain"}).get_data(as_text=True)
    heard = re.search(r'^climate_cell_heard_seconds{cell="child1"} ([0-9.]+)$', told, re.MULTILINE)
    assert heard is not None
    assert 70 <= float(heard[1]) < 370
    assert 'climate_cell_failures{cell="child1"} 3.0' in told
    (cell,) = admin.get(f"{C}/detail")["cells"]
    assert cell["state"] == "unreachable"
