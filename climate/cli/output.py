"""Data on stdout in the requested form; nothing else is printed there."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from climate.cli.control_characters import escaped, escaped_json, has_control
from climate.cli.dates import with_zone
from climate.cli.errors import USAGE, Failure
from climate.cli.tables import Look, fields, hidden_columns, names_first, table

EMPTY: tuple[object, ...] = (None, "", [], {})
"""Values that a table of fields leaves out."""

Record = Mapping[str, object]


WHOLE = Look()
"""The appearance of tables that programs read: in full."""


def records(
    rows: Iterable[Record],
    form: str,
    columns: Sequence[str],
    sort: Sequence[str] = (),
    look: Look = WHOLE,
    whole: bool = True,
) -> str:
    """Return a list in a form, one row each.

    `columns` selects the columns; without it whole records are returned (json and yaml).  A table has those columns
    that fit into the width of `look`, or all of them if it is `whole`.
    """
    listed = [_utc_row(row) for row in rows]
    _known(columns, listed)
    for key in reversed(sort):
        name, _, direction = key.partition(":")
        _known((name,), listed)
        listed.sort(key=lambda row: _order(row.get(name)), reverse=direction == "desc")
    if form in ("json", "yaml"):
        return _dump(form, [_only(row, columns) for row in listed])
    names = list(columns) or _all_names(listed)
    if form == "table":
        return table(names if whole else names_first(names), listed, look, _cell, whole)
    return PLAIN[form](names, [[_cell(row.get(name)) for name in names] for row in listed])


def record(row: Record, form: str, columns: Sequence[str], look: Look = WHOLE) -> str:
    """Return one record: a table of fields, an object, a line of CSV, or one value a line.

    The table leaves out empty fields, unless `columns` names them.
    """
    row = _utc_row(row)
    _known(columns, [row])
    if form in ("json", "yaml"):
        return _dump(form, _only(row, columns))
    chosen = _only(row, columns)
    if form == "table":
        shown = {name: value for name, value in chosen.items() if columns or value not in EMPTY}
        return fields([(name, look.time(value) or _tall(value)) for name, value in shown.items()], look)
    if form == "csv":
        return _csv(list(chosen), [[_cell(value) for value in chosen.values()]])
    return "".join(_cell(value) + "\n" for value in chosen.values())


def without_room(rows: Iterable[Record], columns: Sequence[str], look: Look) -> list[str]:
    """Return the columns that a table leaves out because the terminal is too narrow."""
    return hidden_columns(names_first(columns), [_utc_row(row) for row in rows], look, _cell)


def _only(row: Record, columns: Sequence[str]) -> dict[str, object]:
    return {name: row.get(name) for name in columns} if columns else dict(row)


def _known(columns: Sequence[str], rows: Sequence[Record]) -> None:
    names = _all_names(rows)
    for column in columns:
        if rows and column not in names:
            raise Failure(f"there is no column {column!r}", USAGE, f"choose from {', '.join(names)}")


def _all_names(rows: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _order(value: object) -> tuple[int, float, str]:
    """Return the sort key: texts of digits sort as numbers, and null is first."""
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, str | int | float):
        with suppress(ValueError):
            return (1, float(value), "")
    return (2, 0.0, _cell(value))


def _utc_row(row: Record) -> dict[str, object]:
    return {key: _utc(inner) for key, inner in row.items()}


def _utc(value: object) -> object:
    if isinstance(value, Mapping):
        return _utc_row(value)
    if isinstance(value, list | tuple):
        return [_utc(inner) for inner in value]
    return with_zone(value)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | dict | list):
        return escaped(json.dumps(value, ensure_ascii=False))
    return escaped(str(value))


def _tall(value: object) -> str:
    """Return a value for people, in several lines if needed, without empty parts."""
    if isinstance(value, dict):
        return "\n".join(
            f"{escaped(key)}: {_cell(inner)}" for key, inner in value.items() if key != "links" and inner not in EMPTY
        )
    parts = value if isinstance(value, list) else []
    if _are_all(parts, dict):
        return "\n\n".join(map(_tall, parts))
    return "\n".join(map(_cell, parts)) if _are_all(parts, str) else _cell(value)


def _are_all(values: Sequence[object], kind: type) -> bool:
    """Return whether values are all of that kind, and there are some."""
    return bool(values) and all(isinstance(inner, kind) for inner in values)


def json_line(data: object) -> str:
    """Return data as one line of JSON, for a stream of records."""
    return escaped_json(json.dumps(data, ensure_ascii=False)) + "\n"


def _dump(form: str, data: object) -> str:
    if form == "json":
        return escaped_json(json.dumps(data, indent=2, ensure_ascii=False)) + "\n"
    import yaml

    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=False) if has_control(text) else text


def _csv(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()


def _value(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(" ".join(row) + "\n" for row in rows)


PLAIN: Mapping[str, Callable[[Sequence[str], Sequence[Sequence[str]]], str]] = {
    "csv": _csv,
    "value": _value,
}
