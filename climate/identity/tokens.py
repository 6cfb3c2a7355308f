"""Tokens: a grant, sealed; whoever holds the keys can read it back without asking anybody."""

import json
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

from cryptography.fernet import InvalidToken

from climate.domain.errors import NotAuthenticated
from climate.domain.policy import Caller
from climate.identity.keys import KeyRing

LONGEST = 4096
"""Characters of a token."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Who has signed in how, to which project, with which roles.  Times: seconds of the epoch."""

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
    """Signed in with a credential that may not make others."""
    audit_ids: tuple[str, ...] = field(default_factory=lambda: (token_urlsafe(16),))
    """Its own, then those of the tokens it was made from."""

    def caller(self) -> Caller:
        """The caller that the rest of climate knows."""
        return Caller(
            user_id=self.user_id,
            project_id=self.project_id,
            roles=frozenset(self.roles),
            user_name=self.user_name,
            project_name=self.project_name,
        )


def seal(keys: KeyRing, grant: Grant) -> str:
    """The token that stands for `grant`."""
    values = [getattr(grant, name) for name in Grant.__dataclass_fields__]
    data = json.dumps(values, separators=(",", ":")).encode()
    return keys.fernet().encrypt_at_time(data, int(grant.issued_at)).decode()


def unseal(keys: KeyRing, token: str, now: float, life: float) -> Grant:
    """The grant in a token; NotAuthenticated, always in the same words, when it is forged, broken or too old."""
    data = _opened(keys, token, now, life)
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in json.loads(data)]
    grant = Grant(*values)
    if grant.expires_at <= now:
        raise NotAuthenticated()
    return grant


def _opened(keys: KeyRing, token: str, now: float, life: float) -> bytes:
    if len(token) > LONGEST or not token.isascii():
        raise NotAuthenticated()
    for look_now in (False, True):  # another process may have made a key just now
        try:
            fernet = keys.fernet(look_now=look_now)
            return fernet.decrypt_at_time(token.encode(), int(life) + 1, int(now))
        except InvalidToken:
            continue
    raise NotAuthenticated()
