"""Blobs: items of a build plan, encrypted by the zone that made them and readable by no other zone.

A zone that answers an estimate keeps nothing of it.  What it has to remember of
each offer, the node above all, goes to the parent as a blob, and comes back
with the request to build there.  The key is derived from a configured text.
With several texts the first one seals and all of them open, so that a key can
be replaced while blobs of the old one are under way.
"""

import base64
import binascii
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Self
from uuid import uuid4

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from climate.compute.errors import BadRequest, Conflict

log = structlog.get_logger(__name__)

LONGEST = 64 * 1024
"""Characters of a blob.  One layer is a third longer than what is in it."""

SHORTEST_KEY = 16
"""Characters of a configured key."""

SKEW_SECONDS = 60.0
"""A blob may be issued so far in the future: the database was restored, or failed over to another clock."""

_NONCE = 12
_VERSION = b"\x01"
_PURPOSE = b"climate build plan"


class InvalidBlob(BadRequest):
    """Ill-formed or incorrectly routed 'blob' data sent to instance create request."""

    def __init__(self, reason: str) -> None:
        """`reason` is for the log: who sends a forged blob is not told what gave it away."""
        super().__init__()
        self.reason = reason
        log.warning("blob refused", reason=reason)


class NoBlobKey(Conflict):
    """This zone makes no estimates: CLIMATE_BUILD_PLAN_ENCRYPTION_KEY is not set; set it to a secret of this zone."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Content of a blob."""

    item_id: str
    """Unique among all blobs of the zone: `<id of the plan>.<number of the item>`."""
    expires_at: datetime
    item: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BlobKeys:
    """The keys of this zone, and the life of what they seal in seconds."""

    keys: tuple[bytes, ...] = field(default=(), repr=False)
    seconds: float = 600.0

    @classmethod
    def read(cls, text: str, seconds: float) -> Self:
        """The keys in a text by commas; BadRequest for one that is too short."""
        words = [word for part in text.split(",") if (word := part.strip())]
        if any(len(word) < SHORTEST_KEY for word in words):
            raise BadRequest(
                f"each key must have at least {SHORTEST_KEY} characters, like those of `openssl rand -hex 32`"
            )
        return cls(tuple(sha256(word.encode()).digest() for word in words), seconds)

    def check(self) -> None:
        """Return when there is a key to seal with, else raise NoBlobKey."""
        if not self.keys:
            raise NoBlobKey

    def seal(self, zone_id: str, items: Sequence[Mapping[str, Any]], now: datetime) -> list[str]:
        """A blob for each item of one plan; `zone_id` is the id of this zone.  Raises NoBlobKey."""
        self.check()
        cipher, plan = AESGCM(self.keys[0]), uuid4().hex
        issued, bound = now.timestamp(), _bound(zone_id)
        return [
            _sealed(cipher, bound, {"zone": zone_id, "issued": issued, "plan": plan, "number": number, "item": item})
            for number, item in enumerate(items)
        ]

    def open(self, zone_id: str, blob: object, now: datetime, *, late: bool = False) -> Opened:
        """Return the content of a blob of this zone; InvalidBlob for others, and for an expired one unless `late`."""
        content = self._content(zone_id, _decoded(blob))
        issued = datetime.fromtimestamp(content["issued"], UTC)
        age = (now - issued).total_seconds()
        if age > self.seconds and not late:
            raise InvalidBlob("it has expired")
        if age < -SKEW_SECONDS:
            raise InvalidBlob("it is from the future")
        until = datetime.fromtimestamp(content["issued"] + self.seconds, UTC)
        return Opened(f"{content['plan']}.{content['number']}", until, content["item"])

    def _content(self, zone_id: str, sealed: bytes) -> dict[str, Any]:
        nonce, text = sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
        for key in self.keys:
            try:
                content: dict[str, Any] = json.loads(AESGCM(key).decrypt(nonce, text, _bound(zone_id)))
            except InvalidTag:
                continue
            if content.get("zone") != zone_id:
                break
            return content
        raise InvalidBlob("no key of this zone opens it")


def _bound(zone_id: str) -> bytes:
    """Return the data that is authenticated beside the content, so that no blob of another zone opens."""
    return _PURPOSE + b":" + zone_id.encode()


def _sealed(cipher: AESGCM, bound: bytes, content: Mapping[str, Any]) -> str:
    nonce = os.urandom(_NONCE)
    text = json.dumps(content, separators=(",", ":")).encode()
    return base64.b64encode(_VERSION + nonce + cipher.encrypt(nonce, text, bound)).decode()


def _decoded(blob: object) -> bytes:
    if not isinstance(blob, str):
        raise InvalidBlob("it is not a text")
    if len(blob) > LONGEST:
        raise InvalidBlob(f"it is longer than {LONGEST} characters")
    try:
        sealed = base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidBlob("it is not Base64") from None
    # Base64 has several spellings of the same bytes: only one of them is taken.
    if base64.b64encode(sealed).decode() != blob or sealed[:1] != _VERSION or len(sealed) <= 1 + _NONCE:
        raise InvalidBlob("it is not in the form of a blob")
    return sealed
