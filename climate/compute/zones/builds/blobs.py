"""Blobs: items of a build plan, encrypted by the zone that made them and unreadable for others.

A zone stores nothing for an estimate. The data of each offer, such as the node, is sent to the parent as a blob, and
returns with the build request. The key is derived from a configured text. With several texts the first encrypts and all
decrypt, so that keys can be rotated.
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
"""Maximum length of a blob in characters. Each level of zones adds a third."""

SHORTEST_KEY = 16
"""Minimum length of a configured key in characters."""

SKEW_SECONDS = 60.0
"""Seconds of tolerance for blobs from the future, after a database restore or a failover to another clock."""

_NONCE = 12
_VERSION = b"\x01"
_PURPOSE = b"climate build plan"


class InvalidBlob(BadRequest):
    """Ill-formed or incorrectly routed 'blob' data sent to instance create request."""

    def __init__(self, reason: str) -> None:
        """Create the error; `reason` is only logged, so that forgers learn nothing."""
        super().__init__()
        self.reason = reason
        log.warning("blob refused", reason=reason)


class NoBlobKey(Conflict):
    """This zone makes no estimates: CLIMATE_BUILD_PLAN_ENCRYPTION_KEY is not set; set it to a secret of this zone."""


@dataclass(frozen=True, slots=True)
class BlobContent:
    """Content of a blob."""

    item_id: str
    """Unique id of the blob in the zone: `<id of the plan>.<number of the item>`."""
    expires_at: datetime
    item: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class BlobKeys:
    """Keys of this zone, and the lifetime of its blobs in seconds."""

    keys: tuple[bytes, ...] = field(default=(), repr=False)
    seconds: float = 600.0

    @classmethod
    def read(cls, text: str, seconds: float) -> Self:
        """Return the keys of a comma-separated text. Raise BadRequest for one that is too short."""
        words = [word for part in text.split(",") if (word := part.strip())]
        if any(len(word) < SHORTEST_KEY for word in words):
            raise BadRequest(
                f"each key must have at least {SHORTEST_KEY} characters, like those of `openssl rand -hex 32`"
            )
        return cls(tuple(sha256(word.encode()).digest() for word in words), seconds)

    def check(self) -> None:
        """Check that there is a key. Raise NoBlobKey."""
        if not self.keys:
            raise NoBlobKey

    def seal(self, zone_id: str, items: Sequence[Mapping[str, object]], now: datetime) -> list[str]:
        """Return a blob for each item of one plan; `zone_id` is the id of this zone. Raise NoBlobKey."""
        self.check()
        cipher, plan = AESGCM(self.keys[0]), uuid4().hex
        issued, bound = now.timestamp(), _bound(zone_id)
        return [
            _sealed(cipher, bound, {"zone": zone_id, "issued": issued, "plan": plan, "number": number, "item": item})
            for number, item in enumerate(items)
        ]

    def open(self, zone_id: str, blob: object, now: datetime, *, late: bool = False) -> BlobContent:
        """Return the content of a blob of this zone. Raise InvalidBlob for others, and for an expired one unless
        `late`.
        """
        content = self._content(zone_id, _decoded(blob))
        issued = datetime.fromtimestamp(content["issued"], UTC)
        age = (now - issued).total_seconds()
        if age > self.seconds and not late:
            raise InvalidBlob("it has expired")
        if age < -SKEW_SECONDS:
            raise InvalidBlob("it is from the future")
        until = datetime.fromtimestamp(content["issued"] + self.seconds, UTC)
        return BlobContent(f"{content['plan']}.{content['number']}", until, content["item"])

    def _content(self, zone_id: str, sealed: bytes) -> dict[str, Any]:
        nonce, text = sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
        for key in self.keys:
            try:
                content: dict[str, object] = json.loads(AESGCM(key).decrypt(nonce, text, _bound(zone_id)))
            except InvalidTag:
                continue
            if content.get("zone") != zone_id:
                break
            return content
        raise InvalidBlob("no key of this zone opens it")


def _bound(zone_id: str) -> bytes:
    """Return the associated data that binds a blob to its zone."""
    return _PURPOSE + b":" + zone_id.encode()


def _sealed(cipher: AESGCM, bound: bytes, content: Mapping[str, object]) -> str:
    nonce = os.urandom(_NONCE)
    text = json.dumps(content, separators=(",", ":")).encode()
    return base64.b64encode(_VERSION + nonce + cipher.encrypt(nonce, text, bound)).decode()


def _decoded(blob: object) -> bytes:
    if not isinstance(blob, str):
        raise InvalidBlob("it is not a string")
    if len(blob) > LONGEST:
        raise InvalidBlob(f"it is longer than {LONGEST} characters")
    try:
        sealed = base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidBlob("it is not Base64") from None
    # Base64 has several encodings of the same bytes; only the canonical one is accepted.
    if base64.b64encode(sealed).decode() != blob or sealed[:1] != _VERSION or len(sealed) <= 1 + _NONCE:
        raise InvalidBlob("it has no valid blob format")
    return sealed
