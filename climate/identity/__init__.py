"""Embedded identity service: users, authentication, and roles in projects."""

from argon2 import PasswordHasher
from sqlalchemy import Engine

from climate.identity.authentication.passwords import Passwords
from climate.identity.authentication.revocation_cache import Number, Watch
from climate.identity.context import Authenticator, Identity
from climate.identity.initial_accounts import first_start
from climate.identity.keys import KeyRing
from climate.identity.project_contents import NoContents, ProjectContents
from climate.settings import Settings

__all__ = ["Identity", "build", "first_start"]


def build(
    engine: Engine,
    settings: Settings,
    hasher: PasswordHasher | None = None,
    contents: ProjectContents | None = None,
    external: Authenticator | None = None,
    last_revocation: Number | None = None,
) -> Identity:
    """Return the identity service over `engine`; its keys are files in the home folder of the settings.

    With `external`, that service authenticates all requests. `last_revocation` is a number that the processes of one
    web server share.
    """
    return Identity(
        engine=engine,
        token_seconds=settings.token_seconds,
        keys=KeyRing(settings.home / "keys"),
        watch=Watch(engine, last_revocation=last_revocation),
        passwords=Passwords(hasher, at_once=1, waiting=max(1, settings.web_threads // 2 - 1)),
        contents=contents or NoContents(),
        external=external,
    )
