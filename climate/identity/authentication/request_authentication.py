"""Authentication of requests: headers in, a grant or an error out."""

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Protocol

from climate.domain.errors import InvalidInput, NotAuthenticated
from climate.identity.authentication import sign_in
from climate.identity.authentication.tokens import Grant, unseal
from climate.identity.models import NameOrId

if TYPE_CHECKING:
    from climate.identity.context import Identity

NOT_A_TOKEN = "notused"  # noqa: S105
"""Token that keystoneauth sends when it is configured to use none."""


class Headers(Protocol):
    """Headers of a request, with case-insensitive names."""

    def get(self, key: str, /) -> str | None: ...


def grant(identity: "Identity", headers: Headers, address: str) -> Grant:
    """Authenticate by X-Auth-Token, or else by HTTP Basic; no SQL is needed for a cached proof and a fresh revocation
    cache.
    """
    token = headers.get("X-Auth-Token")
    if token and token != NOT_A_TOKEN:
        return of_token(identity, token)
    authorization = headers.get("Authorization")
    if authorization:
        return _of_basic(identity, authorization, address)
    raise NotAuthenticated()


def of_token(identity: "Identity", token: str) -> Grant:
    """Return the grant in a token that is neither forged nor expired nor revoked."""
    grant = unseal(identity.keys, token, identity.watch.now(), identity.token_seconds, identity.grants)
    identity.watch.check(grant)
    return grant


def _of_basic(identity: "Identity", authorization: str, address: str) -> Grant:
    if "," in authorization:  # servers join repeated headers with commas; neither a scheme nor base64 contains a comma
        raise InvalidInput("More than one Authorization header was given")
    login, password = _credentials(authorization)
    known = identity.memory.recall(login, password)
    if known is not None:
        try:
            identity.watch.check(known)
        except NotAuthenticated:
            known = None
    if known is None:
        known = sign_in.by_password(identity, NameOrId(name=login), password, scope=None, address=address)
        identity.memory.keep(login, password, known)
    return known


def _credentials(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise NotAuthenticated()
    try:
        login, colon, password = b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise NotAuthenticated() from None
    if not (login and colon) or "\0" in login:
        raise NotAuthenticated()
    return login, password
