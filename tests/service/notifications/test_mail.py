"""Mail to users: what they asked for, reminders once each, and delivery to a real server."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import vobject  # type: ignore[import-untyped]
from sqlalchemy import text

from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.notifications import Notice, Topic
from climate.domain.policy import Caller
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.service.notifications import delivery, mail
from climate.service.notifications.delivery import Listing
from climate.service.usage import round as usage
from climate.settings import Settings
from climate.store.rounds import round_work
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service.lease_actions import claim, run
from tests.smtp_receiver import SENDER, Receiver, receiving

ADDRESS = "user@example.org"
ALL = list(Topic)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def sending(climate: Climate, receiver: Receiver) -> Climate:
    """An engine that sends mail to the receiver, with a user who asked for all of it."""
    settings = replace(climate.settings, smtp_url=f"smtp://127.0.0.1:{receiver.port}", mail_from=SENDER, notify_tries=3)
    made = replace(climate, settings=settings, addresses=lambda ids: {MEMBER.user_id: ADDRESS} if ids else {})
    mail.set_preferences(made, MEMBER, ALL)
    mail.deliver(made)
    return made


def booked(climate: Climate, clock: Clock, hours: float, length: float, name: str = "training") -> Lease:
    begin = clock.time + timedelta(hours=hours)
    wanted = [{"resource_type": "physical:host", "min": 1, "max": 1, "before_end": ""}]
    return leases.create(climate, MEMBER, LeaseRequest(name, begin, begin + timedelta(hours=length), None, wanted))


def say(climate: Climate, kind: str = "lease.ended", message: str = "over", **more: Any) -> None:
    with climate.engine.begin() as conn:
        notice = Notice(kind, message, MEMBER.project_id, **{"user_id": MEMBER.user_id, **more})
        delivery.notify(conn, climate.now(conn), notice)


def rows(climate: Climate) -> list[Any]:
    with climate.engine.connect() as conn:
        query = "SELECT id, kind, attempts, error, next_at FROM notices WHERE audience = 'mail' ORDER BY id"
        return list(conn.execute(text(query)))


def subjects(receiver: Receiver) -> list[str]:
    return [str(message["Subject"]) for _, message in receiver.got]


def carry_out(climate: Climate) -> None:
    for message in claim(climate):
        run(climate, message)


def test_mail_has_text_html_and_the_lease(sending: Climate, clock: Clock, receiver: Receiver) -> None:
    lease = booked(sending, clock, 1, 2)
    say(sending, message="Lease training has ended", lease_id=lease.id)
    assert mail.deliver(sending) == 1
    ((recipients, message),) = receiver.got
    assert (recipients, message["To"], message["From"]) == ([ADDRESS], ADDRESS, SENDER)
    assert message["Subject"] == "Lease training has ended"
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert str(lease.id) in plain.get_content()
    assert "<p>Lease training has ended</p>" in html.get_content()
    (attached,) = message.iter_attachments()
    assert attached.get_content_type() == "text/calendar"
    calendar = vobject.readOne(attached.get_content())
    assert calendar.vevent.uid.value == f"{lease.id}@climate"


def test_only_what_was_asked_for_is_mailed(sending: Climate, receiver: Receiver) -> None:
    mail.set_preferences(sending, MEMBER, [Topic.HEALED])
    say(sending, "lease.ended")
    say(sending, "lease.healed", "healed")
    say(sending, "lease.healed", "of another user", user_id="other-user")
    say(sending, "host.failed", "never mailed")
    mail.deliver(sending)
    assert subjects(receiver) == ["healed"]
    assert mail.preferences(sending, MEMBER).topics == [Topic.HEALED]


def test_mail_is_written_in_the_statement_of_its_notice(sending: Climate) -> None:
    with sending.engine.begin() as conn:
        told = [Notice("lease.ended", str(n), "project", MEMBER.user_id) for n in range(5)]
        assert cost(sending.engine, lambda: delivery.notify(conn, sending.now(conn), *told)) == 1
        conn.rollback()
    assert rows(sending) == []


def test_reminders_come_once_for_each_start_and_end(sending: Climate, clock: Clock, receiver: Receiver) -> None:
    lease = booked(sending, clock, 2, 30)
    for _ in range(34 * 2):
        mail.deliver(sending)
        clock.forward(minutes=30)
        carry_out(sending)
    said = [subject for subject in subjects(receiver) if "s at " in subject]
    start, end = f"{lease.period.start:%Y-%m-%d %H:%M:%S} UTC", f"{lease.period.end:%Y-%m-%d %H:%M:%S} UTC"
    assert said == [
        f"Lease training starts at {start}",
        f"Lease training ends at {end}",
        f"Lease training ends at {end}",
    ]
    assert subjects(receiver)[-1] == "Lease training has ended"


def test_a_prolonged_lease_is_reminded_of_its_new_end(sending: Climate, clock: Clock, receiver: Receiver) -> None:
    lease = booked(sending, clock, 0, 3)
    carry_out(sending)
    clock.forward(hours=2, minutes=5)
    mail.deliver(sending)
    update.update(sending, MEMBER, lease.id, Changes(end=lease.period.end + timedelta(hours=5)))
    mail.deliver(sending)
    clock.forward(hours=5)
    mail.deliver(sending)
    mail.deliver(sending)
    assert [subject.split(" at ")[1][11:16] for subject in subjects(receiver)] == ["15:00", "20:00"]


def test_a_worker_that_was_away_reminds_of_nothing_that_is_over(
    sending: Climate, clock: Clock, receiver: Receiver
) -> None:
    booked(sending, clock, 2, 2)
    clock.forward(hours=10)
    mail.deliver(sending)
    assert receiver.got == []


def test_two_workers_write_each_reminder_once(sending: Climate, clock: Clock) -> None:
    booked(sending, clock, 2, 3)
    clock.forward(hours=1, minutes=5)
    away = replace(sending, settings=replace(sending.settings, smtp_url="smtp://127.0.0.1:1"))
    for _ in range(3):
        mail.deliver(away)
    assert [row.kind for row in rows(sending)] == ["lease.reminder.start"]


def test_a_server_that_is_away_gets_the_same_message_later(sending: Climate, clock: Clock, receiver: Receiver) -> None:
    away = replace(sending, settings=replace(sending.settings, smtp_url="smtp://127.0.0.1:1"))
    say(sending)
    assert mail.deliver(away) == 0
    ((_, _, attempts, error, next_at),) = rows(sending)
    assert (attempts, error) == (1, "the mail server cannot be reached: Connection refused")
    assert timedelta(seconds=2.5) <= next_at - clock.time <= timedelta(seconds=5)
    receiver.answers = ["die"]
    clock.forward(minutes=1)
    mail.deliver(sending)
    clock.forward(minutes=1)
    mail.deliver(sending)
    assert len({message["Message-ID"] for _, message in receiver.got}) == 1
    assert len(receiver.got) == 2, "the server took it before it died: at least once, with one Message-ID"


def test_dead_letters_are_listed_and_sent_again(sending: Climate, clock: Clock, receiver: Receiver) -> None:
    receiver.refused = {ADDRESS: f"550 {ADDRESS} is unknown"}
    say(sending, message="one")
    mail.deliver(sending)
    (dead,) = delivery.listed(sending, MEMBER, Listing(dead=True))
    assert (dead.notice.message, dead.attempts) == ("one", 1)
    assert dead.error == "the mail server refused the recipient with 550"
    clock.forward(days=1)
    assert mail.deliver(sending) == 0
    receiver.refused = {}
    delivery.resend(sending, ADMIN, dead.id)
    assert mail.deliver(sending) == 1
    assert delivery.listed(sending, ADMIN, Listing(dead=True)) == []


def test_a_mail_is_given_up_after_its_tries(sending: Climate, clock: Clock) -> None:
    away = replace(sending, settings=replace(sending.settings, smtp_url="smtp://127.0.0.1:1"))
    say(sending)
    for _ in range(5):
        mail.deliver(away)
        clock.forward(hours=2)
    ((_, _, attempts, _, next_at),) = rows(sending)
    assert (attempts, next_at) == (3, None)


@pytest.mark.parametrize(
    "address", [None, "", "a@b.c\r\nBcc: x@example.org", "a@b.c, x@example.org", "Name <a@b.c>", "@"]
)
def test_users_without_a_usable_address(sending: Climate, receiver: Receiver, address: str | None) -> None:
    known = {} if address is None else {MEMBER.user_id: address}
    say(sending)
    mail.deliver(replace(sending, addresses=lambda _: known))
    assert receiver.got == []
    assert [row.error for row in rows(sending)] == [mail.NO_ADDRESS]


def test_mail_and_webhooks_do_not_wait_for_each_other(sending: Climate, receiver: Receiver, clock: Clock) -> None:
    hooked = replace(sending, settings=replace(sending.settings, notify_url="http://127.0.0.1:1", notify_private=True,
                                               notify_secret=f"whsec_{'A' * 44}"))  # fmt: skip
    lease = booked(sending, clock, 1, 2)
    say(hooked, lease_id=lease.id)
    delivery.deliver(hooked)
    assert mail.deliver(hooked) == 1
    assert subjects(receiver) == ["over"]


def test_a_deployment_without_a_server_keeps_no_mail_due(climate: Climate) -> None:
    mail.set_preferences(climate, MEMBER, ALL)
    say(climate)
    mail.deliver(climate)
    assert [(row.next_at, row.error) for row in rows(climate)] == [(None, "")]
    assert delivery.listed(climate, ADMIN, Listing(dead=True)) == []


def test_rounds_look_for_reminders_every_half_minute(climate: Climate, clock: Clock) -> None:
    def is_due() -> bool:
        with climate.engine.connect() as conn:
            return round_work.is_outside(conn, clock.time)

    usage.run_round(climate)
    assert not is_due()
    mail.set_preferences(climate, Caller("user", "project", frozenset({"reader"})), [Topic.START])
    assert is_due()
    mail.deliver(climate)
    assert not is_due()
    clock.forward(seconds=31)
    assert is_due()


def test_settings_hide_the_password() -> None:
    assert "canary" not in repr(Settings(smtp_url="smtps://u:canary@mail"))
