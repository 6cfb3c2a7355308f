"""Servers over HTTP: what is asked, shown and refused."""

from uuid import uuid4

import pytest

from climate.compute.nodes.services import IMAGE_ID
from tests.api.compute.api_clients import Person, World, done, message, server

SERVERS = "/compute/v2.1/servers"


def test_a_server_from_asking_to_gone(there: World, member: Person) -> None:
    made = done(member.boot(metadata={"a": "b"}), 202)["server"]
    assert made.keys() == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
    assert done(member.boot(adminPass="chosen", tags=[]), 202)["server"]["adminPass"] == "chosen" != made["adminPass"]
    assert member.status(made["id"]) == "BUILD"
    there.settle()
    shown = member.get(f"{SERVERS}/{made['id']}")["server"]
    assert (shown["status"], shown["OS-EXT-STS:vm_state"], shown["OS-EXT-STS:task_state"]) == ("ACTIVE", "active", None)
    assert shown["image"]["id"] == IMAGE_ID
    assert shown["addresses"]["private"][0]["addr"] == "10.10.0.2"
    assert shown["metadata"] == {"a": "b"}
    assert shown["flavor"]["id"] == "1"
    assert done(member("DELETE", f"{SERVERS}/{made['id']}"), 204) is None
    assert done(member("DELETE", f"{SERVERS}/{made['id']}"), 204) is None
    there.settle()
    assert message(member("GET", f"{SERVERS}/{made['id']}"), 404, "itemNotFound")
    assert there.here.drift() == []


def test_microversions_change_the_shape(there: World, admin: Person, member: Person) -> None:
    server_id = admin.booted()
    path = f"{SERVERS}/{server_id}"
    old, new = admin.get(path)["server"], admin.get(path, "2.79")["server"]
    assert "original_name" not in old["flavor"]
    assert new["flavor"]["original_name"] == "m1.tiny"
    assert new["flavor"]["swap"] == 0
    assert "OS-EXT-SRV-ATTR:reservation_id" not in old
    assert new["OS-EXT-SRV-ATTR:reservation_id"].startswith("r-")
    assert {"locked", "host_status", "description", "tags"} <= new.keys() - old.keys()
    own = member.get(f"{SERVERS}/{member.booted()}", "2.79")["server"]
    assert [key for key in own if key.startswith("OS-EXT-SRV-ATTR")] == []
    assert member.get("/compute/v2.1/flavors/1")["flavor"]["swap"] == ""
    assert member.get("/compute/v2.1/flavors/1", "2.75")["flavor"]["swap"] == 0


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("OpenStack-API-Version", "compute 2.80", 406),
        ("X-OpenStack-Nova-API-Version", "2.0", 406),
        ("X-OpenStack-Nova-API-Version", "two", 400),
        ("OpenStack-API-Version", "compute latest", 200),
        ("OpenStack-API-Version", "volume 3.99", 200),
    ],
)
def test_versions_that_are_not_served(member: Person, header: str, value: str, status: int) -> None:
    answer = member("GET", SERVERS, headers={header: value})
    assert answer.status_code == status
    if status == 406:
        assert answer.json["computeFault"]["code"] == 406  # type: ignore[index]
    if status == 200:
        assert answer.headers["OpenStack-API-Version"] in ("compute 2.79", "compute 2.1")


def test_hints_may_stand_where_any_client_puts_them(there: World, member: Person) -> None:
    wrong = {"reserved": "maybe"}
    for body in (
        {"server": server(), "OS-SCH-HNT:scheduler_hints": wrong},
        {"server": server(), "os:scheduler_hints": wrong},
        {"server": server(scheduler_hints=wrong)},
        {"server": server(**{"os:scheduler_hints": wrong})},
    ):
        assert "reserved" in message(member("POST", SERVERS, body), 400, "badRequest")


def test_networks_are_asked_for_from_2_37_on(member: Person) -> None:
    body = {"server": server(networks=...)}
    later = {"OpenStack-API-Version": "compute 2.37"}
    assert member("POST", SERVERS, body, headers=later).status_code == 400
    assert member("POST", SERVERS, body).status_code == 202


