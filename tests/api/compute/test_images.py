"""Images over the API: what is said of them, who sees them, and which a list shows."""

import hashlib
import io
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from werkzeug.test import TestResponse

from climate.compute.images import image_data
from climate.compute.images.quota import ImageLimits
from climate.settings import Settings
from tests.api.compute.api_clients import Person, World, done, message
from tests.api.reservation.api_clients import Deployment, Doorkeeper
from tests.flask_apps import app_of

IMAGES = "/image/v2/images"
OCTETS = {"Content-Type": "application/octet-stream"}
PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}


def make(who: Person, name: str = "i", status: int = 201, **said: Any) -> Any:
    return done(who("POST", IMAGES, {"name": name, **said}), status)


def fill(who: Person, image: Any, content: bytes = b"x") -> None:
    assert who("PUT", f"{IMAGES}/{image['id']}/file", data=content, headers=OCTETS).status_code == 204


def patch(who: Person, image: Any, *changes: tuple[str, str, Any], status: int = 200) -> Any:
    body = [{"op": op, "path": path} | ({} if op == "remove" else {"value": value}) for op, path, value in changes]
    return done(who("PATCH", f"{IMAGES}/{image['id']}", data=json.dumps(body), headers=PATCH), status)


def refusal(answer: TestResponse, status: int) -> str:
    """The message of a refusal of Image."""
    return str(done(answer, status)["error"]["message"])


def names(who: Person, query: str = "") -> list[str]:
    return [one["name"] for one in who.get(f"{IMAGES}?{query}")["images"]]


def test_an_image_says_what_it_was_given(member: Person) -> None:
    said = {
        "min_disk": 5,
        "min_ram": 512,
        "protected": True,
        "os_hidden": False,
        "tags": ["b", "a", "b"],
        "visibility": "private",
        "disk_format": "qcow2",
        "container_format": "bare",
        "architecture": "x86_64",
        "hw:any.thing": "at all",
    }
    made = make(member, **said)
    assert {key: made[key] for key in said} == said | {"tags": ["a", "b"]}
    assert member.get(f"{IMAGES}/{made['id']}") == made


def test_patches_of_version_2_0_have_another_form(member: Person) -> None:
    image = make(member, color="red")

    def changed(status: int, body: Any) -> Any:
        headers = {"Content-Type": "application/openstack-images-v2.0-json-patch"}
        return done(member("PATCH", f"{IMAGES}/{image['id']}", data=json.dumps(body), headers=headers), status)

    shown = changed(200, [{"replace": "/name", "value": "n"}, {"add": "/size_of", "value": "x"}, {"remove": "/color"}])
    assert (shown["name"], shown["size_of"], "color" in shown) == ("n", "x", False)
    for wrong in ({}, {"replace": "/name", "add": "/name", "value": "x"}, {"op": "replace", "path": "/name"}, "x"):
        assert "Each change must be like" in changed(400, [wrong])["error"]["message"]
    assert "must be a list" in changed(400, {})["error"]["message"]


def test_reserved_properties_are_refused(member: Person) -> None:
    make(member, status=403, os_glance_importing="1")
    patch(member, make(member), ("add", "/os_glance_failed", "1"), status=403)


def test_images_are_listed_by_their_exact_size(member: Person) -> None:
    one, other = make(member, name="one"), make(member, name="other")
    fill(member, one, b"x" * 10)
    fill(member, other, b"x" * 11)
    assert names(member, "size=10") == ["one"]
    assert names(member, "size=11&size_min=12") == []
    assert member("GET", f"{IMAGES}?size=many").status_code == 400


def test_an_image_is_changed_in_one_step_or_not_at_all(member: Person) -> None:
    image = make(member, color="red")
    changed = patch(
        member,
        image,
        ("replace", "/name", "new"),
        ("replace", "/min_ram", 64),
        ("add", "/a~1b", "c"),
        ("remove", "/color", None),
        ("replace", "/tags", ["t"]),
    )
    assert (changed["name"], changed["min_ram"], changed["a/b"], changed["tags"]) == ("new", 64, "c", ["t"])
    assert "color" not in changed
    for status, *changes in (
        (409, ("add", "/x", "y"), ("remove", "/never", None)),
        (409, ("replace", "/never", "y")),
        (403, ("add", "/x", "y"), ("replace", "/status", "active")),
        (403, ("remove", "/name", None)),
        (403, ("replace", "/owner", "other")),
        (403, ("replace", "/visibility", "public")),
        (400, ("replace", "/protected", "yes")),
        (400, ("replace", "/min_disk", -1)),
        (400, ("add", "/x", 7)),
        (400, ("add", "x", "y")),
        (400, ("move", "/x", "y")),
        (400, ("add", "/tags", ["a\nb"])),
    ):
        patch(member, image, *changes, status=status)
    assert member.get(f"{IMAGES}/{image['id']}") == changed


