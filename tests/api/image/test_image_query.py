"""Query strings of lists of images."""

from tests.api.compute.api_clients import Person
from tests.api.compute.test_images import IMAGES, refusal


def test_words_that_a_list_does_not_know_are_refused(member: Person) -> None:
    for key, word, known in (
        ("member_status", "maybe", "all, pending, accepted, rejected"),
        ("visibility", "open", "all, public"),
        ("sort", "color", "created_at"),
    ):
        assert known in refusal(member("GET", f"{IMAGES}?{key}={word}"), 400)


def test_an_image_without_an_id_is_none(member: Person) -> None:
    for path in (f"{IMAGES}/", "/compute/v2.1/images/", "/compute/v2.1/os-security-groups/"):
        assert [member(method, path).status_code for method in ("GET", "DELETE")] == [404, 404]
