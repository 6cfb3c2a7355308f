"""Schemas of request bodies, shared by the reader of the body and the OpenAPI document."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, ValidationError, fields, missing

from climate.compute.errors import BadRequest
from climate.domain.errors import InvalidInput

Shape = dict[str, Any]
"""JSON schema of a value."""

ABSENT: Any = missing
"""Default of a key that is left out of the result if the body lacks it."""


class Key(fields.Field[Any]):
    """A key of a body: the function that reads its value, and its OpenAPI schema.

    `read` gets the value and the name used in errors; it raises InvalidInput or BadRequest.
    """

    def __init__(
        self,
        read: Callable[[Any, str], Any],
        shape: Shape,
        *,
        key: str | None = None,
        named: str | None = None,
        default: Any = None,
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

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        """Return the value of the key, or the default if the body has none; ValidationError."""
        given = self.default if value is missing else value
        if given is missing:
            return missing
        try:
            return self.read(given, self.named or attr or "")
        except (InvalidInput, BadRequest) as refusal:
            raise ValidationError(str(refusal)) from None


class Body(Schema):
    """A body, or the part of one below its key."""

    class Meta:
        unknown = EXCLUDE

    UNKNOWN: ClassVar[str | None] = None
    """Refusal of other keys, with {first}, {unknown}, {known} and {sorted}; None: such keys are ignored."""

    def keys(self) -> dict[str, Key]:
        """Return the keys by their names in the body."""
        return {one.data_key or name: one for name, one in self.load_fields.items() if isinstance(one, Key)}

    def shape(self) -> Shape:
        """Return the JSON schema of the body."""
        keys = self.keys()
        return {
            "type": "object",
            "properties": {name: key.shape for name, key in keys.items()},
            "required": [name for name, key in keys.items() if key.is_required],
            "additionalProperties": False,
        }

    def read(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a body by the attributes of its keys; InvalidInput for the first that is wrong."""
        if self.UNKNOWN is not None:
            self._check_known(body, self.UNKNOWN)
        try:
            return dict(self.load(body))
        except ValidationError as refusal:
            raise InvalidInput(_first(refusal.messages)) from None

    def _check_known(self, body: Mapping[str, Any], refusal: str) -> None:
        known = list(self.keys())
        unknown = sorted(set(body) - set(known))
        if unknown:
            told = {"first": unknown[0][:80], "unknown": ", ".join(unknown)[:200], "known": ", ".join(known)}
            told["sorted"] = ", ".join(sorted(known))
            raise InvalidInput(refusal.format(**told))


def _first(messages: Any) -> str:
    """Return the first message, in the order in which the schema names its keys."""
    while not isinstance(messages, str):
        messages = next(iter(messages.values() if isinstance(messages, dict) else messages))
    return messages
