"""Nobody learns from an answer what other projects have."""

from uuid import uuid4

import pytest

from tests.api.compute.api_clients import Person, World, done

SERVERS, IMAGES = "/compute/v2.1/servers", "/image/v2/images"


@pytest.fixture
def others_server(there: World, stranger: Person) -> str:
    made = stranger.booted()
    there.settle()
    return made


def test_a_marker_does_not_tell_of_a_server_of_another_project(member: Person, others_server: str) -> None:
    own = member.booted()
    told = [member("GET", f"{SERVERS}?marker={marker}") for marker in (others_server, str(uuid4()))]
    assert [answer.status_code for answer in told] == [400, 400]
    assert done(member("GET", f"{SERVERS}?marker={own}"))["servers"] == []


def test_a_marker_of_any_project_suits_an_administrator_who_sees_all(
    admin: Person, member: Person, others_server: str
) -> None:
    newer = member.booted()
    assert done(admin("GET", f"{SERVERS}?all_tenants=1&marker={newer}"))["servers"][0]["id"] == others_server


def test_a_marker_does_not_tell_of_an_image_of_another_project(member: Person, stranger: Person, admin: Person) -> None:
    theirs = done(stranger("POST", IMAGES, {"name": "private"}), 201)["id"]
    assert member("GET", f"{IMAGES}?marker={theirs}").status_code == 400
    for sees in (stranger, admin):
        assert sees("GET", f"{IMAGES}?marker={theirs}").status_code == 200
