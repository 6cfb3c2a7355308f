"""Schemas of request bodies: one declaration is read by the view and shown in the OpenAPI document."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict, Unpack

from marshmallow import Schema, fields, missing

from api.schema import shapes
from climate.compute.errors import BadRequest
from climate.domain.errors import InvalidInput

Shape = dict[str, Any]
"""JSON schema of a value."""

Values = dict[str, Any]
"""Values that a schema has read, by key."""

ABSENT: object = missing
"""Default of a key that is left out of the result if the body lacks it."""


class KeyOptions(TypedDict, total=False):
    """Options of a `Key` that do not depend on its type."""

    key: str | None
    named: str | None
    default: object
    required: bool


class Key(fields.Field[object]):
    """A key of a body: the function that reads its value, and its OpenAPI schema.

    `read` gets the value and the name used in errors; it raises InvalidInput or BadRequest.
    """

    def __init__(
        self,
        read: Callable[[object, str], object],
        shape: Shape,
        *,
        key: str | None = None,
        named: str | None = None,
        default: object = None,
        required: bool = False,
    ) -> None:
        """Describe a key; `key` is its name in the body, and `named` its name in errors, if they differ.

        `default` is the value if the body has no such key.
        """
        super().__init__(data_key=key, allow_none=True)
        self.read = read
        self.shape = shape
        self.named = named
        self.default = default
        self.is_required = required
        """Whether the document marks the key as required; `read` refuses its default."""

    def or_null(self) -> "Key":
        """Accept null too, which is read as None, and return the key."""
        read = self.read
        self.read = lambda value, field: None if value is None else read(value, field)
        self.shape = shapes.or_null(self.shape)
        return self

    def deserialize(self, value: object, attr: str | None = None, data: object = None, **kwargs: object) -> object:
        """Return the value of the key, or the default if the body has none; InvalidInput."""
        given = self.default if value is missing else value
        if given is missing:
            return missing
        try:
            return self.read(given, self.named or attr or "")
        except BadRequest as refusal:
            raise InvalidInput(str(refusal)) from None


class Ignored(Key):
    """A key that clients send and that has no effect."""

    def __init__(self, shape: Shape, *, key: str | None = None) -> None:
        super().__init__(as_given, shape, key=key, default=ABSENT)

    def deserialize(self, value: object, attr: str | None = None, data: object = None, **kwargs: object) -> object:
        """Leave the key out of the result."""
        return missing


class Body(Schema):
    """A body, or the part of one below its key."""

    UNKNOWN: ClassVar[str | None] = None
    """Refusal of other keys, with {first}, {unknown}, {known} and {sorted}; None: such keys are ignored."""

    MISSING: ClassVar[str | None] = None
    """Refusal of a body without its required keys, with {first} and {missing}; None: the readers refuse them."""

    EMPTY: ClassVar[str | None] = None
    """Refusal of a body without any key; None: it is accepted."""

    PREFIX: str = ""
    """Text before the name of each key in errors, such as `rebuild.`."""

    IS_OPEN: ClassVar[bool] = False
    """Whether the document allows other keys."""

    IS_NULLABLE: ClassVar[bool] = False
    """Whether null is accepted instead of an object without keys."""

    def __init__(self, prefix: str | None = None, **options: Any) -> None:
        """Describe a body; `prefix` replaces that of the class."""
        super().__init__(**options)
        if prefix is not None:
            self.PREFIX = prefix
        keys = [(name, key) for name, key in self.load_fields.items() if isinstance(key, Key)]
        self._keys = {key.data_key or name: key for name, key in keys}
        self._attributes = {key.data_key or name: name for name, key in keys}

    def keys(self) -> Mapping[str, Key]:
        """Return the keys by their names in the body."""
        return self._keys

    def shape(self) -> Shape:
        """Return the JSON schema of the body."""
        keys = self.keys()
        shape: Shape = {
            "type": "object",
            "description": (inspect.getdoc(self) or "").partition("\n")[0],
            "properties": {name: key.shape for name, key in keys.items()},
            "required": [name for name, key in keys.items() if key.is_required],
        }
        if not self.IS_OPEN:
            shape["additionalProperties"] = False
        if self.EMPTY is not None:
            shape["minProperties"] = 1
        return shapes.or_null(shape) if self.IS_NULLABLE else shape

    def read(self, body: Mapping[str, object]) -> Values:
        """Return the values of a body by the attributes of its keys; InvalidInput for the first that is wrong."""
        self._check_keys(body)
        values = {}
        # Schema.load collects the errors of all keys, which takes twice as long, and only the first is shown.
        for name, key in self._keys.items():
            value = key.deserialize(body.get(name, missing), self.PREFIX + name)
            if value is not missing:
                values[self._attributes[name]] = value
        return values

    def read_value(self, value: object, field: str) -> Values:
        """Return the values of the object below a key; InvalidInput if it is no object, or a value is wrong."""
        if value is None and self.IS_NULLABLE:
            value = {}
        if not isinstance(value, dict):
            raise InvalidInput(f"{field} must be an object")
        return self.read(value)

    def _check_keys(self, body: Mapping[str, object]) -> None:
        if self.EMPTY is not None and not body:
            raise InvalidInput(self.EMPTY)
        if self.UNKNOWN is not None and (unknown := sorted(body.keys() - self._keys.keys())):
            raise InvalidInput(self._unknown(self.UNKNOWN, unknown))
        if self.MISSING is not None:
            lacking = sorted(name for name, key in self._keys.items() if key.is_required and name not in body)
            if lacking:
                raise InvalidInput(self.MISSING.format(first=lacking[0], missing=", ".join(lacking)))

    def _unknown(self, message: str, unknown: Sequence[str]) -> str:
        """Return the message about unknown keys, with the keys that a body may have."""
        known = [name for name, key in self._keys.items() if not isinstance(key, Ignored)]
        said = {"first": unknown[0][:80], "unknown": ", ".join(unknown)[:200], "known": ", ".join(known)}
        return message.format(**said, sorted=", ".join(sorted(known)))


@dataclass(frozen=True, slots=True)
class Below:
    """A body whose content is below one key, like `{"flavor": {…}}`."""

    key: str
    content: Body
    is_open: bool = False
    """Whether other keys beside it are ignored, and not refused."""

    def read(self, body: Mapping[str, object]) -> Values:
        """Return the values of the content; InvalidInput for another key beside it, or a wrong value."""
        other = next((name for name in sorted(body) if name != self.key), None)
        if other is not None and not self.is_open:
            raise InvalidInput(f"The body must have the key {self.key} alone, not {other[:80]!r}")
        return self.content.read_value(body.get(self.key), self.key)

    def shape(self) -> Shape:
        """Return the JSON schema of the whole body."""
        return shapes.below(self.key, self.content.shape())


@dataclass(frozen=True, slots=True)
class Choice:
    """A body with exactly one of several keys, like `{"add_host": {…}}`, each with a schema of its own."""

    contents: Mapping[str, Body | None]
    """Schema of each key; None: null, or whatever a client sends there."""
    refusal: str
    """Refusal of a body with another key, with several, or with none."""

    def read(self, body: Mapping[str, object]) -> tuple[str, Values]:
        """Return the key and the values below it; InvalidInput."""
        key = next(iter(body), "")
        if len(body) != 1 or key not in self.contents:
            raise InvalidInput(self.refusal)
        content = self.contents[key]
        return key, {} if content is None else content.read_value(body[key], key)

    def shape(self) -> Shape:
        """Return the JSON schema of the whole body."""
        null: Shape = {"type": "null"}
        forms = {key: null if body is None else body.shape() for key, body in self.contents.items()}
        return {"anyOf": [shapes.below(key, form) for key, form in forms.items()]}


def part(body: Body, **options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is an object with a schema of its own."""
    return Key(body.read_value, body.shape(), **options)


def as_given(value: object, field: str) -> object:
    """Return the value unchanged: the operation checks it."""
    return value
