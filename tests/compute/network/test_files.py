"""Files that other programs read while they are written."""

import threading
from pathlib import Path

import pytest

from climate.compute.errors import NetworkError
from climate.compute.network.linux import atomic_files


def test_a_file_changes_in_one_step_and_only_when_it_has_to(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    atomic_files.write(path, "one\n")
    before = path.stat()
    assert before.st_mode & 0o777 == 0o644
    atomic_files.write(path, "one\n")
    assert path.stat().st_ino == before.st_ino
    atomic_files.write(path, "two\n", 0o755)
    assert path.stat().st_ino != before.st_ino
    assert path.stat().st_mode & 0o777 == 0o755
    assert [each.name for each in tmp_path.iterdir()] == ["hosts"]


def test_an_empty_file_is_one_too(tmp_path: Path) -> None:
    assert atomic_files.read(tmp_path / "opts") == ""
    atomic_files.write(tmp_path / "opts", "")
    assert (tmp_path / "opts").exists()


def test_what_is_no_text_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_bytes(b"\xff\xfe")
    atomic_files.write(tmp_path / "hosts", "")
    assert (tmp_path / "hosts").read_bytes() == b""


def test_one_works_on_a_folder_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []
    waits = threading.Event()

    def other() -> None:
        waits.set()
        with atomic_files.alone(tmp_path):
            order.append("other")

    thread = threading.Thread(target=other)
    with atomic_files.alone(tmp_path):
        thread.start()
        assert waits.wait(60)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_a_folder_that_cannot_be_had_is_an_error_of_the_network(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NetworkError, match="cannot be written"), atomic_files.alone(tmp_path / "file" / "dhcp"):
        raise AssertionError("nobody may work there")
    with pytest.raises(NetworkError, match="cannot be written"), atomic_files.alone(tmp_path):
        atomic_files.write(tmp_path / "nowhere" / "hosts", "one")
