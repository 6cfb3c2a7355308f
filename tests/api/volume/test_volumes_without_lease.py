"""Volumes that members create without a lease: within their limit, on a backend that no lease uses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from climate.settings import Settings
from tests.api.compute.api_clients import Person, World, done, message
from tests.api.reservation.api_clients import Deployment, Doorkeeper
from tests.flask_apps import app_of

V, C = "/volume/v3/volumes", "/compute/v2.1"
Limited = Callable[[Person, int], Person]


@pytest.fixture
def limited(there: World) -> Limited:
    """Returns a person whose project may have so many GB."""

    def made(person: Person, size_gb: int) -> Person:
        compute = replace(there.here.compute, volume_gb=size_gb)
        settings = Settings(home=compute.home, public_url="http://here")
        return Person(app_of(Deployment(settings, there.climate, Doorkeeper(), compute)), person.name)

    return made


def create(person: Person, **more: Any) -> Any:
    return person("POST", V, {"volume": {"size": 1, **more}})


def test_only_leases_create_volumes_unless_the_operator_allows_it(member: Person) -> None:
    assert "reserve storage by a lease" in message(create(member), 403, "forbidden")


def test_a_volume_is_created_attached_and_deleted(
    there: World, limited: Limited, member: Person, stranger: Person
) -> None:
    member = limited(member, 4)
    given = {"name": "data", "description": "of the project", "metadata": {"color": "red"}}
    made = done(create(member, **given, snapshot_id=None, volume_type=None), 202)["volume"]
    assert {key: made[key] for key in given} == given
    assert (made["size"], made["volume_type"]) == (1, "unreserved")
    path = f"{V}/{made['id']}"
    assert member.get(path)["volume"]["status"] == "available"
    assert stranger("GET", path).status_code == 404
    server_id = member.booted()
    there.settle()
    done(
        member("POST", f"{C}/servers/{server_id}/os-volume_attachments", {"volumeAttachment": {"volumeId": made["id"]}})
    )
    there.settle()
    assert member.get(path)["volume"]["status"] == "in-use"
    assert "detach it first" in message(member("DELETE", path), 409, "conflictingRequest")
    assert member("DELETE", f"{C}/servers/{server_id}/os-volume_attachments/{made['id']}").status_code == 202
    there.settle()
    assert stranger("DELETE", path).status_code == 404
    assert member("DELETE", path).status_code == 202
    assert member("GET", path).status_code == 404


def test_the_limit_of_a_project_holds_for_requests_at_the_same_moment(
    limited: Limited, member: Person, stranger: Person
) -> None:
    member = limited(member, 3)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: create(member), range(6)))
    assert sorted(answer.status_code for answer in answers) == [202] * 3 + [413] * 3
    assert "the project uses 3 of 3 GB" in message(create(member), 413, "overLimit")
    assert create(limited(stranger, 3)).status_code == 202


def test_a_volume_larger_than_the_disk_is_refused(limited: Limited, member: Person) -> None:
    assert "are left for volumes without a lease" in message(
        create(limited(member, -1), size=1 << 20), 413, "overLimit"
    )


def test_the_backend_is_not_registered_for_leases(admin: Person) -> None:
    body = {"name": "all", "storage_class": "ssd", "backend": "unreserved", "capacity_gb": 1}
    answer = admin("POST", "/reservation/v1/storage-pools", body)
    assert (answer.status_code, "no storage backend 'unreserved'" in answer.text) == (404, True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"size": 0}, "volume.size"),
        ({"size": None}, "volume.size"),
        ({"size": "x"}, "volume.size"),
        ({"snapshot_id": "c11a7e00-0000-4000-8000-00000000dead"}, "volume.snapshot_id must be null"),
        ({"imageRef": "c11a7e00-0000-4000-8000-00000000dead"}, "volume.imageRef must be null"),
        ({"volume_type": "ssd"}, "reserved by a lease"),
        ({"multiattach": True}, "volume.multiattach cannot be true"),
        ({"metadata": {"a": 1}}, "volume.metadata"),
        ({"colour": "red"}, "'colour' is unknown"),
    ],
)
def test_a_wrong_volume_is_refused(limited: Limited, member: Person, given: dict[str, Any], says: str) -> None:
    assert says in message(create(limited(member, 4), **given), 400, "badRequest")


def test_readers_create_no_volume(limited: Limited, reader: Person) -> None:
    assert create(limited(reader, 4)).status_code == 403
