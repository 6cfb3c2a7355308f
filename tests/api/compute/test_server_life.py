"""The life of a server over HTTP: resized, rebuilt, shelved, locked, and what is told of it."""

from typing import Any

import pytest
from sqlalchemy import event
from werkzeug.test import TestResponse

from climate.compute.errors import VirtError
from climate.compute.metadata import config_drives
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.virt import Guest
from tests.api.compute.api_clients import Person, World, done, hours_away, message

SERVERS = "/compute/v2.1/servers"
NO_ID = "00000000-0000-4000-8000-000000000000"


def acted(there: World, who: Person, server_id: str, action: str, details: Any = None, status: int = 202) -> Any:
    answer = done(who.act(server_id, action, details), status)
    there.settle()
    return answer


def test_resized_confirmed_and_taken_back(there: World, member: Person) -> None:
    server_id = member.booted(flavorRef="42")
    there.settle()
    done(member.act(server_id, "resize", {"flavorRef": "1"}), 202)
    assert member.status(server_id) == "RESIZE"
    there.settle()
    assert member.status(server_id) == "VERIFY_RESIZE"
    acted(there, member, server_id, "confirmResize", status=204)
    shown = member.get(f"{SERVERS}/{server_id}")["server"]
    assert (shown["status"], shown["flavor"]["id"]) == ("ACTIVE", "1")
    acted(there, member, server_id, "resize", {"flavorRef": "42"})
    acted(there, member, server_id, "revertResize")
    shown = member.get(f"{SERVERS}/{server_id}")["server"]
    assert (shown["status"], shown["flavor"]["id"]) == ("ACTIVE", "1")
    assert message(member.act(server_id, "confirmResize"), 409, "conflictingRequest")
    assert "No valid host" in message(member.act(server_id, "resize", {"flavorRef": "5"}), 409, "conflictingRequest")
    assert message(member.act(server_id, "resize", {"flavorRef": "1"}), 400, "badRequest")
    assert message(member.act(server_id, "resize", {"flavorRef": "none"}), 400, "badRequest")
    assert message(member.act(server_id, "resize"), 400, "badRequest")
    assert there.here.drift() == []


def test_rebuilt_from_an_image_with_another_name(there: World, member: Person) -> None:
    server_id = member.booted(metadata={"a": "b"})
    there.settle()
    node = there.here.look(server_id).node
    there.here.driver.calls.clear()
    answer = done(member.act(server_id, "rebuild", {"imageRef": IMAGE_ID, "name": "anew", "metadata": {}}), 202)
    assert (answer["server"]["status"], answer["server"]["name"]) == ("REBUILD", "anew")
    assert answer["server"]["adminPass"]
    there.settle()
    shown = member.get(f"{SERVERS}/{server_id}")["server"]
    assert (shown["status"], shown["name"], shown["metadata"]) == ("ACTIVE", "anew", {})
    assert [verb for verb, _ in there.here.driver.calls] == ["delete", "run"]
    assert there.here.look(server_id).node == node
    acted(there, member, server_id, "os-stop")
    acted(there, member, server_id, "rebuild", {"imageRef": IMAGE_ID})
    assert member.status(server_id) == "SHUTOFF"
    for wrong in ({}, {"imageRef": "demo"}, {"imageRef": IMAGE_ID, "status": "x"}, {"imageRef": IMAGE_ID, "name": ""}):
        assert message(member.act(server_id, "rebuild", wrong), 400, "badRequest")


