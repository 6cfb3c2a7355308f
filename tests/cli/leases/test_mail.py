"""climate mail, and the notices whose delivery was given up."""

import pytest

from climate.cli.leases import mail
from climate.domain.notifications import Topic
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

PREFERENCES, NOTICES = "/reservation/v1/mail-preferences", "/reservation/v1/notices"


def test_topics_are_set_and_shown(cli: Cli, wire: Wire) -> None:
    assert cli("mail", "show", "-f", "value", "-c", "topics").out == "start\n"
    ran = cli("mail", "set", "start", "end_1h")
    assert wire.sent("PUT", PREFERENCES).body == {"topics": ["start", "end_1h"]}
    assert "no mail address" in ran.err
    assert "CLIMATE_SMTP_URL" in ran.err
    assert cli("mail", "set", "--none").code == 0
    assert wire.sent("PUT", PREFERENCES).body == {"topics": []}
    assert cli("mail", "set", "--all").code == 0
    assert wire.sent("PUT", PREFERENCES).body == {"topics": list(mail.TOPICS)}


@pytest.mark.parametrize("words", [(), ("later",), ("start", "--all"), ("--all", "--none"), ("start", "--none")])
def test_bad_topics_are_not_sent(cli: Cli, wire: Wire, words: tuple[str, ...]) -> None:
    assert cli("mail", "set", *words).code == 2
    assert wire.asked == []


def test_the_command_knows_each_topic() -> None:
    assert list(mail.TOPICS) == list(Topic)


def test_dead_letters_are_listed_and_sent_again(cli: Cli, wire: Wire) -> None:
    row = {"id": "7", "at": "2030-01-01T12:00:00.000000", "kind": "lease.ended", "message": "over"}
    wire.notices = [{**row, "audience": "mail", "attempts": 15, "error": "refused with 550"}]
    shown = cli("notice", "list", "--dead", "-f", "value", "-c", "id", "-c", "audience", "-c", "error")
    assert shown.out == "7 mail refused with 550\n"
    assert wire.sent("GET", NOTICES).query["dead"] == "true"
    assert cli("notice", "resend", "7", "8").code == 0
    assert [asked.path for asked in wire.asked[-2:]] == [f"{NOTICES}/7/resend", f"{NOTICES}/8/resend"]