def test_a_protected_image_stays(member: Person) -> None:
    image = make(member, protected=True)
    assert member("DELETE", f"{IMAGES}/{image['id']}").status_code == 403
    patch(member, image, ("replace", "/protected", False))
    assert member("DELETE", f"{IMAGES}/{image['id']}").status_code == 204


def test_tags_one_by_one(member: Person, stranger: Person) -> None:
    path = f"{IMAGES}/{make(member)['id']}"
    assert member("PUT", f"{path}/tags/gpu").status_code == 204
    assert member("PUT", f"{path}/tags/gpu").status_code == 204
    assert member.get(path)["tags"] == ["gpu"]
    assert stranger("PUT", f"{path}/tags/x").status_code == 404
    assert member("DELETE", f"{path}/tags/gpu").status_code == 204
    assert member("DELETE", f"{path}/tags/gpu").status_code == 404


def test_a_list_shows_what_is_asked_for(there: World, member: Person) -> None:
    small = make(member, "small", disk_format="raw", container_format="bare", color="red", tags=["t", "u"])
    large = make(member, "large", visibility="private", protected=True)
    make(member, "hidden", os_hidden=True)
    fill(member, small, b"12345")
    assert names(member) == ["large", "small", "demo"]
    for query, expected in (
        ("os_hidden=true", ["hidden"]),
        ("status=active", ["small", "demo"]),
        ("status=in:queued,killed", ["large"]),
        ("name=in:small,demo", ["small", "demo"]),
        (f"id=in:{small['id']},{large['id']}", ["large", "small"]),
        ("disk_format=raw", ["small", "demo"]),
        ("container_format=bare&size_min=1", ["small"]),
        ("size_max=4", ["demo"]),
        ("color=red", ["small"]),
        ("color=blue", []),
        ("tag=t&tag=u", ["small"]),
        ("tag=t&tag=v", []),
        ("protected=true", ["large"]),
        ("visibility=private", ["large"]),
        ("visibility=public", ["demo"]),
        ("owner=project&member_status=all", ["large", "small"]),
        ("sort=name:asc", ["demo", "large", "small"]),
        ("sort_key=size&sort_dir=desc", ["small", "demo", "large"]),
    ):
        assert names(member, query) == expected, query
    for wrong in ("visibility=open", "sort=color", "sort=name:up", "size_min=x", "protected=maybe", "marker=x"):
        assert member("GET", f"{IMAGES}?{wrong}").status_code == 400, wrong


def test_pages_go_on_where_the_last_one_ended_in_any_order(member: Person) -> None:
    for place in (2, 1, 3):
        make(member, f"i{place}")
    for sort, expected in (("name:asc", ["demo", "i1", "i2", "i3"]), ("created_at:desc", ["i3", "i1", "i2", "demo"])):
        found, path = [], f"{IMAGES}?limit=1&sort={sort}"
        while path:
            page = member.get(path)
            found += [one["name"] for one in page["images"]]
            path = page.get("next", "").removeprefix("http://here")
        assert found == expected


def test_who_sees_an_image(member: Person, stranger: Person, admin: Person) -> None:
    own = {word: make(member, word, visibility=word) for word in ("private", "shared", "community")}
    public = make(admin, "public", visibility="public")
    assert names(stranger) == ["public", "demo"]
    assert names(stranger, "visibility=community") == ["community"]
    assert names(stranger, "visibility=all") == ["public", "community", "demo"]
    assert names(stranger, "visibility=private") == []
    assert set(names(admin)) == {"public", "community", "shared", "private", "demo"}
    assert [stranger("GET", f"{IMAGES}/{own[word]['id']}").status_code for word in own] == [404, 404, 200]
    assert stranger("PATCH", f"{IMAGES}/{public['id']}", data="[]", headers=PATCH).status_code == 403
    assert stranger("PATCH", f"{IMAGES}/{own['private']['id']}", data="[]", headers=PATCH).status_code == 404
    assert stranger("DELETE", f"{IMAGES}/{own['community']['id']}").status_code == 403
    make(member, status=403, visibility="public")
    make(member, status=403, owner="other")
    assert make(admin, "given", owner="project")["owner"] == "project"


