"""Tables for people: columns that fit the terminal, short ids, times as people say them.

Without a width everything is shown in full, because a program reads it then.
"""

import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from climate.cli.dates import instant, spoken

GAP = "  "
SHORT = 8
"""Least characters of a shortened id."""
TEXT = 20
"""Width to which a column of texts may shrink."""
NAMES = ("name", "hypervisor_hostname", "host", "node", "label", "floating_ip_address", "server")
"""Columns that stand before an id in a table, because people know things by them."""
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

GREEN, YELLOW, RED, BOLD, PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[1m", "\x1b[0m"
COLOURS = {
    **dict.fromkeys(("ACTIVE", "active", "up", "enabled", "good", "running", "on", "IN-USE", "AVAILABLE"), GREEN),
    **dict.fromkeys(("ERROR", "error", "down", "BAD", "failed", "disabled", "FAILED", "mute"), RED),
    **dict.fromkeys(("PENDING", "HELD", "BUILD", "RESERVED", "STARTING", "TERMINATING", "UPDATING"), YELLOW),
    **dict.fromkeys(("DELETING", "VERIFY_RESIZE", "draining", "recycling", "fair", "planned", "queued"), YELLOW),
}
"""State -> colour; other values have none."""

Cell = Callable[[object], str]


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of tables: width in columns of the terminal (None: no limit), colour, and form of times."""

    width: int | None = None
    colour: bool = False
    iso: bool = False
    utc: bool = False
    now: datetime | None = None

    def time(self, value: object) -> str | None:
        """Return a time as people say it; None for other values, and where ISO 8601 is wanted."""
        when = None if self.iso or self.width is None or self.now is None else instant(value)
        return None if when is None or self.now is None else spoken(when, self.now, self.utc)


@dataclass
class Column:
    """A column of a table, with its cells as they are shown."""

    name: str
    cells: list[str]
    is_text: bool
    width: int = 0

    @property
    def full(self) -> int:
        return max((measure(cell) for cell in (self.name, *self.cells)), default=0)

    @property
    def least(self) -> int:
        """Return the width below which the column is not shown: only texts wrap."""
        return min(self.full, max(TEXT, measure(self.name))) if self.is_text else self.full


def measure(text: str) -> int:
    """Return the columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(_breadth(character) for character in text)


def _breadth(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def names_first(columns: Sequence[str]) -> list[str]:
    """Return the columns with the names before the id that they begin with."""
    if not columns or columns[0] != "id":
        return list(columns)
    first = [name for name in columns[1:3] if name in NAMES][:1]
    return [*first, "id", *(name for name in columns[1:] if name not in first)]


def shortened(ids: Sequence[str]) -> list[str]:
    """Return each id cut to the shortest length at which all different ones of the list differ."""
    different = {one for one in ids if UUID.fullmatch(one)}
    for length in range(SHORT, 36):
        if len({one[:length] for one in different}) == len(different):
            return [one[:length].rstrip("-") if one in different and one[length - 1] != "-" else one for one in ids]
    return list(ids)


def table(names: Sequence[str], rows: Sequence[Mapping[str, object]], look: Look, cell: Cell, whole: bool) -> str:
    """Return a table; `whole` shows all its columns, one below the other if they do not fit beside each other."""
    if not rows:
        return ""
    columns = _columns(names, rows, look, cell, whole)
    if look.width is not None and not whole:
        columns = _fitting(columns, look.width)
    if whole and not _fit([column.least for column in columns], look.width):
        return _below_each_other(columns, len(rows), look)
    return _beside_each_other(columns, len(rows), look)


def _below_each_other(columns: Sequence[Column], count: int, look: Look) -> str:
    """Return a block of fields for each of `count` rows."""
    blocks = [fields([(column.name, column.cells[index]) for column in columns], look) for index in range(count)]
    return "\n".join(blocks)


def _beside_each_other(columns: Sequence[Column], count: int, look: Look) -> str:
    """Return the names of the columns, and a line or more for each of `count` rows."""
    _widen(columns, look.width)
    lines = [_line([(column.name, column.width) for column in columns], BOLD if look.colour else "")]
    for index in range(count):
        lines += _row([(column.cells[index], column.width) for column in columns], look)
    return "".join(f"{line}\n" for line in lines)


def hidden_columns(names: Sequence[str], rows: Sequence[Mapping[str, object]], look: Look, cell: Cell) -> list[str]:
    """Return the columns that have values and no room."""
    columns = _columns(names, rows, look, cell, whole=False)
    if look.width is None:
        return []
    kept = {one.name for one in _fitting(columns, look.width)}
    return [column.name for column in columns if column.name not in kept]


def fields(pairs: Sequence[tuple[str, str]], look: Look) -> str:
    """Return the fields of one thing, a line or more each."""
    names = max((measure(name) for name, _ in pairs), default=0)
    room = None if look.width is None else max(look.width - names - len(GAP), 1)
    lines = []
    for name, text in pairs:
        parts = [part for line in text.split("\n") for part in wrapped(line, room)] or [""]
        parts[0] = painted(parts[0], text, look)
        title = f"{BOLD}{padded(name, names)}{PLAIN}" if look.colour else padded(name, names)
        lines += [f"{title}{GAP}{parts[0]}".rstrip(), *(f"{' ' * names}{GAP}{part}".rstrip() for part in parts[1:])]
    return "".join(f"{line}\n" for line in lines)


def wrapped(text: str, room: int | None) -> list[str]:
    """Return the lines of a text between words; a word is cut only if it alone is too long."""
    if room is None or measure(text) <= room:
        return [text]
    if text.isascii():
        return textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    lines: list[str] = []
    line = ""
    for character in text:
        if measure(line + character) > room:
            lines, line = [*lines, line], ""
        line += character
    return [*lines, line]


def padded(text: str, width: int) -> str:
    """Return a text with spaces up to a width."""
    return text + " " * (width - measure(text))


def painted(text: str, value: str, look: Look) -> str:
    """Return a text in the colour of a state."""
    colour = COLOURS.get(value) if look.colour else None
    return f"{colour}{text}{PLAIN}" if colour else text


def _columns(
    names: Sequence[str], rows: Sequence[Mapping[str, object]], look: Look, cell: Cell, whole: bool
) -> list[Column]:
    """Return the columns with their cells, without empty columns unless `whole`; ids are short if they must be."""
    columns = [_column(name, [row.get(name) for row in rows], look, cell) for name in names]
    if whole:
        return columns
    columns = [one for one in columns if any(one.cells)] or columns[:1]
    if not _fit([one.full for one in columns], look.width):
        for column in columns:
            if column.name in ("id", "uuid") or column.name.endswith(("_id", "_uuid")):
                column.cells = shortened(column.cells)
    return columns


def _fit(widths: Sequence[int], width: int | None) -> bool:
    return width is None or sum(one + len(GAP) for one in widths) - len(GAP) <= width


def _column(name: str, values: Sequence[object], look: Look, cell: Cell) -> Column:
    shown = [look.time(value) or cell(value) for value in values]
    is_text = any(" " in text and not look.time(value) for text, value in zip(shown, values, strict=True))
    return Column(name, shown, is_text or name in NAMES)


def _fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns that fit, the earlier ones first; the first one is always among them."""
    chosen: list[Column] = []
    room = width + len(GAP)
    for column in columns:
        if column.least + len(GAP) <= room or not chosen:
            chosen.append(column)
            room -= column.least + len(GAP)
    return chosen


def _widen(columns: Sequence[Column], width: int | None) -> None:
    """Give each column its least width, and the rest to those that need more, from the left."""
    if width is None:
        for column in columns:
            column.width = column.full
        return
    rest = width - sum(min(column.least, width) + len(GAP) for column in columns) + len(GAP)
    for column in columns:
        more = max(min(column.full - column.least, rest), 0)
        column.width, rest = min(column.least, width) + more, rest - more


def _row(cells: Sequence[tuple[str, int]], look: Look) -> list[str]:
    parts = [wrapped(text, width) for text, width in cells]
    height = max(map(len, parts))
    lines = []
    for index in range(height):
        line = [
            painted(padded(part[index], width), text, look) if index < len(part) else " " * width
            for part, (text, width) in zip(parts, cells, strict=True)
        ]
        lines.append(GAP.join(line).rstrip())
    return lines


def _line(cells: Sequence[tuple[str, int]], colour: str) -> str:
    line = GAP.join(padded(text[:width], width) for text, width in cells).rstrip()
    return f"{colour}{line}{PLAIN}" if colour else line
