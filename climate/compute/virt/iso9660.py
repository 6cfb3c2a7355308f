"""ISO 9660 images with Rock Ridge names: small read-only disks that any guest can mount."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

SECTOR = 2048
LONGEST_NAME = 200
"""Maximum length of a name in bytes, so that its record stays below 255 bytes."""

_BEGIN = 16
"""Unused sectors at the beginning (system area)."""
_FOLDER_MODE, _FILE_MODE = 0o040555, 0o100444
_NO_DATE = bytes(7)
_NO_LONG_DATE = b"0" * 16 + b"\0"
_SHARED = b"SP\x07\x01\xbe\xef\x00"
"""SUSP entry of the root's first record: extensions are in use."""
_ROCK_RIDGE = b"ER\x12\x01\x0a\x00\x00\x01RRIP_1991A"
"""SUSP entry: the extension is Rock Ridge."""


@dataclass
class _Folder:
    """Folder, its number in the path tables, and the location of its records."""

    name: bytes
    parent: "_Folder | None" = None
    number: int = 1
    sector: int = 0
    folders: dict[bytes, "_Folder"] = field(default_factory=dict)
    files: dict[bytes, bytes] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the size of its records in bytes: whole sectors, which no record crosses."""
        used = 0
        for length in (len(record) for record in self.records({})):
            used = _up(used) if used % SECTOR + length > SECTOR else used
            used += length
        return _up(used)

    def records(self, places: Mapping[tuple[int, bytes], int]) -> Iterator[bytes]:
        """Yield its own record, that of its parent, and those of its content."""
        above = self.parent or self
        yield _record(b"\0", self.sector, 0 if not places else self.size, _px(_FOLDER_MODE), first=self.parent is None)
        yield _record(b"\1", above.sector, 0 if not places else above.size, _px(_FOLDER_MODE))
        for index, (name, folder) in enumerate(sorted(self.folders.items())):
            size = 0 if not places else folder.size
            yield _record(b"D%07d" % index, folder.sector, size, _px(_FOLDER_MODE) + _nm(name))
        for index, (name, content) in enumerate(sorted(self.files.items())):
            sector = places.get((self.number, name), 0)
            words = _px(_FILE_MODE) + _nm(name)
            yield _record(b"F%07d.;1" % index, sector, len(content), words, is_folder=False)


def image(files: Mapping[str, bytes], label: str) -> bytes:
    """Return the bytes of a disk with these files, by path, and this label. Raise ValueError for a name that is too
    long.
    """
    root = _tree(files)
    folders = _numbered(root)
    lengths = sum(
        10 if folder.parent is None else 8 + len(_short(folder)) + len(_short(folder)) % 2 for folder in folders
    )
    table = _up(lengths) // SECTOR
    at = _BEGIN + 2 + 2 * table
    for folder in folders:
        folder.sector = at
        at += folder.size // SECTOR
    places: dict[tuple[int, bytes], int] = {}
    contents: list[bytes] = []
    for folder in folders:
        for name, content in sorted(folder.files.items()):
            places[folder.number, name] = at
            contents.append(_whole(content))
            at += len(contents[-1]) // SECTOR
    tables = [b"".join(_path(folder, order) for folder in folders) for order in "<>"]
    volume = _volume(root, label, at, (lengths, table))
    parts = [bytes(_BEGIN * SECTOR), volume, _whole(b"\xffCD001\x01"), *(_whole(one) for one in tables)]
    return b"".join([*parts, *(_packed(folder, places) for folder in folders), *contents])


def _tree(files: Mapping[str, bytes]) -> _Folder:
    root = _Folder(b"")
    for path, content in files.items():
        *above, name = (part.encode() for part in path.split("/"))
        if any(not part or len(part) > LONGEST_NAME for part in (*above, name)):
            raise ValueError(f"{path!r} has a part that is empty or longer than {LONGEST_NAME} bytes")
        folder = root
        for part in above:
            folder = folder.folders.setdefault(part, _Folder(part, folder))
        folder.files[name] = content
    return root


def _numbered(root: _Folder) -> list[_Folder]:
    """Return the folders in the order of the path tables, parents first."""
    result = [root]
    for one in result:
        result.extend(folder for _, folder in sorted(one.folders.items()))
    for number, one in enumerate(result, 1):
        one.number = number
    return result


def _short(folder: _Folder) -> bytes:
    """Return the short name of a folder, for readers without Rock Ridge."""
    if folder.parent is None:
        return b"\0"
    return b"D%07d" % sorted(folder.parent.folders).index(folder.name)


def _packed(folder: _Folder, places: Mapping[tuple[int, bytes], int]) -> bytes:
    made = b""
    for record in folder.records(places or {(0, b""): 0}):
        if len(made) % SECTOR + len(record) > SECTOR:
            made = _whole(made)
        made += record
    return _whole(made)


def _record(name: bytes, sector: int, size: int, words: bytes, *, is_folder: bool = True, first: bool = False) -> bytes:
    words = _SHARED + words + _ROCK_RIDGE if first else words
    pad = b"" if len(name) % 2 else b"\0"
    body = struct.pack("<I", sector) + struct.pack(">I", sector) + struct.pack("<I", size) + struct.pack(">I", size)
    body += _NO_DATE + bytes([2 if is_folder else 0, 0, 0]) + struct.pack("<H", 1) + struct.pack(">H", 1)
    body += bytes([len(name)]) + name + pad + words
    body += b"\0" * (len(body) % 2)
    return bytes([len(body) + 2, 0]) + body


def _px(mode: int) -> bytes:
    """Return the Rock Ridge entry of mode, links, owner and group."""
    numbers = b"".join(struct.pack("<I", one) + struct.pack(">I", one) for one in (mode, 1, 0, 0))
    return b"PX" + bytes([4 + len(numbers), 1]) + numbers


def _nm(name: bytes) -> bytes:
    """Return the Rock Ridge entry of the full name."""
    return b"NM" + bytes([5 + len(name), 1, 0]) + name


def _path(folder: _Folder, order: str) -> bytes:
    name = _short(folder)
    parent = (folder.parent or folder).number
    return struct.pack(f"{order}BBIH", len(name), 0, folder.sector, parent) + name + b"\0" * (len(name) % 2)


def _volume(root: _Folder, label: str, sectors: int, table: tuple[int, int]) -> bytes:
    length, tables = table
    both = [struct.pack("<H", number) + struct.pack(">H", number) for number in (1, 1, SECTOR)]
    parts = [
        *(b"\x01CD001\x01\x00", b" " * 32, label.encode("ascii").ljust(32)[:32], bytes(8)),
        *(struct.pack("<I", sectors), struct.pack(">I", sectors), bytes(32), *both),
        *(struct.pack("<I", length), struct.pack(">I", length)),
        *(struct.pack("<II", _BEGIN + 2, 0), struct.pack(">II", _BEGIN + 2 + tables, 0)),
        _record(b"\0", root.sector, root.size, b""),
        *(b" " * (4 * 128 + 3 * 37), _NO_LONG_DATE * 4, b"\x01"),
    ]
    return _whole(b"".join(parts))


def _up(size: int) -> int:
    return -(-size // SECTOR) * SECTOR


def _whole(content: bytes) -> bytes:
    return content.ljust(_up(len(content)), b"\0")
