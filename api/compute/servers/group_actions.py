"""Actions that give security groups to a server and take them from it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Response

from api.compute import validation
from api.compute.servers.action_bodies import GROUP_NAME
from api.compute.servers.servers import find, who
from api.request_context import compute
from climate.compute import errors
from climate.compute.network.operations import security_groups
from climate.domain.errors import NotFound


def add(server_id: str, details: Any) -> Response:
    """Give a server a further security group."""
    validation.may_write()
    given = GROUP_NAME.read_value(details, "addSecurityGroup")
    find(server_id)
    with _of_the_group():
        security_groups.add_to_server(compute(), who(server_id), given["name"])
    return Response(status=202)


def remove(server_id: str, details: Any) -> Response:
    """Take a security group from a server."""
    validation.may_write()
    given = GROUP_NAME.read_value(details, "removeSecurityGroup")
    find(server_id)
    with _of_the_group():
        security_groups.remove_from_server(compute(), who(server_id), given["name"])
    return Response(status=202)


@contextmanager
def _of_the_group() -> Iterator[None]:
    """Answer that the group was not found; for a server that was not, child zones would be asked."""
    try:
        yield
    except errors.NotFound as refusal:
        raise NotFound(str(refusal)) from None


ACTIONS = {"addSecurityGroup": add, "removeSecurityGroup": remove}