def small(there: World) -> Person:
    """A member before an app that takes 1 MB at a time, over the same cloud."""
    settings = Settings(home=there.here.compute.home, public_url="http://here", max_image_mb=1)
    deployment = Deployment(settings, there.climate, Doorkeeper(), there.here.compute)
    return Person(app_of(deployment), "member")


def limited(there: World, **limits: int) -> Person:
    """A member before an app over the same cloud, in which these limits of images hold."""
    compute = replace(there.here.compute, image_limits=ImageLimits(**limits))
    settings = Settings(home=compute.home, public_url="http://here")
    return Person(app_of(Deployment(settings, there.climate, Doorkeeper(), compute)), "member")


def usage(who: Person) -> dict[str, tuple[int, int]]:
    told = who.get("/image/v2/info/usage")["usage"]
    return {name: (figures["usage"], figures["limit"]) for name, figures in told.items()}


def test_a_project_has_so_many_images_and_no_more(there: World, stranger: Person) -> None:
    who = limited(there, count=2)
    made = [make(who) for _ in range(2)]
    assert usage(who)["image_count_total"] == (2, 2)
    assert "has 2 of 2" in who("POST", IMAGES, {"name": "third"}).get_data(as_text=True)
    make(who, status=413)
    server = who.booted()
    there.settle()
    assert who.act(server, "createImage", {"name": "snap"}).status_code == 413
    make(stranger)
    assert who("DELETE", f"{IMAGES}/{made[0]['id']}").status_code == 204
    make(who)


def test_images_of_a_project_have_so_many_bytes_and_no_more(there: World) -> None:
    who, half = limited(there, size_mb=1), bytes(1 << 19)
    fill(who, make(who), half)
    assert usage(who)["image_size_total"] == (1, 1)
    path = f"{IMAGES}/{make(who)['id']}"
    refused = who("PUT", f"{path}/file", data=half + b"x", headers=OCTETS)
    assert refused.status_code == 413
    assert "uses 1 of 1 MB" in refused.get_data(as_text=True)
    unannounced = {"wsgi.input_terminated": True, "CONTENT_LENGTH": "", "wsgi.input": io.BytesIO(half + b"x")}
    assert who("PUT", f"{path}/file", headers=OCTETS, environ_overrides=unannounced).status_code == 413
    assert (who.get(path)["status"], len(list(there.here.compute.images.iterdir()))) == ("queued", 1)
    assert who("PUT", f"{path}/file", data=half, headers=OCTETS).status_code == 204
    assert usage(who)["image_count_uploading"] == (0, -1)


def test_images_leave_room_on_their_disk(there: World) -> None:
    folder = image_data.content_file(there.here.compute, "x").parent
    free_mb = shutil.disk_usage(folder).free >> 20
    path = f"{IMAGES}/{make(limited(there))['id']}/file"
    refused = limited(there, free_mb=2 * free_mb)("PUT", path, data=b"x", headers=OCTETS)
    assert (refused.status_code, "not enough room on the disk" in refused.get_data(as_text=True)) == (413, True)
    assert list(folder.iterdir()) == []
    assert limited(there, free_mb=1)("PUT", path, data=b"x", headers=OCTETS).status_code == 204


NO_IMAGES: list[Any] = [
    ({"min_disk": "x"}, 400),
    ({"min_ram": -1}, 400),
    ({"protected": 1}, 400),
    ({"tags": "t"}, 400),
    ({"tags": [7]}, 400),
    ({"visibility": "open"}, 400),
    ({"disk_format": ["raw"]}, 400),
    ({"id": "x"}, 400),
    ({"name": "a\nb"}, 400),
    ({"property": 7}, 400),
    ({"property": "x" * 65536}, 400),
    ({f"p{place}": "x" for place in range(129)}, 400),
    ({"size": 7}, 403),
    ({"checksum": "x"}, 403),
    ({"architecture": "steam"}, 400),
    ({"hypervisor_type": "steam"}, 400),
    ({"vm_mode": "steam"}, 400),
]


def test_an_image_that_cannot_be_is_refused(member: Person) -> None:
    for said, status in NO_IMAGES:
        make(member, status=status, **said)
        assert names(member) == ["demo"]


def test_words_that_mean_the_same_are_taken(member: Person) -> None:
    assert make(member, architecture="amd64", hypervisor_type="XAPI", vm_mode="hv")["architecture"] == "amd64"
    image = make(member)
    patch(member, image, ("add", "/architecture", "steam"), status=400)
    assert "architecture" not in member.get(f"{IMAGES}/{image['id']}")


