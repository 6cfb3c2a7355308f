"""Events that other services report about servers, as Neutron and Cinder report them to Nova.

The networks and volumes of climate are in the same database: an event is checked and answered, and has no effect.
"""

from collections.abc import Mapping

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.request_context import compute
from api.schema import shapes
from api.schema.body import Body, Key, Values
from climate.compute import server_operations
from climate.compute.errors import NotFound
from climate.domain.errors import InvalidInput

MOST = 100
"""Maximum number of events in a request."""
NAMES: Mapping[str, int] = {
    "network-changed": 1,
    "network-vif-plugged": 1,
    "network-vif-unplugged": 1,
    "network-vif-deleted": 1,
    "volume-extended": 51,
    "power-update": 76,
}
"""Name of each event -> the microversion since which it is known."""
STATUSES = ("failed", "completed", "in-progress")
EVENT: shapes.Schema = {
    "type": "object",
    "properties": {
        "name": shapes.one_of(*NAMES),
        "server_uuid": shapes.uuid(),
        "status": shapes.one_of(*STATUSES),
        "tag": shapes.text(),
    },
    "required": ["name", "server_uuid"],
    "additionalProperties": False,
}

blueprint = compute_blueprint("external-events")


def _events(value: object, field: str) -> list[dict[str, object]]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST:
        raise InvalidInput(f"{field} must be a list of 1 to {MOST} events")
    return [_event(one) for one in value]


def _event(one: object) -> dict[str, object]:
    if not isinstance(one, dict) or one.keys() - EVENT["properties"].keys():
        raise InvalidInput(f"An event must be an object with {', '.join(EVENT['properties'])}")
    name, status = one.get("name"), one.get("status", "completed")
    if not isinstance(name, str) or name not in NAMES or not since(NAMES[name]):
        raise InvalidInput(f"The name of an event must be one of {', '.join(NAMES)}, not {str(name)[:40]!r}")
    if status not in STATUSES or not isinstance(one.get("tag", ""), str):
        raise InvalidInput(f"The status of an event must be one of {', '.join(STATUSES)}, and its tag a text")
    return {**one, "server_uuid": validation.uuid(one.get("server_uuid"), "server_uuid"), "status": status}


class Events(Body):
    """Events of servers."""

    UNKNOWN = "there is no key {first!r}; there is events"

    events = Key(_events, {**shapes.listing(EVENT, MOST), "minItems": 1}, required=True)


EVENTS = Events()


@blueprint.post("/os-server-external-events")
def create() -> tuple[dict[str, object], int]:
    """Check events of servers (administrator); each answer has the code of its event."""
    validation.may_administer()
    answers = [_answer(event) for event in EVENTS.read(read_object())["events"]]
    if all(answer["code"] == 404 for answer in answers):
        raise NotFound("No instances found for any event")
    return {"events": answers}, 200 if all(answer["code"] == 200 for answer in answers) else 207


def _answer(event: Values) -> dict[str, object]:
    try:
        server = server_operations.get(compute(), event["server_uuid"])
    except NotFound:
        return {**event, "status": "failed", "code": 404}
    return {**event, "code": 200} if server.node is not None else {**event, "status": "failed", "code": 422}
