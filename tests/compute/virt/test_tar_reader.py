"""Archives that were made to harm the worker that reads them: it ends, in bounded memory, and says what is wrong."""

import gzip
import io
import lzma
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from climate.compute.errors import VirtError
from climate.compute.virt import archive, tar_reader
from climate.compute.virt.tar_reader import HEADER_BYTES, HEADERS, Reader

BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)


def header(name: str = "a", kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    """A header whose checksum is right, whatever its size is."""
    raw = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
    raw[124:136] = (256**12 + size if size < 0 else (0x80 << 88) + size).to_bytes(12, "big")
    raw[156:157] = kind
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def padded(body: bytes) -> bytes:
    return body + bytes(-len(body) % BLOCK)


def extended(kind: bytes, body: bytes) -> bytes:
    return header("x", kind, len(body)) + padded(body)


def record(key: bytes, value: bytes) -> bytes:
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest) + len(str(len(rest)))
    length = len(rest) + len(str(length))
    return str(length).encode() + rest


def unpack(tmp_path: Path, content: bytes) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "image").write_bytes(content)
    archive.unpack(tmp_path / "image", folder, 1)
    return folder


PAX, GLOBAL = tarfile.XHDTYPE, tarfile.XGLTYPE

HOSTILE = {
    "a negative size leads back to a member that was read": header() * 2 + header(size=-2 * BLOCK) + END,
    "a negative size in pax records": header() + extended(PAX, record(b"size", b"-1536")) + header("b") + END,
    "a size that is no number": extended(PAX, record(b"size", b"9" * 400)) + header() + END,
    "a negative long name": header(kind=tarfile.GNUTYPE_LONGNAME, size=-BLOCK) + header() + END,
    "a long name without end": header(kind=tarfile.GNUTYPE_LONGNAME, size=1 << 40) + header() + END,
    "pax records without end": header(kind=PAX, size=1 << 60) + header() + END,
    "a header larger than any": extended(PAX, record(b"comment", bytes(HEADER_BYTES))) + header() + END,
    "headers of headers": extended(PAX, record(b"comment", b"c")) * (HEADERS + 1) + header() + END,
    "records within records": extended(PAX, b"2 " * 30_000 + b"=\n") + header() + END,
    "a record longer than its header": extended(PAX, b"999 path=x\n") + header() + END,
    "a record of no length": extended(PAX, b"0 path=x\n") + header() + END,
    "a record without a line feed": extended(PAX, b"8 path=xy") + header() + END,
    "a sparse map": header(kind=tarfile.GNUTYPE_SPARSE) + END,
    "a sparse map in pax records": extended(PAX, record(b"GNU.sparse.major", b"1")) + header() + END,
    "a size beyond all files": header(size=1 << 80) + END,
    "a path longer than the kernel takes": extended(PAX, record(b"path", b"a/" * 5000)) + header() + END,
    "a path with an end in it": extended(PAX, record(b"path", b"a\0b")) + header() + END,
    "a path that is too deep": extended(PAX, record(b"path", b"a/" * 200 + b"x")) + header() + END,
    "no more than a header": header(size=BLOCK),
    "a damaged header after a good one": header() + bytes(range(256)) * 2,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises((VirtError, OSError)):
        unpack(tmp_path, content)


def test_folders_of_a_path_take_room(tmp_path: Path) -> None:
    reader = Reader(io.BytesIO(header("a/b/c") + END), 1)
    reader.charge(tar_reader.GB - 2 * tar_reader.ENTRY_BYTES)
    (member,) = reader
    with pytest.raises(VirtError, match="more than 1 GB"):
        archive.extract_member(reader, member, tmp_path)


def test_members_leave_nothing_in_memory() -> None:
    members = b"".join(header(f"{number:0100}") for number in range(1000))

    class Repeated(io.RawIOBase):
        """So many members, again and again."""

        left = 20

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            size = min(len(buffer), len(members))
            assert size == len(members)
            self.left -= 1
            buffer[:size] = members
            return size if self.left >= 0 else 0

    reader = Reader(io.BufferedReader(Repeated(), len(members)), 1)
    tracemalloc.start()
    try:
        count = sum(1 for _ in reader)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 20_000
    assert peak < 4 << 20


def test_a_global_header_changes_no_member(tmp_path: Path) -> None:
    content = extended(GLOBAL, record(b"path", b"other")) + header("a", size=3) + padded(b"abc") + END
    folder = unpack(tmp_path, content)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "abc"}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("packed", ["", "gz", "bz2", "xz"])
def test_what_others_pack_is_read(tmp_path: Path, form: int, packed: str) -> None:
    name = "/".join(["folder", "x" * 90, "y" * 90] if form == tarfile.USTAR_FORMAT else ["folder", *["x" * 90] * 5])
    with tarfile.open(tmp_path / "made", f"w:{packed}", format=form) as made:
        for kind, linkname, content in (
            (tarfile.REGTYPE, "", bytes(range(256)) * 500),
            (tarfile.LNKTYPE, name[:100], b""),
        ):
            entry = tarfile.TarInfo(name if kind == tarfile.REGTYPE else "ü")
            entry.type, entry.size = kind, len(content)
            entry.linkname = linkname if form == tarfile.USTAR_FORMAT else name
            if form != tarfile.USTAR_FORMAT or kind == tarfile.REGTYPE:
                made.addfile(entry, io.BytesIO(content))
    folder = unpack(tmp_path, (tmp_path / "made").read_bytes())
    assert (folder / name).read_bytes() == bytes(range(256)) * 500
    assert archive.is_archive(tmp_path / "made")


def test_xz_with_more_memory_than_any_preset_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 << 20}]
    machine = lzma.LZMACompressor(filters=filters)
    content = machine.compress(header() + END) + machine.flush()
    with pytest.raises(VirtError, match="not a usable tar archive"):
        unpack(tmp_path, content)


def test_parts_that_were_compressed_apart_are_one_archive(tmp_path: Path) -> None:
    content = header("a") + header("b") + END
    parts = [content[:700], content[700:]]
    for pack in (lzma.compress, gzip.compress):
        folder = tmp_path / pack.__module__
        folder.mkdir()
        assert {path.name for path in unpack(folder, b"".join(map(pack, parts))).iterdir()} == {"a", "b"}


def test_a_damaged_archive_says_what_is_damaged() -> None:
    reader = Reader(io.BytesIO(extended(PAX, b"8 path=xy") + header()), 1)
    with pytest.raises(tar_reader.DAMAGED, match="a pax header is damaged"):
        list(reader)