def test_rescued_with_an_image_and_taken_back(there: World, member: Person) -> None:
    server_id = member.booted()
    there.settle()
    there.here.driver.calls.clear()
    assert done(member.act(server_id, "rescue", {"adminPass": "hidden"}), 200) == {"adminPass": "hidden"}
    there.settle()
    shown = member.get(f"{SERVERS}/{server_id}")["server"]
    assert [shown[key] for key in ("status", "OS-EXT-STS:vm_state", "OS-EXT-STS:power_state")] == [
        "RESCUE",
        "rescued",
        1,
    ]
    assert member.get(f"{SERVERS}?status=RESCUE")["servers"][0]["id"] == server_id
    for action, details in RESCUED_REFUSES.items():
        assert "vm_state rescued" in message(member.act(server_id, action, details), 409, "conflictingRequest"), action
    acted(there, member, server_id, "unrescue")
    assert member.status(server_id) == "ACTIVE"
    assert [verb for verb, _ in there.here.driver.calls] == ["stop", "rescue", "stop", "run"]
    acted(there, member, server_id, "os-stop")
    acted(there, member, server_id, "rescue", {"rescue_image_ref": IMAGE_ID}, 200)
    there.settle()
    assert member.status(server_id) == "RESCUE"
    assert done(member("DELETE", f"{SERVERS}/{server_id}"), 204) is None


RESCUED_REFUSES: dict[str, Any] = {
    "rescue": None,
    "reboot": {"type": "HARD"},
    "rebuild": {"imageRef": IMAGE_ID},
    "os-stop": None,
    "pause": None,
    "shelve": None,
    "createImage": {"name": "copy"},
    "addFixedIp": {"networkId": NO_ID},
}


@pytest.mark.parametrize("action", ["injectNetworkInfo", "resetNetwork"])
def test_administrators_have_interfaces_plugged_in_again(
    there: World, member: Person, admin: Person, action: str
) -> None:
    server_id = member.booted()
    there.settle()
    there.here.driver.calls.clear()
    acted(there, admin, server_id, action)
    assert there.here.driver.calls == [("rewire", server_id)]
    assert member.status(server_id) == "ACTIVE"
    assert message(admin.act(NO_ID, action), 404, "itemNotFound")


def test_what_cannot_be_rescued(there: World, member: Person) -> None:
    server_id = member.booted()
    there.settle()
    assert "vm_state active" in message(member.act(server_id, "unrescue"), 409, "conflictingRequest")
    for wrong in ({"rescue_image_ref": "demo"}, {"rescue_image_ref": NO_ID}, {"image": IMAGE_ID}, "now"):
        assert message(member.act(server_id, "rescue", wrong), 400, "badRequest")
    acted(there, member, server_id, "pause")
    assert "vm_state paused" in message(member.act(server_id, "rescue"), 409, "conflictingRequest")
    assert message(member.act(NO_ID, "rescue"), 404, "itemNotFound")


def rebuilt(who: Person, server_id: str, version: str, **values: Any) -> TestResponse:
    headers = {"OpenStack-API-Version": f"compute {version}"}
    body = {"rebuild": {"imageRef": IMAGE_ID, **values}}
    return who("POST", f"{SERVERS}/{server_id}/action", body, headers=headers)


def test_a_rebuild_changes_the_key_pair_and_the_user_data(there: World, member: Person, admin: Person) -> None:
    done(member("POST", "/compute/v2.1/os-keypairs", {"keypair": {"name": "k"}}))
    server_id = member.booted()
    there.settle()
    answer = done(rebuilt(member, server_id, "2.57", key_name="k", user_data="ZWNobw=="), 202)["server"]
    assert (answer["key_name"], answer["user_data"]) == ("k", "ZWNobw==")
    there.settle()
    files = config_drives.of_server(there.here.compute, there.here.look(server_id))
    assert files[config_drives.USER_DATA] == b"echo"
    assert b'"k": "ssh-' in files[config_drives.META_DATA]
    kept = done(rebuilt(admin, server_id, "2.75"), 202)["server"]
    assert (kept["key_name"], kept["user_data"]) == ("k", "ZWNobw==")
    assert "OS-EXT-SRV-ATTR:user_data" not in kept
    there.settle()
    gone = done(rebuilt(member, server_id, "2.57", key_name=None, user_data=None), 202)["server"]
    assert (gone["key_name"], gone["user_data"]) == (None, None)


