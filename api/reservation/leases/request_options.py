"""Options of requests beside the body: dry run, If-Match and Idempotency-Key."""

import hashlib
import json
import re
from typing import Any

from flask import request
from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from api.body import parse
from api.reservation.view_decorator import Strict
from climate.store.idempotency import Key

TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e]*)"')
NEVER = 0
"""A version that no lease has."""


class DryRun(Strict):
    """Query of operations that support a dry run."""

    dry_run = fields.Boolean(load_default=False, metadata={"description": "Return the result without any change."})


class Version(fields.String):
    """An If-Match header.  Becomes the expected version of the lease; None for `*`, which is any version."""

    def _deserialize(self, value: object, *args: Any, **more: Any) -> Any:
        text = str(value).strip()
        if text == "*":
            return None
        tag = TAG.fullmatch(text)
        if tag is None:
            raise ValidationError('must be the ETag of the lease, such as "3" with its quotes, or *')
        exact = not text.startswith("W/") and re.fullmatch(r"[1-9][0-9]{0,8}", tag[1])
        return int(tag[1]) if exact else NEVER


class IfMatch(Schema):
    """Headers of operations that change a lease."""

    class Meta:
        unknown = EXCLUDE

    version = Version(data_key="If-Match", metadata={"description": "Run only if the lease still has this ETag."})


IS_A_KEY = validate.Regexp(r"^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$", error="1 to 255 printable characters")


class Repeatable(Schema):
    """Headers of operations that create something."""

    class Meta:
        unknown = EXCLUDE

    key = fields.String(
        data_key="Idempotency-Key",
        validate=IS_A_KEY,
        metadata={"description": "A repetition with the same key and body runs only once."},
    )


class Confirmation(Schema):
    """Headers of the confirmation of a held lease."""

    class Meta:
        unknown = EXCLUDE

    key = fields.String(
        data_key="Idempotency-Key",
        load_default="",
        validate=IS_A_KEY,
        metadata={"description": "A repetition with the same key always has the same answer."},
    )


def key_of(headers: dict[str, Any]) -> Key | None:
    """Return the idempotency key of this request with the fingerprint of its content."""
    if "key" not in headers:
        return None
    body = json.dumps(parse(request.get_data()), sort_keys=True, separators=(",", ":"))
    asked = "\n".join((request.method, request.path, body))
    return Key(headers["key"], hashlib.sha256(asked.encode()).hexdigest())


def tag(version: int) -> dict[str, str]:
    """Return the headers of an answer that shows a version of a lease."""
    return {"ETag": f'"{version}"'}
