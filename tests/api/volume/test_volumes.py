"""Volumes of leases on the wire: listed and shown by Block Storage, attached by Compute, gone with their lease."""

from typing import Any
from uuid import uuid4

import pytest

from climate.service import kept_volumes
from tests.api.compute.api_clients import Person, World, done, message
from tests.api.volume.conftest import R, leased, soon

V, C = "/volume/v3", "/compute/v2.1"

pytestmark = pytest.mark.usefixtures("storage")


def attached(person: Person, server_id: str) -> list[dict[str, Any]]:
    return list(person.get(f"{C}/servers/{server_id}/os-volume_attachments")["volumeAttachments"])


def attach(person: Person, server_id: str, volume_id: str, **more: Any) -> Any:
    body = {"volumeAttachment": {"volumeId": volume_id, **more}}
    return person("POST", f"{C}/servers/{server_id}/os-volume_attachments", body)


def test_from_the_lease_to_a_server_and_back(there: World, member: Person, stranger: Person, admin: Person) -> None:
    lease_id = leased(there, member)
    one, other = member.get(f"{V}/volumes/detail")["volumes"]
    assert (one["status"], one["size"], one["volume_type"], one["attachments"]) == ("available", 1, "ssd", [])
    assert member.get(f"{V}/volumes/{one['id']}") == {"volume": one}
    assert stranger.get(f"{V}/volumes") == {"volumes": []}
    assert admin.get(f"{V}/volumes") == {"volumes": []}
    assert len(admin.get(f"{V}/volumes?all_tenants=1")["volumes"]) == 2
    assert len(member.get(f"{V}/volumes?all_tenants=1&name={one['name']}&status=available")["volumes"]) == 1
    server_id = member.booted()
    there.settle()
    made = done(attach(member, server_id, one["id"]))["volumeAttachment"]
    assert made == {"id": one["id"], "volumeId": one["id"], "serverId": server_id, "device": "/dev/vdb"}
    there.settle()
    path = f"{C}/servers/{server_id}/os-volume_attachments"
    assert member.get(path, "2.70")["volumeAttachments"] == [made | {"tag": None}]
    assert member.get(path, "2.79")["volumeAttachments"] == [made | {"tag": None, "delete_on_termination": False}]
    assert attached(member, server_id) == [made]
    assert member.get(f"{C}/servers/{server_id}/os-volume_attachments/{one['id']}") == {"volumeAttachment": made}
    shown = member.get(f"{C}/servers/{server_id}")["server"]["os-extended-volumes:volumes_attached"]
    assert shown == [{"id": one["id"]}]
    held = member.get(f"{V}/volumes/{one['id']}")["volume"]
    assert (held["status"], held["attachments"][0]["server_id"]) == ("in-use", server_id)
    assert member("DELETE", f"{C}/servers/{server_id}/os-volume_attachments/{one['id']}").status_code == 202
    there.settle()
    assert attached(member, server_id) == []
    done(attach(member, server_id, other["id"], device="/dev/vdx"))
    there.settle()
    assert member("DELETE", f"{R}/leases/{lease_id}").status_code in (200, 204)
    for _ in range(3):
        there.at_once("end_lease")
    assert member.get(f"{V}/volumes") == {"volumes": []}
    assert attached(member, server_id) == []
    assert member.status(server_id) == "ACTIVE"