@pytest.mark.parametrize(
    ("version", "values", "words"),
    [
        ("2.53", {"key_name": "k"}, "key_name cannot be set"),
        ("2.54", {"user_data": "eA=="}, "user_data cannot be set"),
        ("2.54", {"key_name": "none"}, "Invalid key_name provided: 'none'"),
        ("2.57", {"user_data": "no base"}, "rebuild.user_data must be Base64"),
    ],
)
def test_a_rebuild_with_wrong_boot_data_changes_nothing(
    there: World, member: Person, version: str, values: dict[str, Any], words: str
) -> None:
    server_id = member.booted()
    there.settle()
    assert words in message(rebuilt(member, server_id, version, **values), 400, "badRequest")
    assert member.status(server_id) == "ACTIVE"


def test_only_the_user_of_a_server_changes_its_key_pair(there: World, member: Person, admin: Person) -> None:
    done(admin("POST", "/compute/v2.1/os-keypairs", {"keypair": {"name": "own"}}))
    server_id = member.booted()
    there.settle()
    told = message(rebuilt(admin, server_id, "2.54", key_name="own"), 403, "forbidden")
    assert "Only the user who created the server" in told


def test_shelved_and_unshelved(there: World, member: Person, admin: Person) -> None:
    server_id = member.booted()
    there.settle()
    assert message(admin.act(server_id, "shelveOffload"), 409, "conflictingRequest")
    acted(there, member, server_id, "shelve")
    assert member.status(server_id) == "SHELVED_OFFLOADED"
    acted(there, admin, server_id, "shelveOffload")
    images = member.get("/image/v2/images?name=s1-shelved")["images"]
    assert [image["instance_uuid"] for image in images] == [server_id]
    assert images[0]["base_image_ref"] == IMAGE_ID
    for who in (member, admin):
        told = message(who("DELETE", f"/image/v2/images/{images[0]['id']}"), 409, "error")
        assert f"instance {server_id} is shelved in it" in told
    assert message(member.act(server_id, "unshelve", {"availability_zone": "mars"}), 400, "badRequest")
    assert message(member.act(server_id, "unshelve", {"host": "x"}), 400, "badRequest")
    acted(there, member, server_id, "unshelve")
    assert member.status(server_id) == "ACTIVE"


def test_paused_suspended_and_rebooted_hard(there: World, member: Person) -> None:
    server_id = member.booted()
    there.settle()
    for action, details, status in (
        ("pause", None, "PAUSED"),
        ("unpause", None, "ACTIVE"),
        ("suspend", None, "SUSPENDED"),
        ("reboot", {"type": "HARD"}, "ACTIVE"),
    ):
        acted(there, member, server_id, action, details)
        assert member.status(server_id) == status


def test_a_lock_keeps_everybody_out_but_administrators(there: World, member: Person, admin: Person) -> None:
    server_id = member.booted()
    there.settle()
    path = f"{SERVERS}/{server_id}"
    acted(there, member, server_id, "lock", {"locked_reason": "do not touch"})
    shown = member.get(path, "2.79")["server"]
    assert (shown["locked"], shown["locked_reason"]) == (True, "do not touch")
    for refused in (
        member.act(server_id, "os-stop"),
        member.act(server_id, "shelve"),
        member.act(server_id, "resize", {"flavorRef": "42"}),
        member.act(server_id, "rebuild", {"imageRef": IMAGE_ID}),
        member("DELETE", path),
        member("POST", f"{path}/metadata", {"metadata": {"a": "b"}}),
    ):
        assert "is locked" in message(refused, 409, "conflictingRequest")
    assert "is locked" in message(member.act(server_id, "forceDelete"), 409, "conflictingRequest")
    acted(there, admin, server_id, "os-stop")
    acted(there, member, server_id, "unlock")
    acted(there, admin, server_id, "lock")
    assert message(member.act(server_id, "unlock"), 403, "forbidden")
    acted(there, admin, server_id, "unlock")
    assert member.get(path, "2.79")["server"]["locked"] is False
    assert message(member.act(server_id, "lock", {"reason": "x"}), 400, "badRequest")
    acted(there, member, server_id, "forceDelete")
    assert message(member("GET", path), 404, "itemNotFound")


