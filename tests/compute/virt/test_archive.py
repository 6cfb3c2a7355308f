"""Images are made by anybody: what is in one stays in its folder."""

import contextlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climate.compute.errors import VirtError
from climate.compute.virt import archive
from tests.campaign import length

Entry = tuple[str, bytes | None, str, bytes]
"""Name, kind, target of a link, content."""


@pytest.fixture
def image(tmp_path: Path) -> Callable[..., Path]:
    """Makes an archive of entries."""

    def make(*entries: Entry) -> Path:
        with tarfile.open(tmp_path / "image", "w:gz") as made:
            for name, kind, target, content in entries:
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname, entry.size = kind or tarfile.REGTYPE, target, len(content)
                entry.mode = 0o6755
                made.addfile(entry, io.BytesIO(content))
        return tmp_path / "image"

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.mark.parametrize(
    "entries",
    [
        [("../out", None, "", b"x")],
        [("a/../../out", None, "", b"x")],
        [("link", tarfile.SYMTYPE, "..", b""), ("link/out", None, "", b"x")],
        [("link", tarfile.SYMTYPE, "..", b""), ("link/sub/out", tarfile.DIRTYPE, "", b"")],
        [("hard", tarfile.LNKTYPE, "../secret", b"")],
        [("hard", tarfile.LNKTYPE, "/secret", b"")],
        [("link", tarfile.SYMTYPE, "..", b""), ("hard", tarfile.LNKTYPE, "link/secret", b"")],
    ],
)
def test_nothing_leads_out(image: Callable[..., Path], folder: Path, entries: list[Entry]) -> None:
    secret = folder.parent / "secret"
    secret.write_text("s")
    with pytest.raises((VirtError, FileNotFoundError)):
        archive.unpack(image(*entries), folder, 1)
    assert {path.name for path in folder.parent.iterdir()} == {"folder", "image", "secret"}
    assert secret.stat().st_nlink == 1
    assert [path.name for path in folder.rglob("*") if path.is_file() and not path.is_symlink()] == []


NAMES = st.sampled_from(["a", "b", "a/b", "a/secret"])
TARGETS = st.sampled_from(["..", "../secret", "a", "b"])
LINKS = st.tuples(NAMES, st.just(tarfile.SYMTYPE), TARGETS)
OTHERS = st.tuples(NAMES, st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE]), TARGETS)


@settings(max_examples=length(100, 300), deadline=None)
@given(st.lists(LINKS, max_size=3), st.lists(OTHERS, max_size=3))
def test_whatever_an_image_holds_stays_in_its_folder(
    links: list[tuple[str, bytes, str]], others: list[tuple[str, bytes, str]]
) -> None:
    with TemporaryDirectory() as place:
        outside = Path(place, "deep", "enough", "that", "no", "mistake", "leads", "out")
        folder = outside / "folder"
        folder.mkdir(parents=True)
        (outside / "secret").write_text("s")
        with tarfile.open(outside / "image", "w") as made:
            for name, kind, target in links + others:
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname, entry.mode = kind, target, 0o123
                made.addfile(entry)
        before = around(Path(place), folder)
        with contextlib.suppress(VirtError, OSError):
            archive.unpack(outside / "image", folder, 1)
        assert around(Path(place), folder) == before


def around(place: Path, folder: Path) -> dict[Path, tuple[int, int, bytes]]:
    """Everything in a place but what is in the folder: modes, numbers of names, contents."""
    found = [path for path in (place, *place.rglob("*")) if path == folder or folder not in path.parents]
    seen = {path: path.lstat() for path in found if path != folder}
    return {
        path: (stat.st_mode, stat.st_nlink, path.read_bytes() if path.is_file() else b"") for path, stat in seen.items()
    }


def test_a_link_is_replaced_and_never_written_through(image: Callable[..., Path], folder: Path) -> None:
    victim = folder.parent / "victim"
    victim.write_text("v")
    entries = [("name", tarfile.SYMTYPE, str(victim), b""), ("name", None, "", b"mine")]
    archive.unpack(image(*entries), folder, 1)
    assert victim.read_text() == "v"
    assert (folder / "name").read_text() == "mine"


def test_a_folder_takes_the_place_of_a_link_and_leaves_alone_what_it_led_to(
    image: Callable[..., Path], folder: Path
) -> None:
    victim = folder.parent / "victim"
    victim.mkdir(mode=0o711)
    archive.unpack(image(("name", tarfile.SYMTYPE, str(victim), b""), ("name", tarfile.DIRTYPE, "", b"")), folder, 1)
    assert victim.stat().st_mode & 0o777 == 0o711
    assert not (folder / "name").is_symlink()


def test_devices_and_privileges_stay_outside(image: Callable[..., Path], folder: Path) -> None:
    made = image(("null", tarfile.CHRTYPE, "", b""), ("fifo", tarfile.FIFOTYPE, "", b""), ("run", None, "", b""))
    archive.unpack(made, folder, 1)
    assert [path.name for path in folder.iterdir()] == ["run"]
    assert (folder / "run").stat().st_mode & 0o7777 == 0o755


def test_an_image_larger_than_its_disk_is_refused_before_it_is_written(tmp_path: Path, folder: Path) -> None:
    with tarfile.open(tmp_path / "image", "w") as made:
        for number in range(2):
            entry = tarfile.TarInfo(f"f{number}")
            entry.size = number << 30
            made.addfile(entry)
    with pytest.raises(VirtError, match="more than 1 GB"):
        archive.unpack(tmp_path / "image", folder, 1)
    assert (folder / "f0").stat().st_size == 0
    assert not (folder / "f1").exists()


@pytest.mark.parametrize("content", [b"", b"no tar", b"\x1f\x8b\x08damaged", b"\xfd7zXZ\x00damaged"])
def test_a_damaged_image_is_reported(folder: Path, content: bytes) -> None:
    (folder.parent / "image").write_bytes(content)
    assert not archive.is_archive(folder.parent / "image")
    with pytest.raises((VirtError, OSError)):
        archive.unpack(folder.parent / "image", folder, 1)


def test_a_cut_image_is_reported(image: Callable[..., Path], folder: Path) -> None:
    whole = image(("a", None, "", bytes(range(256)) * 4000))
    whole.write_bytes(whole.read_bytes()[:-60])
    with pytest.raises((VirtError, OSError)):
        archive.unpack(whole, folder, 1)


def test_what_is_packed_comes_out_again(folder: Path, tmp_path: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("text")
    (folder / "twin").hardlink_to(folder / "sub" / "file")
    (folder / "link").symlink_to("/nowhere")
    archive.pack([(path, path.name) for path in folder.iterdir()], tmp_path / "image")
    (tmp_path / "copy").mkdir()
    archive.unpack(tmp_path / "image", tmp_path / "copy", 1)
    assert (tmp_path / "copy/sub/file").read_text() == "text"
    assert (tmp_path / "copy/sub/file").stat().st_nlink == 2
    assert (tmp_path / "copy/link").readlink() == Path("/nowhere")
