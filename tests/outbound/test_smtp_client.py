"""The SMTP client, against a real server."""

import socket
from email.message import EmailMessage
from pathlib import Path

import pytest

from climate.outbound import smtp_client
from climate.outbound.smtp_client import OutgoingMail, Security, Sent, send_all
from tests.smtp_receiver import PASSWORD, SENDER, USER, receiving, trusting

TO = "demo@example.org"


def letter(text: str = "one", recipient: str = TO) -> OutgoingMail:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = text, SENDER, recipient
    message.set_content(text)
    return OutgoingMail(recipient, message)


def test_messages_arrive_over_one_connection() -> None:
    with receiving() as receiver:
        assert send_all(receiver.server(), [letter("one"), letter("two", "b@example.org")]) == [Sent(), Sent()]
    assert [(to, message["Subject"]) for to, message in receiver.got] == [([TO], "one"), (["b@example.org"], "two")]


@pytest.mark.parametrize("security", [Security.STARTTLS, Security.TLS])
def test_encryption_and_a_password(tmp_path: Path, security: Security) -> None:
    with receiving(tmp_path, security) as receiver:
        wanted = {"security": security, "user": USER, "password": PASSWORD}
        assert send_all(receiver.server(**wanted, context=trusting), [letter()]) == [Sent()]
        (untrusted,) = send_all(receiver.server(**wanted), [letter()])
        assert "the certificate of the mail server is not accepted" in untrusted.error
        (wrong,) = send_all(receiver.server(**{**wanted, "password": "wrong"}, context=trusting), [letter()])
        assert wrong == Sent("the mail server refused the user or the password with 535")
    assert len(receiver.got) == 1


def test_a_server_without_starttls_gets_no_password() -> None:
    with receiving() as receiver:
        wanted = receiver.server(security=Security.STARTTLS, user=USER, password=PASSWORD, context=trusting)
        assert send_all(wanted, [letter()]) == [Sent("the mail server offers no STARTTLS, or no way to sign in")]
    assert receiver.got == []


def test_one_refused_recipient_does_not_affect_the_others() -> None:
    with receiving() as receiver:
        receiver.refused = {"gone@example.org": "550 gone@example.org is unknown", "full@example.org": "452 full"}
        letters = [letter("a", "gone@example.org"), letter("b", "full@example.org"), letter("c")]
        results = send_all(receiver.server(), letters)
    assert results == [
        Sent("the mail server refused the recipient with 550", for_good=True),
        Sent("the mail server refused the recipient with 452"),
        Sent(),
    ]
    assert [message["Subject"] for _, message in receiver.got] == ["c"]


def test_refused_messages() -> None:
    with receiving() as receiver:
        receiver.answers = ["554 no", "451 later"]
        results = send_all(receiver.server(), [letter("a"), letter("b"), letter("c")])
    assert results == [
        Sent("the mail server refused the message with 554", for_good=True),
        Sent("the mail server refused the message with 451"),
        Sent(),
    ]


def test_a_server_that_dies_after_data_is_connected_to_anew() -> None:
    with receiving() as receiver:
        receiver.answers = ["die"]
        results = send_all(receiver.server(), [letter("a"), letter("b")])
    assert [(bool(result.error), result.for_good) for result in results] == [(True, False), (False, False)]
    assert [message["Subject"] for _, message in receiver.got] == ["a", "b"]


def test_a_server_that_is_away() -> None:
    with receiving() as receiver:
        server = receiver.server()
    results = send_all(server, [letter("a"), letter("b")])
    assert [result.for_good for result in results] == [False, False]
    assert {result.error for result in results} == {"the mail server cannot be reached: Connection refused"}


def test_a_server_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, receiving() as receiver:
        receiver.port = silent.getsockname()[1]
        results = send_all(receiver.server(seconds=0.2), [letter("a"), letter("b")])
    assert results == [Sent("the mail server closed the connection, or did not answer in time")] * 2


def test_what_takes_too_long_is_left_for_later() -> None:
    times = iter((0.0, 1.0, smtp_client.TOGETHER + 1))
    with receiving() as receiver:
        results = send_all(receiver.server(), [letter("a"), letter("b"), letter("c")], lambda: next(times))
    assert results == [Sent(), Sent(smtp_client.LATER), Sent(smtp_client.LATER)]


def test_no_password_is_shown() -> None:
    with receiving() as receiver:
        assert PASSWORD not in repr(receiver.server(user=USER, password=PASSWORD))