def test_a_state_by_decree(there: World, member: Person, admin: Person) -> None:
    server_id = member.booted()
    assert message(member.act(server_id, "os-resetState", {"state": "error"}), 403, "forbidden")
    assert message(admin.act(server_id, "os-resetState", {"state": "mad"}), 400, "badRequest")
    done(admin.act(server_id, "os-resetState", {"state": "error"}), 202)
    assert member.status(server_id) == "ERROR"
    done(admin.act(server_id, "os-resetState", {"state": "active"}), 202)
    there.settle()
    assert member.status(server_id) == "ACTIVE"
    acted(there, member, server_id, "resize", {"flavorRef": "42"})
    done(admin.act(server_id, "os-resetState", {"state": "active"}), 202)
    assert there.here.drift() == []
    acted(there, member, server_id, "shelve")
    assert message(admin.act(server_id, "os-resetState", {"state": "active"}), 409, "conflictingRequest")


def test_what_sleeps_names_its_lease(there: World, member: Person) -> None:
    params = f'{{"start": "{hours_away(24)}", "end": "{hours_away(48)}"}}'
    server_id = member.booted({"reserved": "True", "lease_params": params})
    there.settle()
    lease = member.get("/v1/leases")["leases"][0]["id"]
    for action, details in (("os-start", None), ("shelve", None), ("reboot", {"type": "HARD"}), ("unshelve", None)):
        assert f"lease {lease} starts it at" in message(
            member.act(server_id, action, details), 409, "conflictingRequest"
        )
    path = f"{SERVERS}/{server_id}"
    assert done(member("PUT", path, {"server": {"name": "later"}}))["server"]["name"] == "later"
    assert done(member("PUT", f"{path}/metadata", {"metadata": {"a": "b"}}))["metadata"] == {"a": "b"}
    assert done(member("DELETE", path), 204) is None


def test_single_keys_of_metadata_and_words(member: Person) -> None:
    path = f"{SERVERS}/{member.booted(metadata={'a': '1'}, description='first')}"
    assert done(member("PUT", f"{path}/metadata/b", {"meta": {"b": "2"}})) == {"meta": {"b": "2"}}
    assert member.get(f"{path}/metadata/b") == {"meta": {"b": "2"}}
    assert message(member("PUT", f"{path}/metadata/b", {"meta": {"c": "2"}}), 400, "badRequest")
    assert message(member("GET", f"{path}/metadata/c"), 404, "itemNotFound")
    assert done(member("PUT", f"{path}/metadata", {"metadata": {"z": ""}}))["metadata"] == {"z": ""}
    assert member.get(path, "2.19")["server"]["description"] == "first"
    changed = done(
        member("PUT", path, {"server": {"description": None}}, headers={"OpenStack-API-Version": "compute 2.19"})
    )
    assert changed["server"]["description"] is None
    assert done(member("PUT", path, {"server": {}}))["server"]["metadata"] == {"z": ""}
    for wrong in ({"status": "ACTIVE"}, {"name": ""}, {"description": 7}, {"description": "x" * 256}):
        assert message(member("PUT", path, {"server": wrong}), 400, "badRequest"), wrong


def test_what_was_asked_tells_how_it_went(there: World, member: Person, admin: Person) -> None:
    server_id = member.booted()
    path = f"{SERVERS}/{server_id}/os-instance-actions"
    request_id = member.get(path)["instanceActions"][0]["request_id"]
    event_ = member.get(f"{path}/{request_id}", "2.62")["instanceAction"]["events"][0]
    assert (event_["finish_time"], event_["result"]) == (None, None)
    there.settle()
    shown = member.get(f"{path}/{request_id}", "2.62")["instanceAction"]
    assert (shown["action"], shown["message"], shown["events"][0]["result"]) == ("create", None, "Success")
    assert shown["events"][0]["finish_time"] > shown["start_time"]
    assert "host" not in shown["events"][0]
    assert admin.get(f"{path}/{request_id}", "2.62")["instanceAction"]["events"][0]["host"] == "compute-1"
    assert "events" not in member.get(f"{path}/{request_id}")["instanceAction"]
    assert message(member("GET", f"{path}/req-none"), 404, "itemNotFound")


