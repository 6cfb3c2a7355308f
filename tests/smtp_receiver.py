"""A real SMTP server on the loopback: it remembers what it got, and refuses or breaks off as a test tells it to."""

import datetime
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from climate.outbound.smtp_client import MailServer, Security

USER, PASSWORD = "climate", "canary-81d2"
SENDER = "climate@example.org"


@dataclass
class Receiver:
    """What arrived, and what to do with the next messages."""

    got: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Address -> the answer to it as a recipient."""
    answers: list[str] = field(default_factory=list)
    """Answers to the next messages; "die" ends the connection after the message was taken."""
    port: int = 0

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, _: Any) -> str:  # noqa: N802
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        answer = self.answers.pop(0) if self.answers else "250 OK"
        if answer.startswith("250") or answer == "die":
            content = envelope.content if isinstance(envelope.content, bytes) else b""
            self.got.append((list(envelope.rcpt_tos), message_from_bytes(content, policy=default)))
        if answer == "die" and server.transport is not None:
            server.transport.abort()
        return answer

    def server(self, **more: Any) -> MailServer:
        """The settings of a client of it."""
        plain = {"security": Security.NONE, "user": "", "password": "", "sender": SENDER, "seconds": 5.0}
        return MailServer(host="127.0.0.1", port=self.port, **{**plain, **more})


@cache
def certificate() -> tuple[bytes, bytes]:
    """A certificate for 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(*form)


def trusting() -> ssl.SSLContext:
    """A client's context that accepts the certificate."""
    return ssl.create_default_context(cadata=certificate()[0].decode())


def server_context(folder: Path) -> ssl.SSLContext:
    for name, content in zip(("cert.pem", "key.pem"), certificate(), strict=True):
        (folder / name).write_bytes(content)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def _known(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any) -> AuthResult:
    right = (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


class OnFreePort(Controller):  # type: ignore[misc]
    """Controller on a port that the system chooses."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def receiving(folder: Path | None = None, security: Security = Security.NONE) -> Iterator[Receiver]:
    """A server; with a folder for its certificate it demands encryption and a password."""
    receiver = Receiver()
    more: dict[str, Any] = {}
    if folder is not None:
        context, more = server_context(folder), {"authenticator": _known}
        if security is Security.TLS:  # the library counts only STARTTLS as encryption
            more |= {"ssl_context": context, "auth_require_tls": False}
        else:
            more |= {"tls_context": context, "require_starttls": True, "auth_required": True}
    controller = OnFreePort(receiver, hostname="127.0.0.1", port=0, ready_timeout=60, **more)
    controller.start()
    receiver.port = controller.port
    try:
        yield receiver
    finally:
        controller.stop(no_assert=True)
