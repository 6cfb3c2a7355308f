"""Tokens: sealed grants, which every process with the keys can read without SQL."""

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from secrets import token_urlsafe
from threading import Lock
from typing import Any

from cryptography.fernet import InvalidToken, MultiFernet

from climate.domain.errors import NotAuthenticated
from climate.domain.policy import Caller
from climate.identity.keys import KeyRing
from climate.identity.models import MANAGER, implied

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
    is_system: bool = False
    """True for a token of the whole system; `roles` are then those of the user there."""
    user_domain_id: str | None = None
    """Domain of the user; None is the default one, as for the project."""
    project_domain_id: str | None = None

    def caller(self) -> Caller:
        """Return the caller, as the rest of climate uses it."""
        return Caller(
            user_id=self.user_id,
            project_id=self.project_id,
            roles=frozenset(self.roles) | (implied([MANAGER]) if MANAGER in self.roles else frozenset()),
            user_name=self.user_name,
            project_name=self.project_name,
            is_system=self.is_system,
        )


def seal(keys: KeyRing, grant: Grant) -> str:
    """Return the token of `grant`."""
    values = [getattr(grant, name) for name in Grant.__dataclass_fields__]
    while not values[-1]:
        values.pop()  # processes of the release before read tokens without the last values
    data = json.dumps(values, separators=(",", ":")).encode()
    return keys.fernet().encrypt_at_time(data, int(grant.issued_at)).decode()


MOST_CACHED = 1000
"""Maximum number of grants in a cache; beyond it the one that was used longest ago is dropped."""


class GrantCache:
    """Grants of genuine tokens, so that a token is decrypted once while the keys are the same. Expiry is not cached."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fernet: MultiFernet | None = None
        self._grants: OrderedDict[str, Grant] = OrderedDict()

    def recall(self, fernet: MultiFernet, token: str) -> Grant | None:
        """Return the grant of a token that was decrypted with these keys; None if it was not."""
        with self._lock:
            if fernet is not self._fernet or token not in self._grants:
                return None
            self._grants.move_to_end(token)
            return self._grants[token]

    def keep(self, fernet: MultiFernet, token: str, grant: Grant) -> None:
        """Cache a grant; grants that other keys decrypted are dropped."""
        with self._lock:
            if fernet is not self._fernet:
                self._grants.clear()
                self._fernet = fernet
            self._grants[token] = grant
            if len(self._grants) > MOST_CACHED:
                self._grants.popitem(last=False)


def unseal(keys: KeyRing, token: str, now: float, life: float, cache: GrantCache | None = None) -> Grant:
    """Return the grant in a token.

    Raise NotAuthenticated, always with the same text, when it is forged, broken or expired.
    """
    cache = cache or GrantCache()
    grant = cache.recall(keys.fernet(), token)
    if grant is None:
        fernet, data = _opened(keys, token, now, life)
        grant = _decoded(data)
        cache.keep(fernet, token, grant)
    if min(grant.expires_at, int(grant.issued_at) + int(life) + 2) <= now:
        raise NotAuthenticated()
    return grant


def _decoded(data: bytes) -> Grant:
    values: list[Any] = [tuple(value) if isinstance(value, list) else value for value in json.loads(data)]
    return Grant(*values)


def _opened(keys: KeyRing, token: str, now: float, life: float) -> tuple[MultiFernet, bytes]:
    """Return the keys that decrypted a token, and its content."""
    if len(token) > LONGEST or not token.isascii():
        raise NotAuthenticated()
    for look_now in (False, True):  # another process may have just created a key
        try:
            fernet = keys.fernet(look_now=look_now)
            return fernet, fernet.decrypt_at_time(token.encode(), int(life) + 1, int(now))
        except InvalidToken:
            continue
    raise NotAuthenticated()
