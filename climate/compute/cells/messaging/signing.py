"""Signed envelopes: each message is signed with the secret of the link that it crosses.

The signature covers sender, receiver, time, delivery id and body. A message older than LIFE is refused. The receiver
knows the delivery ids of the last KEPT seconds, so that a replayed message is not processed again.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from climate.compute.cells.errors import BadMessage
from climate.compute.cells.messaging.messages import READ_AT_MOST

LIFE = 600.0
"""Maximum seconds of clock difference between two cells plus transport time."""

KEPT = 3 * LIFE
"""Seconds for which a delivery id is remembered: a message may be dated LIFE ahead."""

CONFIRMATION = "confirmation"
"""Kind of an envelope whose body lists confirmed deliveries."""


@dataclass(frozen=True, slots=True)
class Letter:
    """Content of an authenticated envelope."""

    sender: str
    delivery: str
    kind: str
    body: str


def seal(secret: str, ends: tuple[str, str], letter: Letter, now: datetime) -> dict[str, Any]:
    """Return the signed envelope of a letter; `ends`: the sender's and the receiver's short name."""
    fields = {
        "sender": ends[0],
        "receiver": ends[1],
        "sent_at": now.astimezone(UTC).isoformat(),
        "delivery": letter.delivery,
        "kind": letter.kind,
        "body": letter.body,
    }
    return {**fields, "signature": _signature(secret, fields)}


def sender_of(envelope: object) -> str:
    """Return the unauthenticated sender of an envelope, to look up its secret. Raise BadMessage if malformed."""
    names = ("sender", "receiver", "sent_at", "delivery", "kind", "body", "signature")
    if not isinstance(envelope, dict) or not all(isinstance(envelope.get(name), str) for name in names):
        raise BadMessage("The envelope is malformed")
    return str(envelope["sender"])


def opened(secret: str | None, me: str, envelope: Mapping[str, Any], now: datetime) -> Letter:
    """Return the letter in an envelope that `sender_of` accepted.

    Raise BadMessage if it is for another cell, not signed with the secret, too old, or too large.
    """
    fields = {key: envelope[key] for key in ("sender", "receiver", "sent_at", "delivery", "kind", "body")}
    if not secret:
        raise BadMessage("There is no secret for its sender")
    if fields["receiver"] != me:
        raise BadMessage("The envelope is for another cell")
    if len(fields["body"]) > READ_AT_MOST:
        raise BadMessage(f"The message has {len(fields['body'])} bytes; at most {READ_AT_MOST} are read")
    expected = _signature(secret, fields).encode()
    if not hmac.compare_digest(expected, envelope["signature"].encode("utf-8", "replace")):
        raise BadMessage("The signature is wrong")
    if abs((now - _time(fields["sent_at"])).total_seconds()) > LIFE:
        raise BadMessage(f"The message is older than {LIFE:.0f} s, or the clocks of the cells differ")
    return Letter(fields["sender"], delivery(fields["delivery"]), fields["kind"], fields["body"])


def _signature(secret: str, fields: Mapping[str, str]) -> str:
    """Return the signature; lengths precede values, so that different fields never give the same text."""
    text = "".join(f"{len(value)}:{value}," for value in fields.values())
    return hmac.digest(secret.encode(), text.encode("utf-8", "surrogatepass"), "sha256").hex()


def _time(text: str) -> datetime:
    try:
        result = datetime.fromisoformat(text)
    except ValueError:
        raise BadMessage("The time of the envelope is malformed") from None
    return result if result.tzinfo is not None else result.replace(tzinfo=UTC)


def delivery(text: object) -> str:
    """Return a delivery id. Raise BadMessage if it is malformed."""
    try:
        return str(UUID(str(text)))
    except ValueError:
        raise BadMessage("The delivery id of the envelope is malformed") from None
