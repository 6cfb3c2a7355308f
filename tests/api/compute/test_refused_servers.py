"""Servers that are not made and actions that are not done: each refusal says why, and leaves nothing behind."""

import json
from typing import Any

import pytest

from tests.api.compute.api_clients import Person, World, done, hours_away, message, server, written

C = "/compute/v2.1"
SERVERS = f"{C}/servers"
NOBODY = "6f9d2c7e-0000-4000-8000-00000000abcd"
"""An id that nothing has."""


@pytest.fixture
def member(standing: World) -> Person:
    return Person(standing.app, "member")


LONG = "x" * 10_000

BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"flavorRef": "999"}, 400, "Flavor 999 could not be found"),
    ({"flavorRef": None}, 400, "flavorRef must be the id of a flavor"),
    ({"flavorRef": "secret"}, 400, "Flavor secret could not be found"),
    ({"imageRef": NOBODY}, 400, f"Image {NOBODY} could not be found"),
    ({"imageRef": "demo"}, 400, "imageRef must be a UUID"),
    ({"imageRef": ..., "block_device_mapping_v2": ...}, 400, "imageRef must be a UUID"),
    ({"min_count": 3, "max_count": 2}, 400, "min_count must be <= max_count"),
    ({"min_count": 0}, 400, "min_count must be a whole number from 1"),
    ({"min_count": -1}, 400, "min_count must be a whole number from 1"),
    ({"min_count": 1.5}, 400, "min_count must be a whole number from 1"),
    ({"min_count": "two"}, 400, "min_count must be a whole number from 1"),
    ({"max_count": True}, 400, "max_count must be a whole number from 1"),
    ({"max_count": 2**40}, 400, "max_count must be a whole number from 1"),
    ({"min_count": 10**6, "max_count": 10**6}, 403, "Requested 1000000, 1000000, 512000000, but already used 0 of 50"),
    ({"name": "a\nb"}, 400, "name must be one line"),
    ({"name": "../../etc"}, 400, "name must not contain '../' or '..\\', got '../../etc'"),
    ({"name": "  "}, 400, "name must be a text of 1 to 255"),
    ({"name": ""}, 400, "name must be a text of 1 to 255"),
    ({"name": LONG}, 400, "name must be a text of 1 to 255"),
    ({"name": "a\0b"}, 400, "U+0000"),
    ({"name": "\ud800"}, 400, "surrogate"),
    ({"name": ...}, 400, "name must be a text"),
    ({"name": 7}, 400, "name must be a text"),
    ({"description": LONG}, 400, "description must be a text of at most 255"),
    ({"description": 7}, 400, "description must be a text"),
    ({"tags": ["gpu"]}, 400, "server: tags can be set since 2.52"),
    ({"personality": [{"path": "/etc/motd", "contents": "SGk="}]}, 400, "personality must be empty"),
    ({"adminPass": 7}, 400, "adminPass must be a text"),
    ({"user_data": "not base64!"}, 400, "user_data must be Base64"),
    ({"user_data": "QUFB" * 200_000}, 400, "user_data must be Base64 of at most 65535"),
    ({"user_data": "QUFB" * 300_000}, 413, "exceeds the capacity limit"),
    ({"networks": "some"}, 400, 'networks must be "auto"'),
    ({"networks": [{"port": NOBODY}]}, 400, f"Port {NOBODY} could not be found"),
    ({"networks": [{"ports": NOBODY}]}, 400, "networks: 'ports' cannot be set; known are uuid, fixed_ip and port"),
    ({"networks": [{"uuid": NOBODY}]}, 400, "etwork"),
    ({"networks": [{}] * 17}, 400, "at most 16"),
    ({"metadata": {"a": 1}}, 400, "metadata: keys and values must be texts"),
    ({"metadata": {"": "a"}}, 400, "metadata: keys and values must be texts"),
    ({"metadata": {"a": LONG}}, 400, "metadata: keys and values must be texts"),
    ({"metadata": {str(number): "" for number in range(129)}}, 403, "at most 128"),
    ({"metadata": [1]}, 400, "metadata must be an object"),
    ({"block_device_mapping_v2": [{"source_type": "volume"}]}, 400, "boot from volume is not supported"),
    ({"block_device_mapping_v2": "x"}, 400, "must be a list of objects"),
    ({"key_name": "none"}, 400, "key_name"),
    ({"availability_zone": "nova:compute-1"}, 403, "Only administrators may force a host"),
    ({"availability_zone": "a:b:c:d"}, 400, "availability_zone"),
    ({"host": "compute-1"}, 400, "2.74"),
    ({"config_drive": ..., "status": "ACTIVE"}, 400, "status cannot be set"),
    ({"project_id": "other"}, 400, "project_id cannot be set"),
    ({"tenant_id": "other"}, 400, "tenant_id cannot be set"),
    ({"__class__": "x"}, 400, "__class__ cannot be set"),
    ({"return_reservation_id": "maybe"}, 400, "return_reservation_id must be true or false"),
]

