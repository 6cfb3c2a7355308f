"""The Compute API of a top cell: its servers are in a cell two levels below."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from flask import Flask
from sqlalchemy import text
from werkzeug.test import TestResponse

from api.compute import metrics
from climate.cloud.bundled import BundledCloud
from climate.compute import Compute
from climate.compute.cells.state import state
from climate.compute.nodes import services
from climate.compute.store.cells import changes as cell_changes
from climate.compute.store.cells import servers
from climate.context import Climate
from climate.settings import Settings
from tests.api.compute.api_clients import Person, done, message
from tests.api.reservation.api_clients import Deployment, Doorkeeper
from tests.compute.cells.server_tree import LEAF_PATH, ServerTree, server_tree
from tests.compute.cells.tree import CellDatabases
from tests.databases import unsafe
from tests.flask_apps import app_of
from tests.installed_plugins import installed_plugins

SERVERS = "/compute/v2.1/servers"


@dataclass
class Top:
    """The API of the top cell, and all cells."""

    app: Flask
    cells: ServerTree

    def booted(self, person: Person, **changes: Any) -> str:
        """A server that runs; its id."""
        server_id = person.booted(**changes)
        self.cells.settle()
        assert person.status(server_id) == "ACTIVE"
        return server_id


@pytest.fixture(scope="module")
def standing(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Top]:
    databases, home = CellDatabases(lambda: unsafe(make_database(cloud_template))), tmp_path_factory.mktemp("cells")
    with server_tree(databases, home, scheduler_retries=0, call_timeout=20.0) as cells:
        for name in cells.tree.places:
            services.furnish(cells.tree[name])
        yield Top(_app(cells, cells.top), cells)


def _app(cells: ServerTree, compute: Any) -> Flask:
    home = cells.top.home
    climate = Climate(cells.top.engine, BundledCloud(compute), installed_plugins(), Settings(home=home))
    return app_of(
        cast("Any", Deployment(Settings(home=home, public_url="http://here"), climate, Doorkeeper(), compute))
    )


@pytest.fixture
def top(standing: Top) -> Top:
    """One tree for all tests here, without servers, of which the top knows what the cells have."""
    standing.cells.clear()
    for name in ("leaf", "right"):
        state.report(standing.cells.tree[name])
        standing.cells.settle()
    return standing


@pytest.fixture
def member(top: Top) -> Person:
    return Person(top.app, "member")


@pytest.fixture
def admin(top: Top) -> Person:
    return Person(top.app, "admin")


def test_a_boot_is_shown_from_the_request_on(top: Top, member: Person, admin: Person) -> None:
    server_id = member.booted(metadata={"a": "b"})
    shown = member.get(f"{SERVERS}/{server_id}")["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"], shown["addresses"]) == ("BUILD", "scheduling", {})
    assert message(member.act(server_id, "os-getConsoleOutput", {}), 409, "conflictingRequest").startswith(
        f"Cell is not known for instance {server_id}"
    )
    top.cells.settle()
    shown = member.get(f"{SERVERS}/{server_id}")["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"], shown["metadata"]) == ("ACTIVE", None, {"a": "b"})
    assert list(shown["addresses"]) == ["private"]
    assert shown["flavor"]["id"] == "1"
    assert "OS-EXT-SRV-ATTR:host" not in shown
    seen = admin.get(f"{SERVERS}/{server_id}")["server"]
    assert seen["OS-EXT-SRV-ATTR:host"] in (LEAF_PATH, "top!right")
    assert seen["OS-EXT-SRV-ATTR:hypervisor_hostname"].startswith(seen["OS-EXT-SRV-ATTR:host"] + "@")
    names = ("n1", "n2", "r1", "compute-1")
    assert not [name for name in names if f'"{name}"' in admin("GET", f"{SERVERS}/{server_id}").text]
    assert [server["id"] for server in member.get(SERVERS)["servers"]] == [server_id]
    assert [server["status"] for server in member.get(f"{SERVERS}/detail?status=ACTIVE")["servers"]] == ["ACTIVE"]
    assert member.get(f"{SERVERS}/detail?status=SHUTOFF")["servers"] == []


def test_a_server_is_another_projects_to_strangers(top: Top, member: Person) -> None:
    server_id, stranger = top.booted(member), Person(top.app, "stranger")
    assert stranger.get(SERVERS)["servers"] == []
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/metadata"), ("GET", "/ips"), ("GET", "/os-interface")):
        message(stranger(method, f"{SERVERS}/{server_id}{path}"), 404, "itemNotFound")
    for action in ("os-stop", "lock", "os-getConsoleOutput", "shelve", "confirmResize"):
        message(stranger.act(server_id, action), 404, "itemNotFound")
    top.cells.settle()
    assert member.status(server_id) == "ACTIVE"


@pytest.mark.slow
def test_actions_act_in_the_cell(top: Top, member: Person, admin: Person) -> None:
    server_id = top.booted(member)
    steps: list[tuple[str, Any, str]] = [
        ("os-stop", None, "SHUTOFF"),
        ("os-start", None, "ACTIVE"),
        ("reboot", {"type": "SOFT"}, "ACTIVE"),
        ("pause", None, "PAUSED"),
        ("unpause", None, "ACTIVE"),
        ("suspend", None, "SUSPENDED"),
        ("resume", None, "ACTIVE"),
        ("lock", None, "ACTIVE"),
        ("unlock", None, "ACTIVE"),
        ("shelve", None, "SHELVED_OFFLOADED"),
        ("unshelve", None, "ACTIVE"),
        ("resize", {"flavorRef": "42"}, "VERIFY_RESIZE"),
        ("revertResize", None, "ACTIVE"),
        ("rebuild", {"imageRef": services.IMAGE_ID}, "ACTIVE"),
    ]
    for action, details, status in steps:
        assert member.act(server_id, action, details).status_code == 202, action
        top.cells.settle()
        assert member.status(server_id) == status, action
    assert admin.act(server_id, "os-resetState", {"state": "error"}).status_code == 202
    top.cells.settle()
    assert member.status(server_id) == "ERROR"
    done = member.get(f"{SERVERS}/{server_id}/os-instance-actions")["instanceActions"]
    assert [action["action"] for action in reversed(done)][:3] == ["create", "stop", "start"]
    assert {action["message"] for action in done} == {None}
    assert member("DELETE", f"{SERVERS}/{server_id}").status_code == 204
    top.cells.settle()
    message(member("GET", f"{SERVERS}/{server_id}"), 404, "itemNotFound")


def test_rebuild_shows_the_new_key_pair_and_user_data_at_once(top: Top, member: Person) -> None:
    done(member("POST", "/compute/v2.1/os-keypairs", {"keypair": {"name": "laptop"}}))
    server_id = top.booted(member)

    def rebuilt(**values: Any) -> TestResponse:
        body = {"rebuild": {"imageRef": services.IMAGE_ID, **values}}
        headers = {"OpenStack-API-Version": "compute 2.57"}
        return member("POST", f"{SERVERS}/{server_id}/action", body, headers=headers)

    shown = done(rebuilt(key_name="laptop", user_data="ZWNobw=="), 202)["server"]
    assert (shown["key_name"], shown["user_data"], shown["status"]) == ("laptop", "ZWNobw==", "REBUILD")
    top.cells.settle()
    assert member.get(f"{SERVERS}/{server_id}")["server"]["key_name"] == "laptop"
    assert "Invalid key_name" in message(rebuilt(key_name="none"), 400, "badRequest")
    assert "public_key cannot be set" in message(rebuilt(public_key="ssh-ed25519 AAAA"), 400, "badRequest")


@pytest.mark.slow
def test_words_metadata_and_interfaces(top: Top, member: Person) -> None:
    server_id = top.booted(member)
    path = f"{SERVERS}/{server_id}"
    assert done(member("PUT", path, {"server": {"name": "other"}}))["server"]["name"] == "other"
    assert done(member("POST", f"{path}/metadata", {"metadata": {"k": "v"}})) == {"metadata": {"k": "v"}}
    assert member.get(f"{path}/metadata") == {"metadata": {"k": "v"}}
    top.cells.settle()
    assert member.get(path)["server"]["name"] == "other"
    with top.cells.running():
        ports = member.get(f"{path}/os-interface")["interfaceAttachments"]
        assert [port["fixed_ips"][0]["ip_address"] for port in ports] == [
            member.get(f"{path}/ips")["addresses"]["private"][0]["addr"]
        ]
        assert "is running" in done(member.act(server_id, "os-getConsoleOutput", {"length": 5}))["output"]
        image = member.act(server_id, "createImage", {"name": "snap"})
        assert image.status_code == 202


@pytest.mark.slow
def test_a_cell_that_does_not_answer_is_a_gateway_timeout(top: Top, member: Person) -> None:
    server_id = top.booted(member)
    hurried = replace(top.cells.top, cells=replace(top.cells.top.cells, call_timeout=0.05))
    asking = Person(_app(top.cells, hurried), "member")
    answer = asking.act(server_id, "os-getConsoleOutput", {})
    assert answer.status_code == 504
    assert "Timeout waiting for response from cell" in answer.text
    top.cells.settle()


@pytest.mark.slow
def test_a_build_that_no_cell_takes_is_an_error_with_a_fault(top: Top, member: Person) -> None:
    server_id = member.booted(flavorRef="5")
    top.cells.settle()
    shown = member.get(f"{SERVERS}/{server_id}")["server"]
    assert shown["status"] == "ERROR"
    assert shown["fault"]["message"]
    assert member("DELETE", f"{SERVERS}/{server_id}").status_code == 204
    top.cells.settle()
    message(member("GET", f"{SERVERS}/{server_id}"), 404, "itemNotFound")


@pytest.mark.slow
def test_the_quota_of_the_top_counts(top: Top, member: Person, admin: Person) -> None:
    top.booted(member)
    assert member.get("/compute/v2.1/limits")["limits"]["absolute"]["totalInstancesUsed"] == 1
    done(admin("PUT", "/compute/v2.1/os-quota-sets/project", {"quota_set": {"instances": 1}}))
    assert "already used 1 of 1 instances" in message(member.boot(), 403, "forbidden")
    assert top.cells.tree.places["top"].count("compute_cell_servers") == 1


@pytest.mark.slow
def test_pages_of_a_list(top: Top, member: Person) -> None:
    for name in ("a", "b", "c"):
        top.booted(member, name=name)
    found, path = [], f"{SERVERS}?limit=2&sort_key=display_name&sort_dir=asc"
    while path:
        page = member.get(path.removeprefix("http://here"))
        found += [server["name"] for server in page["servers"]]
        path = next((link["href"] for link in page.get("servers_links", ())), "")
    assert found == ["a", "b", "c"]
    message(member("GET", f"{SERVERS}?marker=00000000-0000-0000-0000-000000000000"), 400, "badRequest")


def test_nothing_of_the_cells_is_in_the_top_but_what_it_may_see(top: Top, member: Person) -> None:
    top.booted(member, user_data="c2VjcmV0")
    with top.cells.top.engine.connect() as conn:
        rows = conn.execute(text("SELECT s::text FROM compute_cell_servers s")).scalars().all()
    assert rows
    assert not [word for word in ("c2VjcmV0", "compute-1", "worker") if word in str(rows)]


@pytest.mark.slow
def test_figures_of_the_top_and_of_a_cell(top: Top, member: Person) -> None:
    server_id = top.booted(member)
    with top.cells.top.engine.connect() as conn:
        cell = servers.cells_of(conn, [server_id])[server_id]
    found = _figures(top.cells.top)
    assert found["climate_cell_servers", cell, "ACTIVE"] == 1
    assert 0 <= found["climate_cell_report_age_seconds", cell] < 600
    leaf = top.cells.leaf.compute
    with leaf.engine.begin() as conn:
        cell_changes.note(conn, [server_id])
    found = _figures(leaf)
    assert found["climate_cell_changes_waiting",] == 1
    assert found["climate_cell_changes_oldest_seconds",] >= 0
    top.cells.settle()


def _figures(compute: Compute) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in metrics.collect(compute)
        for sample in metric.samples
    }


NEW = {"OpenStack-API-Version": "compute 2.79"}


@pytest.mark.slow
def test_services_and_nodes_of_all_cells_are_listed(top: Top, member: Person, admin: Person) -> None:
    server_id = top.booted(member)
    with top.cells.running():
        services_there = admin.get("/compute/v2.1/os-services")
        nodes = done(admin("GET", "/compute/v2.1/os-hypervisors?with_servers=true", headers=NEW))
        sums = admin.get("/compute/v2.1/os-hypervisors/statistics")["hypervisor_statistics"]
        hosts = admin.get("/compute/v2.1/os-hosts")["hosts"]
    assert {one["host"].partition("@")[0] for one in services_there["services"]} == {"top!right", LEAF_PATH}
    assert {one["state"] for one in services_there["services"]} == {"up"}
    assert {one["hypervisor_hostname"] for one in nodes["hypervisors"]} == {
        "top!right@r1",
        f"{LEAF_PATH}@n1",
        f"{LEAF_PATH}@n2",
    }
    assert {host["host_name"] for host in hosts} == {one["host"] for one in services_there["services"]}
    assert (sums["count"], sums["running_vms"]) == (3, 1)
    (with_server,) = [one for one in nodes["hypervisors"] if one["servers"]]
    assert with_server["servers"][0]["uuid"] == server_id
    shown = admin.get(f"{SERVERS}/{server_id}")["server"]["OS-EXT-SRV-ATTR:host"]
    assert with_server["hypervisor_hostname"].startswith(f"{shown}@")
    for answer in (services_there, nodes):
        assert "unreachable_cells" not in answer


@pytest.mark.slow
def test_node_of_a_cell_is_shown_and_changed_nowhere_but_there(top: Top, admin: Person) -> None:
    with top.cells.running():
        listed = done(admin("GET", "/compute/v2.1/os-hypervisors/detail", headers=NEW))["hypervisors"]
        shown = done(admin("GET", f"/compute/v2.1/os-hypervisors/{listed[0]['id']}", headers=NEW))["hypervisor"]
    assert shown == listed[0]
    assert shown["memory_mb"] > 0
    service_id = shown["service"]["id"]
    path = f"/compute/v2.1/os-services/{service_id}"
    refused = admin("PUT", path, {"status": "disabled"}, headers=NEW)
    assert "change it there" in message(refused, 400, "badRequest")
    message(admin("DELETE", path, headers=NEW), 400, "badRequest")
    old = {"host": shown["service"]["host"], "binary": "nova-compute"}
    message(admin("PUT", "/compute/v2.1/os-services/disable", old), 400, "badRequest")
    message(admin("PUT", f"/compute/v2.1/os-hosts/{old['host']}", {"status": "disable"}), 400, "badRequest")


@pytest.mark.slow
def test_cells_that_do_not_answer_are_named_in_lists(top: Top, admin: Person) -> None:
    deaf = _app(top.cells, replace(top.cells.top, cells=replace(top.cells.top.cells, call_timeout=0.05)))
    stranger = Person(deaf, "admin")
    for path in ("os-services", "os-hypervisors", "os-hypervisors/detail", "os-hypervisors/statistics", "os-hosts"):
        told = stranger.get(f"/compute/v2.1/{path}")["unreachable_cells"]
        assert told == [
            {"cell": "top!right", "reason": "no answer in time"},
            {"cell": LEAF_PATH, "reason": "no answer in time"},
        ]
    message(stranger("GET", f"/compute/v2.1/os-hypervisors/{LEAF_PATH}@7"), 503, "serviceUnavailable")
    message(stranger("GET", "/compute/v2.1/os-hypervisors/7"), 404, "itemNotFound")
    top.cells.settle()


def test_services_of_all_cells_are_for_administrators(top: Top, member: Person) -> None:
    for path in ("os-services", "os-hypervisors", "os-hosts"):
        message(member("GET", f"/compute/v2.1/{path}"), 403, "forbidden")
