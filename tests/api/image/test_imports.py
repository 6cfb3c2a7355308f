"""Contents that are staged and imported, and images whose content is not given out."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from climate.compute.images import image_data, orphan_files
from tests.api.compute.api_clients import Person, World, message
from tests.api.compute.test_images import IMAGES, OCTETS, fill, limited, make, refusal, usage
from tests.compute.images.test_orphan_files import aged

DIRECT = {"method": {"name": "glance-direct"}}


def stage(who: Person, image: Any, content: bytes = b"x", status: int = 204) -> str:
    path = f"{IMAGES}/{image['id']}"
    assert who("PUT", f"{path}/stage", data=content, headers=OCTETS).status_code == status
    return path


def test_a_staged_content_is_imported(there: World, member: Person, stranger: Person) -> None:
    answer = member("POST", IMAGES, {"name": "i"})
    assert answer.headers["OpenStack-image-import-methods"] == "glance-direct"
    path = stage(member, answer.json, b"content")
    assert (member.get(path)["status"], member("GET", f"{path}/file").status_code) == ("uploading", 204)
    assert usage(member)["image_count_uploading"] == (1, -1)
    assert member("PUT", f"{path}/stage", data=b"x", headers=OCTETS).status_code == 409
    assert member("PUT", f"{path}/file", data=b"x", headers=OCTETS).status_code == 409
    assert stranger("POST", f"{path}/import", DIRECT).status_code == 404
    assert member("POST", f"{path}/import", DIRECT).status_code == 202
    shown = member.get(path)
    assert (shown["status"], shown["size"], member("GET", f"{path}/file").data) == ("active", 7, b"content")
    assert "stage its content before" in refusal(member("POST", f"{path}/import", DIRECT), 409)
    assert member.get(f"{path}/tasks") == {"tasks": []}
    assert len(list(there.here.compute.images.iterdir())) == 1


def test_other_imports_are_refused(member: Person) -> None:
    assert member.get("/image/v2/info/import")["import-methods"]["value"] == ["glance-direct"]
    path = stage(member, make(member))
    for wrong in (
        {},
        {"method": "glance-direct"},
        {"method": {"name": "web-download", "uri": "http://here"}},
        {"method": {"name": "copy-image"}},
        DIRECT | {"stores": ["fast"]},
        DIRECT | {"all_stores": True, "more": 1},
    ):
        assert member("POST", f"{path}/import", wrong).status_code == 400, wrong
    assert member.get(path)["status"] == "uploading"
    assert member("POST", f"{IMAGES}/{make(member)['id']}/import", DIRECT).status_code == 409


def test_a_staged_content_goes_with_its_image(there: World, member: Person) -> None:
    path = stage(member, make(member))
    assert member("DELETE", path).status_code == 204
    assert list(there.here.compute.images.iterdir()) == []


def test_a_staged_content_is_imported_once_however_many_ask_at_once(there: World, member: Person) -> None:
    for _ in range(5):
        path, start = stage(member, make(member), b"content"), Barrier(4)

        def import_it(path: str = path, start: Barrier = start) -> int:
            start.wait()
            return member("POST", f"{path}/import", DIRECT).status_code

        with ThreadPoolExecutor(4) as pool:
            assert sorted(one.result() for one in [pool.submit(import_it) for _ in range(4)]) == [202, 409, 409, 409]
        assert member("GET", f"{path}/file").data == b"content"


def test_a_staged_content_that_is_gone_is_a_conflict(there: World, member: Person) -> None:
    path = stage(member, make(member))
    (file,) = there.here.compute.images.iterdir()
    file.unlink()
    assert "was deleted or imported meanwhile" in refusal(member("POST", f"{path}/import", DIRECT), 409)


def test_a_staged_content_that_nobody_imports_is_given_up(there: World, member: Person) -> None:
    path = stage(member, make(member))
    compute = there.here.compute
    (file,) = compute.images.iterdir()
    orphan_files.sweep(compute)
    assert file.exists()
    aged(file, orphan_files.OLD_SECONDS + 60)
    with compute.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE compute_images SET updated_at = updated_at - interval '25 hours'")
    orphan_files.sweep(compute)
    assert (file.exists(), member.get(path)["status"]) == (False, "killed")
    assert image_data.content_file(compute, "x").parent == file.parent


def test_imports_count_towards_the_limits_of_a_project(there: World) -> None:
    who, half = limited(there, size_mb=1), bytes(1 << 19)
    first, second = (stage(who, make(who), half + b"x" * place) for place in (0, 1))
    assert who("POST", f"{first}/import", DIRECT).status_code == 202
    assert who("POST", f"{second}/import", DIRECT).status_code == 413
    assert who.get(second)["status"] == "uploading"


def test_a_deactivated_image_gives_out_nothing(there: World, member: Person, stranger: Person, admin: Person) -> None:
    image = make(member, visibility="community")
    path = f"{IMAGES}/{image['id']}"
    assert member("POST", f"{path}/actions/deactivate").status_code == 403
    fill(member, image)
    assert stranger("POST", f"{path}/actions/deactivate").status_code == 403
    for _ in range(2):
        assert member("POST", f"{path}/actions/deactivate").status_code == 204
    assert member.get(path)["status"] == "deactivated"
    assert "has been deactivated" in refusal(member("GET", f"{path}/file"), 403)
    assert admin("GET", f"{path}/file").data == b"x"
    assert "is not active" in message(member.boot(imageRef=image["id"], block_device_mapping_v2=...), 400, "badRequest")
    assert member.get(f"/compute/v2.1/images/{image['id']}")["image"]["status"] == "UNKNOWN"
    for _ in range(2):
        assert member("POST", f"{path}/actions/reactivate").status_code == 204
    assert member("GET", f"{path}/file").data == b"x"


def test_administrators_give_an_image_to_another_project(member: Person, admin: Person, stranger: Person) -> None:
    image = make(member, "given", visibility="private")
    change = [{"op": "replace", "path": "/owner", "value": "other-project"}]
    headers = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
    assert member("PATCH", f"{IMAGES}/{image['id']}", change, headers=headers).status_code == 403
    assert admin("PATCH", f"{IMAGES}/{image['id']}", change, headers=headers).status_code == 200
    assert stranger.get(f"{IMAGES}/{image['id']}")["owner"] == "other-project"
    assert member("GET", f"{IMAGES}/{image['id']}").status_code == 404
