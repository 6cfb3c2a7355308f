"""Bodies of server actions in each form."""

from typing import Any

import pytest
from werkzeug.exceptions import UnprocessableEntity

from api.compute.servers.actions import action_bodies as actions
from api.schema.body import Body
from climate.compute.models.server import REBOOT_HARD
from climate.domain.errors import InvalidInput

NETWORK = "6f9d2c7e-0000-4000-8000-00000000abcd"
LIVE = {"host": None, "block_migration": "auto"}


@pytest.mark.parametrize(
    ("body", "given", "values"),
    [
        (actions.REBOOT_BODY, {"type": "hard"}, {"type": REBOOT_HARD}),
        (actions.RESIZE, {"flavorRef": "1", "OS-DCF:diskConfig": "AUTO"}, {"flavor_ref": "1", "disk_config": "AUTO"}),
        (
            actions.REBUILD,
            {"imageRef": "i", "adminPass": "x"},
            {"image_ref": "i", "description": None, "password": "x"},
        ),
        (actions.CREATE_IMAGE, {"name": "i", "metadata": None}, {"name": "i", "metadata": {}}),
        (actions.MIGRATE, None, {"host": None}),
        (actions.LIVE, LIVE, LIVE),
        (actions.LIVE_TO_67, LIVE | {"force": "yes"}, LIVE | {"force": True}),
        (actions.EVACUATE_TO_13, {"onSharedStorage": "0"}, {"host": None, "on_shared_storage": False}),
        (actions.UNSHELVE, {"availability_zone": None}, {"zone": None}),
        (actions.LOCK, None, {"reason": None}),
        (actions.CONSOLE_OUTPUT, {"length": "-1"}, {"length": None}),
        (actions.CONSOLE_OUTPUT, {"length": 5}, {"length": 5}),
        (actions.ADD_FIXED, {"networkId": NETWORK}, {"network_id": NETWORK}),
    ],
)
def test_what_is_read(body: Body, given: Any, values: dict[str, Any]) -> None:
    assert body.read_value(given, "action") == values


@pytest.mark.parametrize(
    ("body", "given", "says"),
    [
        (actions.REBOOT_BODY, {"type": "soft", "x": 1}, "reboot: 'x' cannot be set; known are type"),
        (actions.REBOOT_BODY, {}, "reboot: type must be SOFT or HARD"),
        (actions.RESIZE, {}, "flavorRef must be the id of a flavor"),
        (actions.REBUILD_TO_53, {"imageRef": "i", "key_name": "k"}, "rebuild: key_name cannot be set"),
        (actions.REBUILD_54_TO_56, {"imageRef": "i", "user_data": "eA=="}, "rebuild: user_data cannot be set"),
        (actions.REBUILD, {"imageRef": "i", "user_data": "x y"}, "rebuild.user_data must be Base64"),
        (actions.REBUILD, {"imageRef": "i", "name": ""}, "rebuild.name must be a text"),
        (actions.MIGRATE, {"x": 1}, 'migrate must be null or like {"host": "node-2"}'),
        (actions.LIVE, {"host": None}, "os-migrateLive: block_migration must be given"),
        (
            actions.LIVE,
            LIVE | {"force": True},
            "os-migrateLive: 'force' cannot be set; known are block_migration, host",
        ),
        (actions.LIVE_TO_24, LIVE | {"disk_over_commit": 0}, "os-migrateLive.block_migration must be true or false"),
        (actions.EVACUATE, {"force": True}, "evacuate: 'force' cannot be set; known are adminPass, host"),
        (actions.UNSHELVE, {"availability_zone": "a:b"}, "availability_zone must be the name of a zone"),
        (actions.LOCK, {"locked_reason": " "}, "lock.locked_reason must be a text"),
        (actions.RESET_STATE, {"state": "deleted"}, "os-resetState: state must be active or error"),
        (actions.CONSOLE_OUTPUT, [], "action must be an object"),
        (actions.FORCE_COMPLETE, {"force_complete": 1}, 'The body must be {"force_complete": null}'),
        (actions.FORCE_COMPLETE, {}, 'The body must be {"force_complete": null}'),
        (actions.REMOVE_FLOATING, {"address": "x"}, "address must be an IPv4 address, not 'x'"),
    ],
)
def test_what_is_refused(body: Body, given: Any, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        body.read_value(given, "action")
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize("given", [None, [], {}, {"address": "10.0.0.1"}])
def test_fixed_ip_without_a_network_is_unprocessable(given: Any) -> None:
    with pytest.raises(UnprocessableEntity, match="addFixedIp: networkId is missing"):
        actions.ADD_FIXED.read_value(given, "addFixedIp")


def test_document_has_a_form_of_each_microversion() -> None:
    live = [form for form in actions.shape()["anyOf"] if "os-migrateLive" in form["properties"]]
    assert [sorted(form["properties"]["os-migrateLive"]["required"]) for form in live] == [
        ["block_migration", "disk_over_commit", "host"],
        ["block_migration", "host"],
    ]
