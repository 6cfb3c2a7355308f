"""SMTP client: sends several messages over one connection, and says of each whether to try it again.

Results never repeat what the server said: it may contain addresses.
"""

import smtplib
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from enum import StrEnum

TOGETHER = 40.0
"""Seconds after which the rest of the messages is left for later."""

CLOSING = 421
"""Code with which a server closes the connection."""

LATER = "the mail server was too slow for all messages; this one was not tried"


class Security(StrEnum):
    """Encryption of the connection."""

    NONE = "none"
    STARTTLS = "starttls"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class MailServer:
    """Server that sends mail. `seconds` is the timeout of each step."""

    host: str
    port: int
    security: Security
    user: str = field(repr=False)
    password: str = field(repr=False)
    sender: str
    seconds: float
    context: Callable[[], ssl.SSLContext] = field(default=ssl.create_default_context, repr=False)


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    """A message and the address of its only recipient."""

    recipient: str
    message: EmailMessage


@dataclass(frozen=True, slots=True)
class Sent:
    """Result for a message: "" if the server has taken it. One that is refused for good is not tried again."""

    error: str = ""
    for_good: bool = False


class _Unreachable(Exception):
    """No message can be sent at the moment."""


def send_all(
    server: MailServer, letters: Sequence[OutgoingMail], clock: Callable[[], float] = time.monotonic
) -> list[Sent]:
    """Send messages one after the other, and return the result of each.

    A lost connection is opened again for the next message. While the server cannot be reached, the rest is not tried.
    """
    results: list[Sent] = []
    connection: smtplib.SMTP | None = None
    ends = clock() + TOGETHER
    for letter in letters:
        if clock() > ends:
            return [*results, *[Sent(LATER)] * (len(letters) - len(results))]
        try:
            connection = connection or _connect(server)
        except _Unreachable as error:
            connection = None
            return [*results, *[Sent(str(error))] * (len(letters) - len(results))]
        result, is_open = _send(connection, server, letter)
        results.append(result)
        if not is_open:
            connection.close()
            connection = None
    if connection is not None:
        _quit(connection)
    return results


def _connect(server: MailServer) -> smtplib.SMTP:
    connection: smtplib.SMTP | None = None
    try:
        if server.security is Security.TLS:
            connection = smtplib.SMTP_SSL(server.host, server.port, timeout=server.seconds, context=server.context())
        else:
            connection = smtplib.SMTP(server.host, server.port, timeout=server.seconds)
        if server.security is Security.STARTTLS:
            connection.starttls(context=server.context())
        if server.user:
            connection.login(server.user, server.password)
    except (smtplib.SMTPException, OSError) as error:
        if connection is not None:
            connection.close()
        raise _Unreachable(_why(error)) from None
    return connection


def _send(connection: smtplib.SMTP, server: MailServer, letter: OutgoingMail) -> tuple[Sent, bool]:
    """Send a message; return its result, and whether the connection can be used again."""
    try:
        connection.send_message(letter.message, server.sender, [letter.recipient])
    except smtplib.SMTPRecipientsRefused as refused:
        code = min(code for code, _ in refused.recipients.values())
        return _refused("the recipient", code), code != CLOSING
    except smtplib.SMTPSenderRefused as refused:
        return _refused("the sender", refused.smtp_code), refused.smtp_code != CLOSING
    except smtplib.SMTPDataError as refused:
        return _refused("the message", refused.smtp_code), refused.smtp_code != CLOSING
    except smtplib.SMTPNotSupportedError:
        return Sent("the mail server takes no address with other characters than ASCII", for_good=True), True
    except (smtplib.SMTPException, OSError) as error:
        return Sent(_why(error)), False
    return Sent(), True


def _refused(what: str, code: int) -> Sent:
    """Return the result of a refusal: codes from 500 on are for good, 421 and other codes from 400 on pass."""
    return Sent(f"the mail server refused {what} with {code}", for_good=code >= 500)


def _why(error: Exception) -> str:
    """Return the reason of a failure, in the words of this module or of the system."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the mail server is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS with the mail server failed: {error.reason}"
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"the mail server refused the user or the password with {error.smtp_code}"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return "the mail server offers no STARTTLS, or no way to sign in"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the mail server answered {error.smtp_code}"
    if isinstance(error, TimeoutError):
        return "the mail server did not answer in time"
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return "the mail server closed the connection, or did not answer in time"
    system = getattr(error, "strerror", None)
    return f"the mail server cannot be reached{f': {system}' if system else ''}"


def _quit(connection: smtplib.SMTP) -> None:
    try:
        connection.quit()
    except (smtplib.SMTPException, OSError):
        connection.close()
