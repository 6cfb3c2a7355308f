"""Bodies of PUT that repeat the answer of GET: what is as it was is no change."""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from flask import request
from marshmallow import Schema, pre_load

from climate.domain.errors import InvalidInput

Body = dict[str, object]
Reader = Callable[..., Body]

LONGEST = 80
"""Characters of a value in a message."""


class Unchanged(Exception):
    """A body has no other values than the resource; `answer` shows it."""

    def __init__(self, answer: Body) -> None:
        super().__init__("nothing is to be changed")
        self.answer = answer


class Update(Schema):
    """Changes of a resource; a key that cannot be changed is accepted with the value that it has."""

    answer_key: ClassVar[str]
    """Key of the resource in the answer of GET."""
    answer_schema: ClassVar[type[Schema]]
    """Schema of the resource in that answer."""
    may_be_empty: ClassVar[bool] = False
    """Whether a body without changes is served too, because its request has conditions."""
    replaces: ClassVar[bool] = False
    """Whether absent keys are reset, so that equal ones must stay in the body."""
    reads: Reader | None = None
    """Returns the answer of GET for the path of the request."""

    @pre_load
    def _without_repeated(self, data: Body, **_: object) -> Body:
        """Return the changes in a body that has read-only keys; other bodies stay as they are."""
        given = self.unwrapped(data)
        if self.reads is None or (given is data and not self.repeats(given)):
            return data
        answer = self.reads(**(request.view_args or {}))
        rest = self.changes(given, answer[self.answer_key])
        if not rest and not self.may_be_empty:
            raise Unchanged(answer)
        if self.replaces:
            return {key: value for key, value in given.items() if key not in self.read_only()}
        return rest

    def unwrapped(self, data: Body) -> Body:
        """Return the resource in a body that is the whole answer of GET, else the body."""
        inner = data.get(self.answer_key)
        return inner if set(data) == {self.answer_key} and isinstance(inner, dict) else data

    def read_only(self) -> frozenset[str]:
        """Return the keys of the answer that cannot be changed."""
        writable = {field.data_key or name for name, field in self.load_fields.items()}
        return frozenset(self.answer_schema().fields) - writable

    def repeats(self, given: Body) -> bool:
        """Return whether a body has read-only keys."""
        return not self.read_only().isdisjoint(given)

    def changes(self, given: Body, shown: Any) -> Body:
        """Return the keys with another value than `shown`; InvalidInput if one of them cannot be changed."""
        return differing(given, shown, self.read_only())


def differing(
    given: Mapping[str, object], shown: Mapping[str, object], read_only: frozenset[str], of: str = ""
) -> Body:
    """Return the keys with another value than `shown`; raise InvalidInput if any is read-only."""
    rest = {key: value for key, value in given.items() if key not in shown or not _same(value, shown[key])}
    wrong = sorted(read_only.intersection(rest))
    if wrong:
        raise InvalidInput("; ".join(_refusal(f"{key}{of}", rest[key], shown, key) for key in wrong[:3]))
    return rest


def _refusal(name: str, value: object, shown: Mapping[str, object], key: str) -> str:
    present = f"it is {_short(shown[key])}" if key in shown else "it is absent"
    return f"{name} cannot be set to {_short(value)}: {present}; leave it out, or send it as it is"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _same(one: object, other: object) -> bool:
    """Return whether two values are the same in JSON, where true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
