"""Webhooks for notifications, signed as the specification of Standard Webhooks requires."""

import base64
import binascii
import hashlib
import hmac
import json
from datetime import UTC, datetime

from climate.outbound import http_client
from climate.outbound.http_client import PostRequest
from climate.settings import SettingError, Settings
from climate.store.notices.notifications import Kept

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64


def check(settings: Settings) -> None:
    """Raise SettingError for invalid addresses, and for an invalid secret."""
    for name in ("notify_url", "enforcement_url"):
        url = getattr(settings, name)
        if url and not http_client.usable(url):
            raise SettingError(f"CLIMATE_{name.upper()} must be an http or https URL without a password in it")
    if settings.notify_url:
        key(settings)


def key(settings: Settings) -> bytes:
    """Return the key of signatures; raise SettingError for an invalid secret."""
    text = settings.notify_secret
    try:
        read = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        read = b""
    if not text.startswith(PREFIX) or not SHORTEST <= len(read) <= LONGEST:
        raise SettingError(
            f"CLIMATE_NOTIFY_SECRET must be {PREFIX} and {SHORTEST} to {LONGEST} random bytes in base64; "
            f'one is made by: echo "{PREFIX}$(head -c 32 /dev/urandom | base64)"'
        )
    return read


def build_request(settings: Settings, kept: Kept, now: datetime) -> PostRequest:
    """Build the request for a notification. Its id is the same for every attempt."""
    body = json.dumps(_content(kept), ensure_ascii=False).encode()
    number, stamp = f"notice_{kept.id}", str(int(now.timestamp()))
    signed = hmac.new(key(settings), b".".join((number.encode(), stamp.encode(), body)), hashlib.sha256).digest()
    return PostRequest(
        url=settings.notify_url,
        body=body,
        headers={
            "webhook-id": number,
            "webhook-timestamp": stamp,
            "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
            "User-Agent": "climate",
        },
        seconds=settings.notify_seconds,
        private=settings.notify_private,
    )


def trouble(status: int) -> str:
    """Return the error of an answer, or "" if the notification was delivered."""
    return "" if 200 <= status < 300 else f"HTTP {status}"


def _content(kept: Kept) -> dict[str, object]:
    notice = kept.notice
    return {
        "type": notice.kind,
        "timestamp": kept.at.astimezone(UTC).isoformat(),
        "data": {
            "id": kept.id,
            "message": notice.message,
            "project_id": notice.project_id,
            "user_id": notice.user_id,
            "lease_id": str(notice.lease_id) if notice.lease_id else None,
            "host_id": str(notice.host) if notice.host is not None else None,
            "details": dict(notice.body),
        },
    }