def test_kept_volumes_are_deleted_by_their_owner(there: World, member: Person, stranger: Person, storage: Any) -> None:
    lease_id = leased(there, member, "keep")
    one, other = member.get(f"{V}/volumes/detail")["volumes"]
    told = message(member("DELETE", f"{V}/volumes/{one['id']}"), 409, "conflictingRequest")
    assert "which is not over" in told
    assert member("DELETE", f"{R}/leases/{lease_id}").status_code in (200, 204)
    there.settle()
    assert [row["metadata"]["kept"] for row in member.get(f"{V}/volumes/detail")["volumes"]] == ["true", "true"]
    assert message(stranger("DELETE", f"{V}/volumes/{one['id']}"), 404, "itemNotFound")
    leased(there, member)
    over = {"resource_type": "storage:pool", "size_gb": 1, "storage_class": "ssd"}
    body = {"name": "m", "start_date": "now", "end_date": soon(), "reservations": [over], "events": []}
    assert member("POST", f"{R}/leases", body).status_code == 409
    assert member("DELETE", f"{V}/volumes/{one['id']}").status_code == 202
    assert kept_volumes.release(there.climate) == 1
    done(member("POST", f"{R}/leases", body), 201)
    assert other["id"] in {row["id"] for row in member.get(f"{V}/volumes")["volumes"]}


def test_nobody_sees_or_takes_volumes_of_others(there: World, member: Person, stranger: Person, reader: Person) -> None:
    leased(there, member)
    one = member.get(f"{V}/volumes/detail")["volumes"][0]
    own, foreign = member.booted(), stranger.booted()
    there.settle()
    assert message(stranger("GET", f"{V}/volumes/{one['id']}"), 404, "itemNotFound")
    assert message(attach(stranger, foreign, one["id"]), 404, "itemNotFound")
    assert message(attach(stranger, own, one["id"]), 404, "itemNotFound")
    assert message(attach(member, foreign, one["id"]), 404, "itemNotFound")
    assert message(attach(reader, own, one["id"]), 403, "forbidden")
    assert message(reader("DELETE", f"{V}/volumes/{one['id']}"), 403, "forbidden")
    assert there.app.test_client().get(f"{V}/volumes").status_code == 401
    assert member.get(f"{V}/volumes/detail")["volumes"][0] == one
    short = member.get(f"{V}/volumes")["volumes"][0]
    assert short == {key: one[key] for key in ("id", "name", "links")}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "volumeAttachment must be an object"),
        ({"volumeAttachment": []}, "volumeAttachment must be an object"),
        ({"volumeAttachment": {}}, "volumeId"),
        ({"volumeAttachment": {"volumeId": "x"}}, "volumeId"),
        ({"volumeAttachment": {"volumeId": None}}, "volumeId"),
        ({"volumeAttachment": {"volumeId": str(uuid4()), "device": 5}}, "device"),
        ({"volumeAttachment": {"volumeId": str(uuid4()), "boot": 5}}, "known are"),
        ({"volumeAttachment": {"volumeId": str(uuid4()), "delete_on_termination": True}}, "cannot be true"),
    ],
)
def test_what_cannot_be_attached(there: World, member: Person, body: Any, told: str) -> None:
    server_id = member.booted()
    path = f"{C}/servers/{server_id}/os-volume_attachments"
    assert told in message(member("POST", path, body), 400, "badRequest")


def test_what_is_not_there(member: Person) -> None:
    for volume_id in (str(uuid4()), "no-id", "%00"):
        assert member("GET", f"{V}/volumes/{volume_id}").status_code in (400, 404)
        assert member("DELETE", f"{V}/volumes/{volume_id}").status_code in (400, 404)
    assert member("GET", f"{V}/volumes?limit=none").status_code == 400
    assert member("GET", f"{V}/volumes?marker={uuid4()}").status_code == 400


def test_pages(there: World, member: Person) -> None:
    leased(there, member)
    first = member.get(f"{V}/volumes?limit=1")
    assert len(first["volumes"]) == 1
    assert first["volumes_links"][0]["rel"] == "next"
    rest = member.get(f"{V}/volumes?limit=1&marker={first['volumes'][0]['id']}")
    assert len(rest["volumes"]) == 1
    assert "volumes_links" not in rest


@pytest.mark.parametrize("path", ["/volume", "/volume/v3"])
def test_versions_are_reported_to_everybody(there: World, path: str) -> None:
    body: Any = there.app.test_client().get(path).json
    assert body["versions"][0]["links"][0]["href"] == "http://here/volume/v3/"
