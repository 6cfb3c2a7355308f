"""The auth front: a request's headers in, a grant or a refusal out."""

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Protocol

from climate.domain.errors import InvalidInput, NotAuthenticated
from climate.identity import sign_in
from climate.identity.models import Who
from climate.identity.tokens import Grant, unseal

if TYPE_CHECKING:
    from climate.identity.service import Identity

NOT_A_TOKEN = "notused"  # noqa: S105
"""What keystoneauth sends as token when it was told to use none."""


class Headers(Protocol):
    """A request's headers; names are found whatever their case."""

    def get(self, key: str, /) -> str | None: ...


def grant(identity: "Identity", headers: Headers, address: str) -> Grant:
    """By X-Auth-Token, or else by HTTP Basic; costs no statement when the proof is known and the watch is fresh."""
    token = headers.get("X-Auth-Token")
    if token and token != NOT_A_TOKEN:
        return of_token(identity, token)
    authorization = headers.get("Authorization")
    if authorization:
        return _of_basic(identity, authorization, address)
    raise NotAuthenticated()


def of_token(identity: "Identity", token: str) -> Grant:
    """The grant in a token that is neither forged nor expired nor revoked."""
    found = unseal(identity.keys, token, identity.watch.now(), identity.token_seconds)
    identity.watch.check(found)
    return found


def _of_basic(identity: "Identity", authorization: str, address: str) -> Grant:
    if "," in authorization:  # servers join repeated headers so; neither a scheme nor base64 has a comma
        raise InvalidInput("More than one Authorization header was given")
    login, password = _credentials(authorization)
    known = identity.memory.recall(login, password)
    if known is not None:
        try:
            identity.watch.check(known)
        except NotAuthenticated:
            known = None
    if known is None:
        known = sign_in.by_password(identity, Who(name=login), password, scope=None, address=address)
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
