"""Comparison of the types of answers with recorded answers of a server, and with its schemas."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from marshmallow import Schema

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "recorded_answers.json").read_text(encoding="utf-8")
)["answers"]


def recorded(path_end: str, key: str) -> Any:
    """Return the content of the recorded answer whose path ends so; it is not empty."""
    content = next(answer[key] for path, answer in RECORDED.items() if path.endswith(path_end))
    assert content
    return content


def misfits(value: object, kind: Any, where: str = "answer") -> list[str]:
    """Return the places at which a value of JSON is not of a type; further keys of an object are none."""
    if is_typeddict(kind):
        return list(_of_object(value, kind, where))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        each = [misfits(value, one, where) for one in arguments]
        return [] if [] in each else [said for one in each for said in one]
    if origin in (list, tuple) and isinstance(value, list):
        kinds = arguments if origin is tuple else arguments * len(value)
        return [said for place, one in enumerate(value) for said in misfits(one, kinds[place], f"{where}[{place}]")]
    if origin is dict and isinstance(value, dict):
        return [said for key, one in value.items() for said in misfits(one, arguments[1], f"{where}.{key}")]
    return [] if _is(value, kind) else [f"{where} is {value!r}, and not {kind}"]


def _of_object(value: object, kind: Any, where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is {value!r}, and not an object"
        return
    yield from (f"{where} has no {key}" for key in sorted(kind.__required_keys__ - value.keys()))
    for key, inner in get_type_hints(kind).items():
        if key in value:
            yield from misfits(value[key], inner, f"{where}.{key}")


def _is(value: object, kind: Any) -> bool:
    if kind is object:
        return True
    if kind is NoneType:
        return value is None
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else get_origin(kind) or kind)


def differences(kind: Any, schema: type[Schema], *, whole: bool = True) -> list[str]:
    """Return the keys in which a type differs from a schema; if it is not `whole`, it may have further ones."""
    declared = {field.data_key or name: field for name, field in schema().fields.items()}
    listed = get_type_hints(kind).keys()
    required = {name for name, field in declared.items() if field.required}
    return [
        *(f"{name} is missing" for name in sorted(declared.keys() - listed)),
        *(f"{name} is not in the schema" for name in sorted(listed - declared.keys()) if whole),
        *(f"{name} may be absent" for name in sorted((kind.__required_keys__ - required) & declared.keys())),
        *(f"{name} is never absent" for name in sorted(required - kind.__required_keys__)),
    ]
