"""OpenAPI descriptions of server actions: a body with one key."""

from api.compute.servers.actions import action_bodies
from api.schema.shapes import Operation, below, text, thing

CONSOLE = below("remote_console", thing(("protocol", "type"), protocol=text(), type=text()))

OPERATIONS = {
    ("POST", "/servers/<server_id>/action"): Operation(
        {200: {"type": "object"}, 202: None, 204: None}, action_bodies.shape(), refuses=(409, 422, 501)
    ),
    ("POST", "/servers/<server_id>/remote-consoles"): Operation({}, CONSOLE, refuses=(501,)),
}
