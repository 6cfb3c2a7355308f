"""Sharing of images: members of an image, and the answer of each."""

from typing import Any

import pytest

from climate.compute.images import members
from tests.api.compute.api_clients import Person, World, done
from tests.api.compute.test_images import IMAGES, fill, make, names, patch, refusal


@pytest.fixture
def shared(member: Person) -> str:
    """An image with content that is shared with the stranger's project, and waits for its answer."""
    image = make(member, "lent")
    fill(member, image)
    done(member("POST", f"{IMAGES}/{image['id']}/members", {"member": "other-project"}))
    return str(image["id"])


def answered(who: Person, image_id: str, status: str, code: int = 200) -> Any:
    return done(who("PUT", f"{IMAGES}/{image_id}/members/other-project", {"status": status}), code)


def test_a_shared_image_is_listed_once_it_is_accepted(member: Person, stranger: Person, shared: str) -> None:
    (told,) = member.get(f"{IMAGES}/{shared}/members")["members"]
    assert (told["image_id"], told["member_id"], told["status"]) == (shared, "other-project", "pending")
    for status, queries in (
        ("pending", ("member_status=pending&visibility=shared", "member_status=all")),
        ("accepted", ("", "visibility=shared", "member_status=accepted")),
        ("rejected", ("member_status=rejected", "member_status=all&visibility=shared")),
    ):
        assert answered(stranger, shared, status)["status"] == status
        shown = {query for query in ("", "visibility=shared", *queries) if "lent" in names(stranger, query)}
        assert shown >= set(queries)
        assert ("" in shown) == (status == "accepted")
        assert stranger.get(f"{IMAGES}/{shared}")["name"] == "lent"
    assert member.get(f"{IMAGES}/{shared}/members/other-project")["status"] == "rejected"


def test_a_member_boots_and_changes_nothing(there: World, member: Person, stranger: Person, shared: str) -> None:
    assert stranger.boot(imageRef=shared, block_device_mapping_v2=...).status_code == 202
    patch(stranger, {"id": shared}, ("replace", "/name", "x"), status=403)
    assert stranger("POST", f"{IMAGES}/{shared}/members", {"member": "third"}).status_code == 403
    assert stranger("DELETE", f"{IMAGES}/{shared}/members/other-project").status_code == 403
    assert member("DELETE", f"{IMAGES}/{shared}/members/other-project").status_code == 204
    assert stranger("GET", f"{IMAGES}/{shared}").status_code == 404
    assert stranger.boot(imageRef=shared, block_device_mapping_v2=...).status_code == 400


def test_members_see_themselves_only_and_answer_themselves(member: Person, stranger: Person, shared: str) -> None:
    done(member("POST", f"{IMAGES}/{shared}/members", {"member": "third"}))
    assert [one["member_id"] for one in stranger.get(f"{IMAGES}/{shared}/members")["members"]] == ["other-project"]
    assert stranger("GET", f"{IMAGES}/{shared}/members/third").status_code == 404
    assert "Only project other-project sets its status" in refusal(
        member("PUT", f"{IMAGES}/{shared}/members/other-project", {"status": "accepted"}), 403
    )
    third = {"status": "accepted"}
    assert stranger("PUT", f"{IMAGES}/{shared}/members/third", third).status_code == 403
    assert member.get(f"{IMAGES}/{shared}/members/third")["status"] == "pending"
    for wrong in ({"status": "maybe"}, {}, {"status": "accepted", "more": 1}):
        assert stranger("PUT", f"{IMAGES}/{shared}/members/other-project", wrong).status_code == 400


def test_what_cannot_be_shared_is_refused(member: Person, admin: Person, stranger: Person, shared: str) -> None:
    private = make(member, visibility="private")["id"]
    path = f"{IMAGES}/{private}/members"
    assert "Only shared images have members" in refusal(member("POST", path, {"member": "other-project"}), 403)
    assert stranger("POST", path, {"member": "other-project"}).status_code == 404
    for wrong in ({}, {"member": ""}, {"member": 7}, {"member": "other-project", "status": "accepted"}):
        assert member("POST", f"{IMAGES}/{shared}/members", wrong).status_code == 400
    assert member("POST", f"{IMAGES}/{shared}/members", {"member": "other-project"}).status_code == 409
    assert member("DELETE", f"{IMAGES}/{shared}/members/nobody").status_code == 404
    assert admin("PUT", f"{IMAGES}/{shared}/members/nobody", {"status": "accepted"}).status_code == 404
    assert answered(admin, shared, "accepted")["status"] == "accepted"


def test_an_image_has_so_many_members(member: Person, shared: str) -> None:
    path = f"{IMAGES}/{shared}/members"
    for number in range(members.MOST - 1):
        done(member("POST", path, {"member": f"p{number}"}))
    assert "has 128 members" in refusal(member("POST", path, {"member": "one-more"}), 413)


def test_an_image_that_becomes_private_is_its_owners(member: Person, stranger: Person, shared: str) -> None:
    answered(stranger, shared, "accepted")
    patch(member, {"id": shared}, ("replace", "/visibility", "private"))
    assert (names(stranger), stranger("GET", f"{IMAGES}/{shared}").status_code) == (["demo"], 404)
    assert member("GET", f"{IMAGES}/{shared}/members").status_code == 403
    patch(member, {"id": shared}, ("replace", "/visibility", "shared"))
    assert "lent" in names(stranger)
    assert member("DELETE", f"{IMAGES}/{shared}").status_code == 204
