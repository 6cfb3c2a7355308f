"""Settings of mail: every form of the URL, and those that are refused without showing it."""

import pytest

from climate.configuration import mail
from climate.outbound.smtp_client import Security
from climate.settings import SettingError, Settings

SECRET = "canary-3b7f"


def settings(url: str, sender: str = "climate@example.org") -> Settings:
    return Settings(smtp_url=url, mail_from=sender)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail.example.org", ("mail.example.org", 25, Security.NONE, "", "")),
        ("smtp://localhost:2525/", ("localhost", 2525, Security.NONE, "", "")),
        ("smtp+starttls://u:p@mail", ("mail", 587, Security.STARTTLS, "u", "p")),
        ("smtps://u%40x:p%2F%3A@[::1]", ("::1", 465, Security.TLS, "u@x", "p/:")),
        ("smtp://u:p@127.0.0.1", ("127.0.0.1", 25, Security.NONE, "u", "p")),
    ],
)
def test_urls(url: str, expected: tuple[object, ...]) -> None:
    server = mail.server(settings(url))
    assert server is not None
    assert (server.host, server.port, server.security, server.user, server.password) == expected


def test_no_url_is_no_mail() -> None:
    assert mail.server(Settings()) is None


@pytest.mark.parametrize(
    "url",
    [
        f"http://u:{SECRET}@mail",
        f"{SECRET}",
        f"smtp://u:{SECRET}@",
        f"smtps://u:{SECRET}@mail:0",
        f"smtps://u:{SECRET}@mail:99999",
        f"smtps://u:{SECRET}@mail:x",
        f"smtps://u:{SECRET}@mail/inbox",
        f"smtps://u:{SECRET}@mail?x=1",
        f"smtps://u:{SECRET}@mail#x",
        f"smtps://u:{SECRET}@[::1",
        f"smtps://u:{SECRET} @mail",
        f"smtps://u:{SECRET}\n@mail",
        f"smtps://:{SECRET}@mail",
        f"smtps://{SECRET}@mail",
        f"smtp://u:{SECRET}@mail.example.org",
    ],
)
def test_bad_urls_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SettingError, match="CLIMATE_SMTP_URL") as refused:
        mail.server(settings(url))
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(settings(url))


@pytest.mark.parametrize(
    "sender",
    ["", "climate", "climate@", "@example.org", "a@b.c\nBcc: x@y.z", "Climate <a@b.c>", "a@b.c, d@e.f", "ü@b.c"],
)
def test_bad_senders(sender: str) -> None:
    with pytest.raises(SettingError, match="CLIMATE_MAIL_FROM"):
        mail.server(settings("smtp://mail", sender))
