"""Access of the caller to an image."""

from api.compute import validation
from api.request_context import caller, compute
from climate.compute.images import image_catalog
from climate.compute.models.image import Image
from climate.domain.errors import Forbidden


def find(image_id: str) -> Image:
    """Return an image that the caller may see."""
    validation.may_read()
    return image_catalog.get(compute(), image_id, validation.own_project())


def own(image_id: str) -> Image:
    """Return an image that the caller may change."""
    validation.may_write()
    image = find(image_id)
    if image.project_id != caller().project_id and not caller().is_admin:
        raise Forbidden(f"You are not permitted to change image {image.id}.")
    return image