KEYS = {400: "badRequest", 403: "forbidden", 404: "itemNotFound", 409: "conflictingRequest", 413: "overLimit"}


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("changes", "status", "says"), BAD, ids=lambda value: str(value)[:50])
def test_what_cannot_be_booted(member: Person, changes: dict[str, Any], status: int, says: str) -> None:
    assert says in message(member.boot(**changes), status, KEYS[status])


HINTS: list[tuple[dict[str, Any], int, str]] = [
    ({"reserved": "maybe"}, 400, "reserved must be true or false, not 'maybe'"),
    ({"reserved": ["True", "True"]}, 400, "reserved must be true or false"),
    ({"reserved": "True"}, 400, "lease_params must be a JSON object"),
    ({"reserved": "True", "lease_params": "not JSON"}, 400, "lease_params must be a JSON object"),
    ({"reserved": "True", "lease_params": '{"name": "x"}'}, 400, "Missing parameter end"),
    ({"reserved": "True", "lease_params": '{"end": "2999-13-40 10:00"}'}, 400, "2999-13-40 10:00"),
    (
        {"reserved": "True", "lease_params": '{"end": "2030-01-01 10:00", "project_id": "x"}'},
        400,
        "project_id cannot be set",
    ),
    ({"reserved": "True", "lease_params": f'{{"end": "{hours_away(-2)}"}}'}, 400, "End date must be later"),
    *(
        (
            {"reserved": "True", "lease_params": f'{{"name": "{name}", "end": "2030-01-01 10:00"}}'},
            400,
            "lease_params: name must be a text of 1 to 80 characters",
        )
        for name in ("", "  ", "a\\ud800", "a\\u0000", "n" * 81)
    ),
    ({"lease_params": '{"end": "2030-01-01 10:00"}'}, 400, "needs the hint reserved=True"),
    ({"reservation": "no uuid"}, 400, "'no uuid' is not a UUID"),
    ({"reservation": NOBODY}, 404, NOBODY),
    ({"reservation": {"a": 1}}, 400, "reservation"),
    ({"reservation": NOBODY, "reserved": True, "lease_params": "{}"}, 400, "only one of the hints reservation=ID"),
    ({"group": "no group"}, 400, "Server group no group could not be found"),
    ({"group": ["a"]}, 400, "group must be a text"),
    ({"group": "x" * 256}, 400, "group must be a text of 1 to 255"),
    ({"group": NOBODY}, 400, NOBODY),
    ({"same_host": "no uuid"}, 400, "same_host"),
    ({"different_host": {"a": 1}}, 400, "different_host"),
]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("hints", "status", "says"), HINTS, ids=lambda value: str(value)[:60])
def test_hints_that_cannot_be(member: Person, hints: dict[str, Any], status: int, says: str) -> None:
    assert says in message(member.boot(hints), status, KEYS[status])


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("hints", ["group", ["group"], 7])
def test_hints_that_are_no_object(member: Person, hints: Any) -> None:
    body = {"server": server(), "os:scheduler_hints": hints}
    assert "scheduler_hints must be an object" in message(member("POST", SERVERS, body), 400, "badRequest")


RAW: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"", {}, 400, "empty"),
    (b"{", {}, 400, "not JSON"),
    (b"[]", {}, 400, "a list"),
    (b"5", {}, 400, "a number"),
    (b"null", {}, 400, "null"),
    (b"{}", {}, 400, "server must be an object"),
    (b'{"server": null}', {}, 400, "server must be an object"),
    (b'{"server": []}', {}, 400, "server must be an object"),
    (b'{"server": {}, "server": {}}', {}, 400, "'server' stands twice"),
    (b'{"server": ' + b"[" * 1000 + b"]" * 1000 + b"}", {}, 400, "nested"),
    (b'{"server": {"min_count": NaN}}', {}, 400, "NaN"),
    (b'{"server": {"min_count": 1e400}}', {}, 400, "1e400"),
    (b'{"server": {"min_count": 9223372036854775808}}', {}, 400, "too long"),
    (b'{"server": "' + b"x" * 2_000_000 + b'"}', {}, 413, "exceeds the capacity limit"),
    (b"<server/>", {"Content-Type": "application/xml"}, 415, "application/json"),
    (b"{}", {"Accept": "text/xml"}, 406, "application/json"),
]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("data", "headers", "status", "says"), RAW, ids=lambda value: str(value)[:40])
def test_bodies_that_are_none(member: Person, data: bytes, headers: dict[str, str], status: int, says: str) -> None:
    answer = member("POST", SERVERS, headers={"Content-Type": "application/json", **headers}, data=data)
    (told,) = done(answer, status).values()
    assert told["code"] == status
    assert says in told["message"]


