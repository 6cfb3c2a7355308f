"""Tokens: sealed grants, which every process with the keys can read without SQL."""

import json
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

from cryptography.fernet import InvalidToken

from climate.domain.errors import NotAuthenticated
from climate.domain.policy import Caller
from climate.identity.keys import KeyRing

LONGEST = 4096
"""Maximum length of a token in characters."""


@dataclass(frozen=True, slots=True)
class Grant:
    """User, method, project and roles of a sign-in. Times are seconds of the epoch."""

    user_id: str
    user_name: str
    methods: tuple[str, ...]
    issued_at: float
    expires_at: float
    project_id: str = ""
    project_name: str = ""
    roles: tuple[str, ...] = ()
    credential_id: str = ""
    restricted: bool = False
    """True for a sign-in with a credential that may not create others."""
    audit_ids: tuple[str, ...] = field(default_factory=lambda: (token_urlsafe(16),))
    """Audit id of the token, then those of the tokens it was derived from."""

    def caller(self) -> Caller:
        """Return the caller, as the rest of climate uses it."""
        return Caller(
            user_id=self.user_id,
            project_id=self.project_id,
            roles=frozenset(self.roles),
            user_name=self.user_name,
            project_name=self.project_name,
        )


def seal(keys: KeyRing, grant: Grant) -> str:
    """Return the token of `grant`."""
    values = [getattr(grant, name) for name in Grant.__dataclass_fields__]
    data = json.dumps(values, separators=(",", ":")).encode()
    return keys.fernet().encrypt_at_time(data, int(grant.issued_at)).decode()


def unseal(keys: KeyRing, token: str, now: float, life: float) -> Grant:
    """Return the grant in a token.

    Raise NotAuthenticated, always with the same text, when it is forged, broken or expired.
    """
    data = _opened(keys, token, now, life)
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in json.loads(data)]
    grant = Grant(*values)
    if grant.expires_at <= now:
        raise NotAuthenticated()
    return grant


def _opened(keys: KeyRing, token: str, now: float, life: float) -> bytes:
    if len(token) > LONGEST or not token.isascii():
        raise NotAuthenticated()
    for look_now in (False, True):  # another process may have just created a key
        try:
            fernet = keys.fernet(look_now=look_now)
            return fernet.decrypt_at_time(token.encode(), int(life) + 1, int(now))
        except InvalidToken:
            continue
    raise NotAuthenticated()
