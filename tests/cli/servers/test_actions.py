"""What becomes of a server that is there: the commands, what they send, and how they wait."""

import pytest

from climate.cli.servers.actions import VERBS
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

SERVERS = "/compute/v2.1/servers"


@pytest.fixture
def server_id(cli: Cli, wire: Wire) -> str:
    cli("boot", "s1", "--flavor", "small", "--image", "cirros", "--wait")
    return next(iter(wire.servers))


@pytest.mark.parametrize(("name", "action", "wanted", "_"), VERBS)
def test_every_verb_sends_its_action_and_waits_for_its_status(
    cli: Cli, wire: Wire, server_id: str, name: str, action: str, wanted: tuple[str, ...], _: str
) -> None:
    wire.after[action] = (*wanted, "ACTIVE")[0]
    assert cli("server", name, "s1", "--wait").code == 0
    assert wire.sent("POST", f"{SERVERS}/{server_id}/action").body == {action: None}
    if wanted:
        wire.after[action] = "ERROR"
        wire.servers[server_id]["fault"] = {"message": "the switch is stuck"}
        ran = cli("server", name, server_id, "--wait")
        assert (ran.code, "the switch is stuck" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (("reboot", "s1"), {"reboot": {"type": "SOFT"}}),
        (("reboot", "s1", "--hard", "--wait"), {"reboot": {"type": "HARD"}}),
        (("resize", "s1", "--flavor", "small"), {"resize": {"flavorRef": "1"}}),
        (("rebuild", "s1", "--image", "cirros"), {"rebuild": {"imageRef": "i1"}}),
        (
            ("rebuild", "s1", "--image", "cirros", "--name", "s2", "--metadata", "a=b=c"),
            {"rebuild": {"imageRef": "i1", "name": "s2", "metadata": {"a": "b=c"}}},
        ),
        (("rescue", "s1"), {"rescue": None}),
        (("rescue", "s1", "--image", "cirros"), {"rescue": {"rescue_image_ref": "i1"}}),
        (("lock", "s1"), {"lock": None}),
        (("lock", "s1", "--reason", "mine"), {"lock": {"locked_reason": "mine"}}),
    ],
)
def test_what_commands_send(
    cli: Cli, wire: Wire, server_id: str, words: tuple[str, ...], sent: dict[str, object]
) -> None:
    assert cli("server", *words).code == 0
    assert wire.sent("POST", f"{SERVERS}/{server_id}/action").body == sent


def test_a_rescue_is_awaited(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.after["rescue"] = "RESCUE"
    assert "RESCUE" in cli("server", "rescue", "s1", "--wait").out
    wire.after["rescue"] = "ERROR"
    assert cli("server", "rescue", "s1", "--wait").code == 1


def test_actions_that_came_to_nothing_say_so(cli: Cli, server_id: str) -> None:
    assert cli("server", "actions", "s1", "-f", "value", "-c", "action", "-c", "message").out == "stop Error\n"


def test_a_server_that_is_not_there(cli: Cli) -> None:
    assert cli("server", "stop", "nobody").code == 3
