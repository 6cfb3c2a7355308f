"""Servers as their drivers need to know them."""

from climate.compute import images
from climate.compute.context import Compute
from climate.compute.flavor import Flavor, recorded
from climate.compute.image import ACTIVE, Image
from climate.compute.server import RESIZE, REVERT, UNSHELVE, Server
from climate.compute.virt import Guest


def guest(compute: Compute, server: Server, image: Image | None = None) -> Guest:
    """The guest of a server as the task under way wants it, made from this image where it has to be made.

    It has no interfaces yet: those are known when they are plugged in.
    """
    flavor = _flavor(server)
    content = images.place(compute, image.id) if image is not None and image.status == ACTIVE and image.size else None
    return Guest(
        id=server.id,
        name=server.name,
        node=server.node or "",
        vcpus=flavor.vcpus,
        ram_mb=flavor.ram_mb,
        disk_gb=flavor.disk_gb,
        image=content,
        properties={key: str(value) for key, value in image.properties.items()} if image else {},
    )


def source(server: Server) -> str | None:
    """The id of the image that a server would be made from now."""
    return server.shelved_image if server.task == UNSHELVE else server.image_id


def _flavor(server: Server) -> Flavor:
    if server.task == RESIZE:
        return recorded(server.task_details["flavor"])
    if server.task == REVERT and server.old_flavor is not None:
        return server.old_flavor
    return server.flavor
