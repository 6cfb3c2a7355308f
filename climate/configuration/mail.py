"""Settings of mail."""

from email.errors import MessageError
from email.headerregistry import Address
from urllib.parse import SplitResult, unquote, urlsplit

from climate.outbound.smtp_client import MailServer, Security
from climate.settings import SettingError, Settings

SCHEMES = {
    "smtp": (Security.NONE, 25),
    "smtp+starttls": (Security.STARTTLS, 587),
    "smtps": (Security.TLS, 465),
}
"""Scheme of CLIMATE_SMTP_URL -> encryption and default port."""


def server(settings: Settings) -> MailServer | None:
    """Return the server that sends mail; None if there is none. SettingError names the invalid setting.

    No error shows the URL, which may have a password.
    """
    if not settings.smtp_url:
        return None
    parts, port = _parts(settings.smtp_url)
    security, usual = SCHEMES[parts.scheme]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise SettingError("CLIMATE_SMTP_URL has a user without a password, or a password without a user")
    if user and security is Security.NONE and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise SettingError("CLIMATE_SMTP_URL would send its password in clear text; use smtp+starttls:// or smtps://")
    return MailServer(
        host=parts.hostname or "",
        port=port or usual,
        security=security,
        user=user,
        password=password,
        sender=_sender(settings.mail_from),
        seconds=settings.notify_seconds,
    )


def _parts(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    usable = parts.scheme in SCHEMES and parts.hostname and port != 0 and parts.path in ("", "/")
    if not usable or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise SettingError(
            f"CLIMATE_SMTP_URL must be a URL with {'://, '.join(SCHEMES)}://, like smtps://USER:PASSWORD@HOST:465; "
            "special characters of the password are percent-encoded"
        )
    return parts, port


def _sender(text: str) -> str:
    try:
        address = Address(addr_spec=text)
    except (MessageError, ValueError, IndexError):
        address = Address()
    if not address.username or not address.domain or not text.isascii() or not text.isprintable():
        raise SettingError(f"CLIMATE_MAIL_FROM={text!r} must be an address like climate@example.org")
    return text