def test_actions(there: World, member: Person) -> None:
    server_id = member.booted()
    assert message(member.act(server_id, "os-stop"), 409, "conflictingRequest")
    there.settle()
    for action, details, status in (
        ("os-stop", None, "SHUTOFF"),
        ("os-start", None, "ACTIVE"),
        ("suspend", None, "SUSPENDED"),
        ("resume", None, "ACTIVE"),
        ("reboot", {"type": "SOFT"}, "ACTIVE"),
    ):
        assert member.act(server_id, action, details).status_code == 202
        there.settle()
        assert member.status(server_id) == status
    assert message(member.act(server_id, "os-start"), 409, "conflictingRequest")
    assert "known are" in message(member.act(server_id, "fly"), 400, "badRequest")
    assert message(member.act(server_id, "reboot", {"type": "GENTLE"}), 400, "badRequest")
    assert message(member("POST", f"{SERVERS}/{server_id}/action", {}), 400, "badRequest")
    assert message(member.act(str(uuid4()), "os-stop"), 404, "itemNotFound")
    assert message(member.act("nobody", "os-stop"), 404, "itemNotFound")
    told = member.get(f"{SERVERS}/{server_id}/os-instance-actions")["instanceActions"]
    assert [note["action"] for note in told] == ["reboot", "resume", "suspend", "start", "stop", "create"]
    console = done(member.act(server_id, "os-getConsoleOutput", {"length": 5}))
    assert "s1 is running" in console["output"]


def test_an_image_of_a_server(there: World, member: Person, stranger: Person) -> None:
    server_id = member.booted()
    there.settle()
    answer = member.act(server_id, "createImage", {"name": "copy"})
    assert answer.status_code == 202
    image_id = answer.headers["Location"].rpartition("/")[2]
    there.settle()
    later = member(
        "POST",
        f"{SERVERS}/{server_id}/action",
        {"createImage": {"name": "copy"}},
        headers={"OpenStack-API-Version": "compute 2.45"},
    )
    assert done(later, 202).keys() == {"image_id"}
    image = member.get(f"/image/v2/images/{image_id}")
    assert (image["name"], image["status"], image["instance_uuid"]) == ("copy", "active", server_id)
    assert image["size"] > 0
    assert stranger("GET", f"/image/v2/images/{image_id}").status_code == 404
    assert member("GET", f"/image/v2/images/{image_id}/file").data == b"s1\n"
    assert message(member.act(server_id, "createImage", {"name": ""}), 400, "badRequest")


def test_other_projects_servers_are_not_there(there: World, member: Person, stranger: Person, admin: Person) -> None:
    server_id = member.booted()
    there.settle()
    for method, path, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("PUT", "", {"server": {"name": "mine"}}),
        ("POST", "/action", {"os-stop": None}),
        ("POST", "/action", {"os-getConsoleOutput": {}}),
        ("POST", "/action", {"createImage": {"name": "x"}}),
        ("GET", "/metadata", None),
        ("POST", "/metadata", {"metadata": {"a": "b"}}),
        ("GET", "/os-instance-actions", None),
    ):
        assert message(stranger(method, f"{SERVERS}/{server_id}{path}", body), 404, "itemNotFound")
    assert stranger.get(SERVERS)["servers"] == []
    assert message(stranger("GET", f"{SERVERS}?all_tenants=1"), 403, "forbidden")
    assert admin.get(SERVERS)["servers"] == []
    assert [found["id"] for found in admin.get(f"{SERVERS}?all_tenants=True")["servers"]] == [server_id]
    assert admin.status(server_id) == "ACTIVE"


def test_readers_only_look(there: World, member: Person, reader: Person) -> None:
    server_id = member.booted()
    assert reader.status(server_id) == "BUILD"
    assert message(reader.boot(), 403, "forbidden")
    assert message(reader("DELETE", f"{SERVERS}/{server_id}"), 403, "forbidden")
    assert message(reader.act(server_id, "os-stop"), 403, "forbidden")


