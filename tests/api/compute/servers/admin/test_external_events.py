"""Events of servers over HTTP."""

from typing import Any
from uuid import uuid4

import pytest

from tests.api.compute.api_clients import Person, World, done, message

PATH = "/compute/v2.1/os-server-external-events"


def test_each_event_has_its_code(there: World, admin: Person, member: Person) -> None:
    made, unknown = member.booted(), str(uuid4())
    event = {"name": "network-changed", "server_uuid": made, "tag": "port"}
    assert done(admin("POST", PATH, {"events": [event]})) == {"events": [{**event, "status": "completed", "code": 200}]}
    other = {"name": "network-vif-plugged", "server_uuid": unknown}
    answer = admin("POST", PATH, {"events": [event, other]})
    assert (answer.status_code, [one["code"] for one in done(answer, 207)["events"]]) == (207, [200, 404])
    message(admin("POST", PATH, {"events": [other]}), 404, "itemNotFound")
    message(member("POST", PATH, {"events": [event]}), 403, "forbidden")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"events": []},
        {"events": {}},
        {"events": ["network-changed"]},
        {"events": [{"name": "network-changed", "server_uuid": "no-uuid"}]},
        {"events": [{"name": "none", "server_uuid": str(uuid4())}]},
        {"events": [{"name": "power-update", "server_uuid": str(uuid4())}]},
        {"events": [{"name": ["x"], "server_uuid": str(uuid4())}]},
        {"events": [{"name": "network-changed", "server_uuid": str(uuid4()), "status": "done"}]},
        {"events": [{"name": "network-changed", "server_uuid": str(uuid4()), "status": []}]},
        {"events": [{"name": "network-changed", "server_uuid": str(uuid4()), "tag": 5}]},
        {"events": [{"name": "network-changed", "server_uuid": str(uuid4()), "more": 1}]},
        {"events": [{"name": "network-changed", "server_uuid": str(uuid4())}] * 101},
        {"events": [{"name": "network-changed", "server_uuid": str(uuid4())}], "more": 1},
    ],
)
def test_bad_events_are_refused(admin: Person, body: dict[str, Any]) -> None:
    message(admin("POST", PATH, body), 400, "badRequest")
