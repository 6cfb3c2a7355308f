"""Members of images, without the API: races, deleted projects, and images that a zone looks up by name."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.images import image_catalog, members
from climate.compute.models.image import ACTIVE, PRIVATE, SHARED, Content, Image
from climate.compute.projects import contents
from climate.compute.store.projects import images as rows
from climate.compute.zones.builds import request_spec
from tests.compute.cloud_factory import Place


def made(here: Place, visibility: str = SHARED) -> str:
    image = Image(str(uuid4()), "lent", "owner", "queued", visibility, "raw", "bare", None, None)
    image_catalog.register(here.compute, image)
    with here.compute.engine.begin() as conn:
        rows.settle(conn, image.id, ACTIVE, here.compute.now(conn), Content(1, "x"))
    return image.id


def test_an_image_is_shared_with_a_project_once(here: Place) -> None:
    image_id = made(here)

    def share(_: int) -> bool:
        try:
            members.add(here.compute, image_id, "other", "owner")
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as people:
        assert sorted(people.map(share, range(4))) == [False, False, False, True]
    assert [one.project_id for one in members.listed(here.compute, image_id, "owner")] == ["other"]


def test_a_deleted_project_is_no_member(here: Place) -> None:
    image_id = made(here)
    members.add(here.compute, image_id, "other", None)
    with here.compute.engine.begin() as conn:
        contents.delete_settings(conn, "other")
    assert members.listed(here.compute, image_id, None) == []
    with pytest.raises(NotFound):
        members.get(here.compute, image_id, "other", None)


def test_a_zone_looks_up_images_that_its_project_has_accepted(here: Place) -> None:
    image_id = made(here)
    made(here, PRIVATE)
    members.add(here.compute, image_id, "other", "owner")

    def named() -> str:
        with here.compute.engine.connect() as conn:
            return request_spec.image_named(conn, "lent", "other")

    with pytest.raises(BadRequest, match="could not be found in this zone"):
        named()
    members.answer(here.compute, image_id, "other", "accepted", "other")
    assert named() == image_id
    members.remove(here.compute, image_id, "other", "owner")
    with pytest.raises(NotFound, match="has no member"):
        members.remove(here.compute, image_id, "other", "owner")
