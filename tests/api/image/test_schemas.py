"""JSON schemas that Image serves."""

import pytest

from tests.api.compute.api_clients import Person
from tests.api.compute.test_images import make, refusal

S = "/image/v2/schemas"
NAMES = {
    "image": "image",
    "images": "images",
    "member": "member",
    "members": "members",
    "metadefs/namespace": "namespace",
    "metadefs/namespaces": "namespaces",
    "metadefs/resource_type": "resource_type_association",
    "metadefs/resource_types": "resource_type_associations",
    "metadefs/property": "property",
    "metadefs/properties": "properties",
    "metadefs/object": "object",
    "metadefs/objects": "objects",
    "metadefs/tag": "tag",
    "metadefs/tags": "tags",
}


@pytest.mark.parametrize("path", NAMES)
def test_a_schema_has_a_name_and_properties(member: Person, path: str) -> None:
    shown = member.get(f"{S}/{path}")
    assert (shown["name"], "properties" in shown) == (NAMES[path], True)


def test_the_schema_of_images_has_all_that_an_image_shows(member: Person) -> None:
    assert make(member).keys() - member.get(f"{S}/image")["properties"].keys() == set()
    assert "There is no schema picture" in refusal(member("GET", f"{S}/picture"), 404)