def test_an_upload_is_measured_limited_and_deleted_with_its_image(there: World, member: Person) -> None:
    image, folder = make(member), there.here.compute.images
    path = f"{IMAGES}/{image['id']}"
    assert member("GET", f"{path}/file").status_code == 204
    too_much = bytes((1 << 20) + 1)
    for sent in ({"data": too_much}, {"data": b"x", "headers": {"Content-Type": "text/plain"}}):
        expected = 413 if sent["data"] == too_much else 415
        answer = small(there)("PUT", f"{path}/file", **{"headers": OCTETS, **sent})
        assert answer.status_code == expected
    assert list(folder.iterdir()) == []
    fill(member, image, b"content")
    shown = member.get(path)
    assert (shown["size"], shown["os_hash_value"]) == (7, hashlib.sha512(b"content").hexdigest())
    assert member("GET", f"{path}/file").data == b"content"
    patch(member, image, ("replace", "/disk_format", "raw"), status=403)
    assert member("DELETE", path).status_code == 204
    assert list(folder.iterdir()) == []


def test_only_the_content_of_an_active_image_is_served(there: World, member: Person) -> None:
    image = make(member)
    path = f"{IMAGES}/{image['id']}"
    image_data.content_file(there.here.compute, image["id"]).write_bytes(b"unfinished")
    assert (member("GET", f"{path}/file").status_code, member("GET", f"{path}/file").data) == (204, b"")
    fill(member, image, b"content")
    assert member("GET", f"{path}/file").data == b"content"
    again = member("PUT", f"{path}/file", data=b"other", headers=OCTETS)
    assert (again.status_code, member("GET", f"{path}/file").data) == (409, b"content")


def test_the_id_of_a_deleted_image_is_nobodys(member: Person, stranger: Person) -> None:
    image = make(member)
    assert member("DELETE", f"{IMAGES}/{image['id']}").status_code == 204
    for who in (member, stranger):
        make(who, status=409, id=image["id"])


def test_a_server_is_as_large_as_its_image_needs(there: World, member: Person) -> None:
    for said, flavor, content in (
        ({"min_ram": 513}, "memory is too small", b""),
        ({"min_disk": 2}, "disk is too small", b""),
        ({"min_ram": 512, "min_disk": 1}, None, b"x"),
    ):
        image = make(member, **said)
        fill(member, image, content)
        answer = member.boot(imageRef=image["id"], block_device_mapping_v2=...)
        if flavor is None:
            assert answer.status_code == 202
        else:
            assert flavor in message(answer, 400, "badRequest")
    assert len(member.get("/compute/v2.1/servers")["servers"]) == 1


def test_a_snapshot_needs_what_its_image_needed_and_a_rebuilt_server_is_large_enough(
    there: World, member: Person
) -> None:
    image, larger = make(member, min_ram=512, color="red"), make(member, min_ram=1024)
    for each in (image, larger):
        fill(member, each)
    server = member.booted(imageRef=image["id"], block_device_mapping_v2=...)
    there.settle()
    done(member.act(server, "createImage", {"name": "snap"}), 202)
    there.settle()
    snap = member.get(f"{IMAGES}?name=snap")["images"][0]
    assert (snap["min_ram"], snap["color"], snap["status"]) == (512, "red", "active")
    refusal = member.act(server, "rebuild", {"imageRef": larger["id"]})
    assert "memory is too small" in message(refusal, 400, "badRequest")
    assert member.status(server) == "ACTIVE"


def test_a_server_is_not_rebuilt_from_an_image_that_its_host_does_not_run(there: World, member: Person) -> None:
    image = make(member, architecture="aarch64")
    fill(member, image)
    server = member.booted()
    there.settle()
    before = there.here.look(server)
    refusal = member.act(server, "rebuild", {"imageRef": image["id"], "name": "anew"})
    told = message(refusal, 400, "badRequest")
    assert "ImagePropertiesFilter refuses it" in told
    assert str(before.node) not in told
    assert there.here.look(server) == before
    assert member.boot(imageRef=image["id"], block_device_mapping_v2=...).status_code == 202


def test_two_changes_of_an_image_at_once_both_stay(member: Person) -> None:
    image = make(member)
    keys = [f"/k{place}" for place in range(6)]
    with ThreadPoolExecutor(6) as people:
        list(people.map(lambda key: patch(member, image, ("add", key, "x")), keys))
    shown = member.get(f"{IMAGES}/{image['id']}")
    assert [shown.get(key[1:]) for key in keys] == ["x"] * 6
