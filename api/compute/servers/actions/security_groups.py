"""Actions that give security groups to a server and take them from it."""

from collections.abc import Callable

from flask import Response

from api.compute import validation
from api.compute.servers.actions.action_bodies import GROUP_NAME
from api.compute.servers.servers import find, who
from api.request_context import compute
from climate.compute import errors
from climate.compute.context import Compute
from climate.compute.network.operations import security_groups
from climate.compute.servers.interfaces.interfaces import Requester
from climate.domain.errors import NotFound

Action = Callable[[str, object], Response]


def _action(word: str, change: Callable[[Compute, Requester, str], None]) -> Action:
    """Return the action `word`, which applies `change` to a server and to the group that the body names."""

    def act(server_id: str, details: object) -> Response:
        validation.may_write()
        given = GROUP_NAME.read_value(details, word)
        find(server_id)
        try:
            change(compute(), who(server_id), given["name"])
        except errors.NotFound as refusal:  # the group; for a server that is not here, child zones are asked
            raise NotFound(str(refusal)) from None
        return Response(status=202)

    return act


ACTIONS = {
    "addSecurityGroup": _action("addSecurityGroup", security_groups.add_to_server),
    "removeSecurityGroup": _action("removeSecurityGroup", security_groups.remove_from_server),
}