def test_the_actions_of_a_deleted_server_are_shown_since_2_21(
    there: World, member: Person, admin: Person, stranger: Person
) -> None:
    server_id = member.booted()
    there.settle()
    done(member("DELETE", f"{SERVERS}/{server_id}"), 204)
    there.settle()
    path = f"{SERVERS}/{server_id}/os-instance-actions"
    for person in (member, admin):
        told = person.get(path, "2.21")["instanceActions"]
        assert [one["action"] for one in told] == ["delete", "create"]
        shown = person.get(f"{path}/{told[0]['request_id']}", "2.62")["instanceAction"]
        assert (shown["events"][0]["result"], shown["events"][0]["hostId"]) == ("Success", "")
    assert message(member("GET", path), 404, "itemNotFound")
    for person, target in ((stranger, path), (member, f"{SERVERS}/{NO_ID}/os-instance-actions")):
        headers = {"OpenStack-API-Version": "compute 2.21"}
        assert message(person("GET", target, headers=headers), 404, "itemNotFound")


def test_what_was_asked_by_page_and_by_time_since_2_58(there: World, member: Person) -> None:
    server_id = member.booted()
    there.settle()
    for action in ("pause", "unpause", "pause"):
        acted(there, member, server_id, action)
    path = f"{SERVERS}/{server_id}/os-instance-actions"
    every = member.get(path, "2.79")["instanceActions"]
    assert [one["action"] for one in every] == ["pause", "unpause", "pause", "create"]
    first = member.get(f"{path}?limit=3", "2.58")
    assert first["instanceActions"] == every[:3]
    (link,) = first["links"]
    rest = member.get(link["href"].removeprefix("http://here"), "2.58")
    assert (rest["instanceActions"], "links" in rest) == (every[3:], False)
    assert member.get(f"{path}?limit=1")["instanceActions"] == member.get(path)["instanceActions"]
    moment = every[2]["updated_at"]
    for version, query, found in (
        ("2.58", f"changes-since={moment}", every[:3]),
        ("2.66", f"changes-before={moment}", every[2:]),
        ("2.65", f"changes-before={moment}", every),
        ("2.66", f"changes-since={moment}&changes-before={moment}", every[2:3]),
    ):
        assert member.get(f"{path}?{query}", version)["instanceActions"] == found, query
    for wrong in ("limit=x", "marker=req-none", "changes-since=then", "changes-before=then"):
        headers = {"OpenStack-API-Version": "compute 2.66"}
        assert message(member("GET", f"{path}?{wrong}", headers=headers), 400, "badRequest")


def test_a_console_log_that_cannot_be_read_here_names_no_node(there: World, member: Person) -> None:
    server_id = member.booted()
    there.settle()

    def elsewhere(guest: Guest, lines: int | None) -> str:
        raise VirtError(f"The resource {guest.node} does not exist")

    there.here.driver.console = elsewhere
    told = message(member.act(server_id, "os-getConsoleOutput", {}), 503, "serviceUnavailable")
    assert told == f"The console log of instance {server_id} cannot be read: The resource (its host) does not exist"


def test_there_are_no_consoles(member: Person) -> None:
    server_id = member.booted()
    body = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    told = message(member("POST", f"{SERVERS}/{server_id}/remote-consoles", body), 501, "notImplemented")
    assert "os-getConsoleOutput" in told
    assert message(member.act(server_id, "os-getVNCConsole", {"type": "novnc"}), 501, "notImplemented")


@pytest.fixture
def three(there: World, member: Person) -> list[str]:
    """Three servers of a project: web-0 and web-1, which is shut off, and db, which is shelved."""
    ids = [member.booted(name=name) for name in ("web-0", "web-1", "db")]
    there.settle()
    acted(there, member, ids[1], "os-stop")
    acted(there, member, ids[2], "shelve")
    return ids


