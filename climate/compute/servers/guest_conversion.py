"""Conversion of servers into the guests of drivers."""

from pathlib import Path

from climate.compute.context import Compute
from climate.compute.images import image_data
from climate.compute.models.flavor import Flavor, recorded
from climate.compute.models.image import ACTIVE, Image
from climate.compute.models.server import RESCUE, RESCUED, RESIZE, REVERT, UNRESCUE, UNSHELVE, Server
from climate.compute.virt import Guest


def guest(compute: Compute, server: Server, image: Image | None = None) -> Guest:
    """Return the guest of a server for the task in progress, created from this image if it must be created.

    It has no interfaces yet: those are known when they are plugged in.
    """
    flavor, shelved = _flavor(server), server.task == UNSHELVE and server.shelved_image is not None
    ordinary = image_data.content_file(compute, server.image_id) if shelved and server.image_id is not None else None
    return Guest(
        id=server.id,
        name=server.name,
        node=server.node or "",
        vcpus=flavor.vcpus,
        ram_mb=flavor.ram_mb,
        disk_gb=flavor.disk_gb,
        image=_content(compute, server, image),
        carried=shelved,
        rescued=server.task == RESCUE or (server.status == RESCUED and server.task != UNRESCUE),
        again=ordinary,
        properties={key: str(value) for key, value in image.properties.items()} if image else {},
    )


def _content(compute: Compute, server: Server, image: Image | None) -> Path | None:
    """Return the content file to start from; None if there is none, as for a deleted image."""
    image_id = source(server)
    if image_id is None or (image is not None and not (image.status == ACTIVE and image.size)):
        return None
    return image_data.content_file(compute, image_id)


def source(server: Server) -> str | None:
    """Return the id of the image that a server would be created from now."""
    if server.task == RESCUE:
        return str(server.task_details["image"])
    return server.shelved_image if server.task == UNSHELVE else server.image_id


def _flavor(server: Server) -> Flavor:
    if server.task == RESIZE:
        return recorded(server.task_details["flavor"])
    if server.task == REVERT and server.old_flavor is not None:
        return server.old_flavor
    return server.flavor
