"""climate calendar: what is sent, and the URL that is shown once."""

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

FEEDS = "/reservation/v1/calendar-feeds"


def test_a_feed_is_created_and_its_url_shown(cli: Cli, wire: Wire) -> None:
    ran = cli("calendar", "create", "--name", "GPU hosts", "-f", "value", "-c", "url")
    assert ran.out == f"{wire.url}/reservation/v1/calendar/s3.ics\n"
    assert "this once" in ran.err
    assert wire.sent("POST", FEEDS).body == {"name": "GPU hosts", "scope": "user"}
    assert cli("calendar", "create", "--project").code == 0
    assert wire.sent("POST", FEEDS).body == {"name": "Leases", "scope": "project"}


def test_feeds_are_listed_and_revoked_by_name_or_id(cli: Cli, wire: Wire) -> None:
    assert cli("calendar", "list", "-f", "value", "-c", "name").out == "GPU hosts\n"
    for wanted in ("GPU hosts", "f1"):
        assert cli("calendar", "delete", wanted).code == 0
        assert wire.asked[-1].path == f"{FEEDS}/f1"
    ran = cli("calendar", "delete", "others")
    assert (ran.code, "no calendar feed 'others'" in ran.err) == (3, True)