def lease(who: Person, start: str, end: str) -> dict[str, Any]:
    reservation = {"resource_type": "physical:host", "min": 1, "max": 1}
    empty = {"hypervisor_properties": "", "resource_properties": ""}
    body = {"name": "l", "start_date": start, "end_date": end, "events": [], "reservations": [reservation | empty]}
    found: dict[str, Any] = done(who("POST", "/reservation/v1/leases", body), 201)["lease"]
    return found


@pytest.fixture(scope="module")
def lent(standing: World) -> dict[str, str]:
    """Reservations that nobody can boot on: by why."""
    member, stranger = Person(standing.app, "member"), Person(standing.app, "stranger")
    over = lease(member, "now", hours_away(2))
    standing.settle()
    standing.at_once("before_end_lease", "end_lease")
    for _ in range(3):
        standing.at_once("end_lease")
    pending = lease(member, hours_away(100), hours_away(101))
    theirs = lease(stranger, hours_away(200), hours_away(201))
    of = {"over": over, "pending": pending, "theirs": theirs}
    return {why: str(found["reservations"][0]["id"]) for why, found in of.items()}


@pytest.mark.parametrize(
    ("why", "status", "says"),
    [("over", 409, "nothing can boot on it any more"), ("pending", 409, "it starts at"), ("theirs", 404, "not found")],
)
def test_leases_that_nobody_boots_on(
    standing: World, lent: dict[str, str], member: Person, why: str, status: int, says: str
) -> None:
    before = written(standing)
    assert says in message(member.boot({"reservation": lent[why]}), status, KEYS[status])
    assert written(standing) == before


def test_a_reservation_of_others_is_reported_as_one_that_there_is_not(lent: dict[str, str], member: Person) -> None:
    told = {
        message(member.boot({"reservation": name}), 404, "itemNotFound").replace(name, "ID")
        for name in (lent["theirs"], NOBODY)
    }
    assert len(told) == 1


ACTED: list[tuple[Any, int, str]] = [
    ({"os-start": None}, 409, "Cannot 'start' instance"),
    ({"unpause": None}, 409, "Cannot 'unpause' instance"),
    ({"unshelve": None}, 409, "Cannot 'unshelve' instance"),
    ({"confirmResize": None}, 409, "Cannot 'confirmResize' instance"),
    ({"fly": None}, 400, "Unknown action 'fly'; known are"),
    ({}, 400, "must name one action"),
    ({"os-stop": None, "pause": None}, 400, "must name one action"),
    ({"reboot": None}, 400, "type must be SOFT or HARD"),
    ({"reboot": {"type": "GENTLE"}}, 400, "type must be SOFT or HARD"),
    ({"resize": {"flavorRef": "999"}}, 400, "Flavor 999 could not be found"),
    ({"resize": {"flavorRef": "secret"}}, 400, "Flavor secret could not be found"),
    ({"resize": None}, 400, "resize must be an object"),
    ({"rebuild": {"imageRef": NOBODY}}, 400, f"Image {NOBODY} could not be found"),
    ({"rebuild": {}}, 400, "imageRef must be a UUID"),
    ({"createImage": {"name": " "}}, 400, "createImage.name must be a text"),
    ({"createImage": {"name": "a", "metadata": {"a": 1}}}, 400, "createImage.metadata: keys and values must be texts"),
    ({"lock": {"locked_reason": ""}}, 400, "lock.locked_reason must be a text"),
    ({"lock": {"why": "x"}}, 400, "lock must be null or like"),
    ({"os-getConsoleOutput": {"length": "many"}}, 400, "length must be a whole number"),
    ({"os-getConsoleOutput": {"length": -2}}, 400, "length must be a whole number"),
    ({"os-resetState": {"state": "active"}}, 403, ""),
]


@pytest.fixture(scope="module")
def running(standing: World) -> str:
    server_id = Person(standing.app, "member").booted()
    standing.settle()
    return server_id


@pytest.mark.parametrize(("body", "status", "says"), ACTED, ids=lambda value: str(value)[:50])
def test_what_cannot_be_done_with_a_running_server(
    standing: World, running: str, member: Person, body: Any, status: int, says: str
) -> None:
    before = written(standing), member.get(f"{SERVERS}/{running}", "2.79")
    assert says in message(member("POST", f"{SERVERS}/{running}/action", body), status, KEYS[status])
    assert (written(standing), member.get(f"{SERVERS}/{running}", "2.79")) == before


def test_apart_with_no_host_left_is_an_error_that_says_so(standing: World, member: Person) -> None:
    group = {"server_group": {"name": "apart", "policies": ["anti-affinity"]}}
    group_id = done(member("POST", f"{C}/os-server-groups", group))["server_group"]["id"]
    first, second = (member.booted({"group": group_id}) for _ in range(2))
    standing.settle()
    assert member.status(first) == "ACTIVE"
    shown = member.get(f"{SERVERS}/{second}")["server"]
    assert shown["status"] == "ERROR"
    assert shown["addresses"] == {}
    assert "No valid host" in json.dumps(shown["fault"])
    assert "ServerGroupAntiAffinityFilter" in json.dumps(shown["fault"])