FOUND = [
    ("status=ACTIVE&status=SHUTOFF", "web-1 web-0"),
    ("status=shelved_offloaded", "db"),
    ("status=DELETED", ""),
    ("deleted=True", ""),
    ("deleted=False", "db web-1 web-0"),
    ("tags=x", ""),
    ("not-tags=x", "db web-1 web-0"),
    ("vm_state=stopped", "web-1"),
    ("power_state=1", "web-0"),
    ("flavor=1&image=" + IMAGE_ID, "db web-1 web-0"),
    ("flavor=2", ""),
    ("ip=10.10.0.2", "web-0"),
    ("ip=^10%5C.10", "db web-1 web-0"),
    ("host=nobody", "db web-1 web-0"),
    ("changes-since=2020-01-01T00:00:00Z", "db web-1 web-0"),
    ("changes-since=2999-01-01", ""),
    ("changes-before=2020-01-01T00:00:00%2B00:00", ""),
    ("locked=False", "db web-1 web-0"),
    ("locked=1", ""),
    ("availability_zone=nova&status=ACTIVE", "web-0"),
    ("availability_zone=mars", ""),
    ("sort_key=display_name&sort_dir=asc", "db web-0 web-1"),
    ("sort_key=vm_state&sort_key=display_name&sort_dir=desc&sort_dir=asc", "web-1 db web-0"),
    ("sort_dir=asc", "web-0 web-1 db"),
    ("name=web-%5B1-9%5D", "web-1"),
    ("reservation_id=r-nothing", ""),
]


def test_lists_by_all_that_clients_ask_for(three: list[str], member: Person) -> None:
    for query, names in FOUND:
        listed = member.get(f"{SERVERS}?{query}", "2.79")["servers"]
        assert " ".join(one["name"] for one in listed) == names, query


@pytest.mark.parametrize("order", ["sort_key=display_name&sort_dir=asc", "sort_key=vm_state", "sort_key=host", ""])
def test_pages_of_any_order_hold_every_server_once(three: list[str], member: Person, order: str) -> None:
    whole = [one["id"] for one in member.get(f"{SERVERS}?{order}")["servers"]]
    paged: list[str] = []
    path = f"{SERVERS}?limit=1&{order}"
    while path:
        answer = member.get(path)
        paged += [one["id"] for one in answer["servers"]]
        path = answer.get("servers_links", [{"href": ""}])[0]["href"].removeprefix("http://here")
    assert paged == whole
    assert sorted(whole) == sorted(three)


@pytest.mark.parametrize(
    "query",
    [
        "status=nonsense",
        "changes-since=yesterday",
        "sort_key=password",
        "sort_dir=up",
        "sort_key=uuid&sort_dir=asc&sort_dir=desc",
        "name=%28",
        "name=a%7B1,99999%7D",
        "ip=%2A",
        "name=" + "x" * 256,
        "locked=maybe",
        "power_state=on",
        "deleted=perhaps",
    ],
)
def test_queries_that_cannot_be_are_refused(member: Person, query: str) -> None:
    assert message(
        member("GET", f"{SERVERS}?{query}", headers={"OpenStack-API-Version": "compute 2.79"}), 400, "badRequest"
    )


def test_a_list_is_two_statements_however_long_it_is_and_two_more_for_administrators(
    there: World, member: Person, admin: Person
) -> None:
    statements: list[str] = []

    def count(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        statements.append(statement)

    spent = []
    event.listen(there.here.compute.engine, "before_cursor_execute", count)
    for size in (1, 9):
        member.booted(min_count=size, max_count=size)
        statements.clear()
        assert len(member.get(f"{SERVERS}/detail", "2.79")["servers"]) >= size
        spent.append(len(statements))
        statements.clear()
        admin.get(f"{SERVERS}/detail?all_tenants=1", "2.79")
        spent.append(len(statements))
    event.remove(there.here.compute.engine, "before_cursor_execute", count)
    assert spent == [2, 4, 2, 4]


def test_administrators_see_how_the_host_is(there: World, admin: Person) -> None:
    path = f"{SERVERS}/{admin.booted()}"
    assert admin.get(path, "2.16")["server"]["host_status"] == "UP"
    service = admin.get("/compute/v2.1/os-services", "2.53")["services"][0]["id"]
    done(
        admin(
            "PUT",
            f"/compute/v2.1/os-services/{service}",
            {"status": "disabled"},
            headers={"OpenStack-API-Version": "compute 2.53"},
        )
    )
    assert admin.get(path, "2.16")["server"]["host_status"] == "MAINTENANCE"
