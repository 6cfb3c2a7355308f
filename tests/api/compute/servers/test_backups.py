"""Backups of servers, of which the oldest of each type are deleted, and other small actions and routes of Compute."""

from typing import Any

import pytest

from tests.api.compute.api_clients import Person, World, done, message
from tests.api.compute.test_images import IMAGES, names, patch

OLDEST_FIRST = "image_type=backup&status=active&sort=created_at:asc"


@pytest.fixture
def server(there: World, member: Person) -> str:
    made = member.booted()
    there.settle()
    return made


def back_up(there: World, member: Person, server: str, name: str, rotation: Any, kind: str = "daily") -> str:
    details = {"name": name, "backup_type": kind, "rotation": rotation, "metadata": {"color": "red"}}
    answer = member.act(server, "createBackup", details)
    assert answer.status_code == 202, answer.text
    there.settle()
    return answer.headers["Location"].rpartition("/")[2]


def test_a_server_keeps_so_many_backups_of_each_type(there: World, member: Person, server: str) -> None:
    back_up(there, member, server, "weekly", 1, "weekly")
    for name in ("b1", "b2", "b3"):
        made = back_up(there, member, server, name, 2)
    assert names(member, OLDEST_FIRST) == ["weekly", "b2", "b3"]
    shown = member.get(f"{IMAGES}/{made}")
    kept = ("image_type", "backup_type", "backup_rotation", "instance_uuid", "color")
    assert [shown[key] for key in kept] == ["backup", "daily", "2", server, "red"]
    back_up(there, member, server, "b4", 0)
    assert names(member, OLDEST_FIRST) == ["weekly"]


def test_other_images_and_protected_backups_stay(there: World, member: Person, server: str) -> None:
    patch(member, {"id": back_up(there, member, server, "safe", 1)}, ("replace", "/protected", True))
    done(member.act(server, "createImage", {"name": "image", "metadata": {"backup_type": "daily"}}), 202)
    there.settle()
    back_up(there, member, server, "newest", 1)
    assert sorted(names(member)) == ["demo", "image", "newest", "safe"]


def test_a_server_from_a_backup_has_backups_of_its_own(there: World, member: Person, server: str) -> None:
    first = back_up(there, member, server, "first", 1)
    other = member.booted(imageRef=first, block_device_mapping_v2=...)
    there.settle()
    done(member.act(other, "createImage", {"name": "copy"}), 202)
    there.settle()
    (copy,) = member.get(f"{IMAGES}?name=copy")["images"]
    assert (copy["image_type"], "backup_type" in copy, "backup_rotation" in copy) == ("snapshot", False, False)
    back_up(there, member, other, "second", 1)
    assert names(member, OLDEST_FIRST) == ["first", "second"]


@pytest.mark.parametrize(
    ("details", "refusal"),
    [
        ({"backup_type": "daily", "rotation": 1}, "createBackup.name"),
        ({"name": "b", "rotation": 1}, "createBackup.backup_type"),
        ({"name": "b", "backup_type": "daily"}, "createBackup.rotation"),
        ({"name": "b", "backup_type": "daily", "rotation": -1}, "createBackup.rotation"),
        ({"name": "b", "backup_type": "daily", "rotation": 1, "more": 1}, "'more' cannot be set"),
    ],
)
def test_a_wrong_backup_is_refused(member: Person, server: str, details: dict[str, Any], refusal: str) -> None:
    assert refusal in message(member.act(server, "createBackup", details), 400, "badRequest")


def test_a_server_that_is_not_deleted_is_not_restored(member: Person, stranger: Person, server: str) -> None:
    assert "Cannot 'restore' instance" in message(member.act(server, "restore"), 409, "conflictingRequest")
    assert stranger.act(server, "restore").status_code == 404


def test_a_migration_of_no_server_is_not_found(admin: Person) -> None:
    nobody = "c11a7e00-0000-4000-8000-00000000dead"
    assert admin.act(nobody, "migrate", {"host": None}).status_code == 404


def test_compute_switches_no_host_and_lists_networks_shortly(there: World, admin: Person, member: Person) -> None:
    for action in ("startup", "shutdown", "reboot"):
        host = done(admin("GET", "/compute/v2.1/os-hosts"))["hosts"][0]["host_name"]
        answer = admin("GET", f"/compute/v2.1/os-hosts/{host}/{action}")
        assert "Compute does not switch hosts" in str(done(answer, 501))
        assert admin("GET", f"/compute/v2.1/os-hosts/nowhere/{action}").status_code == 404
    for network in member.get("/compute/v2.1/os-tenant-networks")["networks"]:
        assert network.keys() == {"id", "label", "cidr"}
        assert member.get(f"/compute/v2.1/os-tenant-networks/{network['id']}")["network"] == network
    assert member("GET", "/compute/v2.1/os-tenant-networks/none").status_code == 404
