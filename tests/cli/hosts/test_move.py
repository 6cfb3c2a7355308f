"""The history of a host, with what switched its new allocations off."""

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

HISTORY = "/reservation/v1/os-hosts/1/history"
WHO = {"actor": {"user_id": "u1"}, "request_id": "r1", "at": "2030-01-01T12:00:00.000000"}
ENTRIES = [
    {"version": 1, "kind": "HostRegistered", **WHO, "body": {"pool": "reservation"}},
    {"version": 2, "kind": "HostOpened", **WHO, "body": {"reservable": False, "reason": "noisy"}},
]


def test_a_host_that_was_closed_is_said_to_be_closed(cli: Cli, wire: Wire) -> None:
    wire.recorded[HISTORY] = {"history": ENTRIES}
    shown = cli("host", "history", "1", "-f", "csv", "-c", "kind", "-c", "pool", "-c", "reason", "-c", "by").out
    assert shown == "kind,pool,reason,by\nHostRegistered,reservation,,u1\nHostClosed,,noisy,u1\n"


def test_programs_get_the_entries_as_they_are(cli: Cli, wire: Wire) -> None:
    wire.recorded[HISTORY] = {"history": ENTRIES}
    assert [one["kind"] for one in cli("host", "history", "1", "-f", "json").data] == ["HostRegistered", "HostOpened"]