def test_lists_are_filtered_and_paged(there: World, member: Person, admin: Person) -> None:
    ids = [member.booted(name=f"web-{number}") for number in range(3)] + [member.booted(name="db")]
    there.settle()
    assert member.act(ids[3], "os-stop").status_code == 202
    there.settle()

    def found(query: str, who: Person = member) -> list[str]:
        return [str(one["name"]) for one in who.get(f"{SERVERS}?{query}")["servers"]]

    assert found("") == ["db", "web-2", "web-1", "web-0"]
    assert found("name=web") == ["web-2", "web-1", "web-0"]
    assert found("name=^db$") == ["db"]
    assert found("status=SHUTOFF") == ["db"]
    assert found("status=shutoff&deleted=False") == ["db"]
    assert found("status=RESERVED") == []
    assert len(found("all_tenants=1&host=std-1", admin)) == 4
    assert len(found("all_tenants=1&host=gpu-1", admin)) == 0
    first = member.get(f"{SERVERS}/detail?limit=3&name=web|db")
    assert len(first["servers"]) == 3
    follow = first["servers_links"][0]["href"].removeprefix("http://here")
    assert [one["id"] for one in member.get(follow)["servers"]] == [ids[0]]
    assert "servers_links" not in member.get(follow)
    assert member.get(f"{SERVERS}/detail?limit=0") == {"servers": []}
    assert found("status=OTHER") == []
    assert (
        member("GET", f"{SERVERS}?status=OTHER", headers={"OpenStack-API-Version": "compute 2.38"}).status_code == 400
    )
    for wrong in (f"marker={uuid4()}", "marker=x", "limit=-1", "limit=abc", "name=%5B", "all_tenants=maybe"):
        assert member("GET", f"{SERVERS}?{wrong}").status_code == 400, wrong


def test_name_and_metadata_change(member: Person) -> None:
    path = f"{SERVERS}/{member.booted()}"
    assert done(member("PUT", path, {"server": {"name": "new"}}))["server"]["name"] == "new"
    assert message(member("PUT", path, {"server": {"name": "a\tb"}}), 400, "badRequest")
    assert done(member("POST", f"{path}/metadata", {"metadata": {"a": "1", "b": "2"}}))["metadata"] == {
        "a": "1",
        "b": "2",
    }
    assert done(member("DELETE", f"{path}/metadata/a"), 204) is None
    assert member.get(f"{path}/metadata") == {"metadata": {"b": "2"}}
    assert message(member("DELETE", f"{path}/metadata/a"), 404, "itemNotFound")


def test_the_quota_names_limit_and_use(member: Person) -> None:
    done(member.boot(flavorRef="42", min_count=5, max_count=5), 202)
    told = message(member.boot(flavorRef="42", min_count=46, max_count=46), 403, "forbidden")
    assert "already used 5 of 50 instances" in told
    limits = member.get("/compute/v2.1/limits")["limits"]["absolute"]
    assert (limits["maxTotalInstances"], limits["totalInstancesUsed"], limits["totalCoresUsed"]) == (50, 5, 5)


def test_the_disk_configuration_is_kept_and_changed(there: World, member: Person) -> None:
    key = "OS-DCF:diskConfig"
    made = done(member.boot(**{key: "AUTO"}), 202)["server"]
    path = f"{SERVERS}/{made['id']}"
    there.settle()
    assert (made[key], member.get(path)["server"][key]) == ("AUTO", "AUTO")
    done(member.act(made["id"], "rebuild", {"imageRef": IMAGE_ID}), 202)
    there.settle()
    assert member.get(path)["server"][key] == "AUTO"
    done(member.act(made["id"], "rebuild", {"imageRef": IMAGE_ID, key: "MANUAL"}), 202)
    there.settle()
    assert member.get(path)["server"][key] == "MANUAL"
    assert done(member("PUT", path, {"server": {key: "AUTO"}}))["server"][key] == "AUTO"
    done(member.act(made["id"], "resize", {"flavorRef": "2", key: "MANUAL"}), 202)
    there.settle()
    assert member.get(path)["server"][key] == "MANUAL"
    assert done(member.boot(), 202)["server"][key] == "MANUAL"


@pytest.mark.parametrize("value", ["auto", "", None, 5])
def test_an_unknown_disk_configuration_is_refused(member: Person, value: object) -> None:
    key = "OS-DCF:diskConfig"
    assert "must be AUTO or MANUAL" in message(member.boot(**{key: value}), 400, "badRequest")
