"""Images as clients of Compute before 2.36 know them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from climate.compute.nodes.services import IMAGE_ID
from tests.api.compute.api_clients import Person, World, done, message

C = "/compute/v2.1/images"
IMAGES = "/image/v2/images"


def make(who: Person, **said: Any) -> str:
    return str(done(who("POST", IMAGES, {"name": "i", **said}), 201)["id"])


def ids(who: Person, query: str = "", path: str = C) -> list[str]:
    return [one["id"] for one in who.get(f"{path}?{query}")["images"]]


def test_an_image_is_shown_in_the_words_of_nova(member: Person) -> None:
    own = make(member, min_disk=3, min_ram=64, color="red")
    shown = member.get(f"{C}/{own}")["image"]
    told = {key: shown[key] for key in ("name", "status", "progress", "minDisk", "minRam", "metadata")}
    words = {"name": "i", "status": "SAVING", "progress": 25, "minDisk": 3, "minRam": 64, "metadata": {"color": "red"}}
    assert told == words
    assert [one["rel"] for one in shown["links"]] == ["self", "bookmark", "alternate"]
    assert (member.get(f"{C}/{IMAGE_ID}")["image"]["status"], "server" in shown) == ("ACTIVE", False)


def test_lists_have_filters_and_pages(there: World, member: Person) -> None:
    first, second = make(member, name="a"), make(member, name="b", min_disk=5)
    server = member.booted()
    there.settle()
    done(member.act(server, "createImage", {"name": "copy"}), 202)
    there.settle()
    (copy,) = ids(member, f"server={server}")
    assert member.get(f"{C}/{copy}")["image"]["server"]["id"] == server
    assert ids(member, f"server=http://here/servers/{server}&type=snapshot", f"{C}/detail") == [copy]
    assert ids(member, "name=a") == [first]
    assert set(ids(member, "status=saving")) == {first, second}
    assert set(ids(member, "status=ACTIVE")) == {copy, IMAGE_ID}
    assert ids(member, "status=other") == []
    assert ids(member, "minDisk=5") == [second]
    assert ids(member, "limit=0") == []
    page = member.get(f"{C}?limit=2")
    assert len(page["images"]) == 2
    assert len(member.get(page["images_links"][0]["href"].removeprefix("http://here"))["images"]) == 2
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert ids(member, f"changes-since={soon:%Y-%m-%dT%H:%M:%SZ}") == []
    assert len(ids(member, "changes-since=2020-01-01T00:00:00Z")) == 4
    for wrong in ("changes-since=then", "limit=x", "minRam=x", "marker=x"):
        message(member("GET", f"{C}?{wrong}"), 400, "badRequest")


def test_metadata_is_that_of_the_image_api(member: Person, stranger: Person) -> None:
    own = make(member, visibility="private", a="1")
    path = f"{C}/{own}/metadata"
    assert done(member("POST", path, {"metadata": {"b": "2"}})) == {"metadata": {"a": "1", "b": "2"}}
    assert member.get(f"{IMAGES}/{own}")["b"] == "2"
    assert done(member("PUT", f"{path}/b", {"meta": {"b": "3"}})) == {"meta": {"b": "3"}}
    assert member.get(f"{path}/b") == {"meta": {"b": "3"}}
    assert done(member("DELETE", f"{path}/a"), 204) is None
    assert member.get(path) == {"metadata": {"b": "3"}}
    assert done(member("PUT", path, {"metadata": {"c": "4"}})) == {"metadata": {"c": "4"}}
    message(member("GET", f"{path}/a"), 404, "itemNotFound")
    message(member("PUT", f"{path}/b", {"meta": {"c": "3"}}), 400, "badRequest")
    message(member("POST", path, {"metadata": {"owner": "me"}}), 403, "forbidden")
    message(member("POST", path, {"metadata": {"os_glance_x": "me"}}), 403, "forbidden")
    message(stranger("POST", path, {"metadata": {"b": "2"}}), 404, "itemNotFound")
    message(member("POST", f"{C}/{IMAGE_ID}/metadata", {"metadata": {"b": "2"}}), 403, "forbidden")


def test_images_are_deleted_unless_protected(member: Person, stranger: Person) -> None:
    own, kept = make(member), make(member, protected=True)
    message(stranger("DELETE", f"{C}/{kept}"), 404, "itemNotFound")
    assert done(member("DELETE", f"{C}/{own}"), 204) is None
    message(member("DELETE", f"{C}/{kept}"), 403, "forbidden")
    message(member("GET", f"{C}/{own}"), 404, "itemNotFound")


def test_later_microversions_have_no_images(member: Person) -> None:
    def status(path: str, version: str) -> int:
        return member("GET", path, headers={"OpenStack-API-Version": f"compute {version}"}).status_code

    for path in (C, f"{C}/detail", f"{C}/{IMAGE_ID}"):
        assert (status(path, "2.35"), status(path, "2.36")) == (200, 404)
    path = f"{C}/{IMAGE_ID}/metadata"
    assert (status(path, "2.38"), status(path, "2.39")) == (200, 404)
