"""The image of a container with SSH; that a server of it can be entered is tested in tests/netlab/test_ssh.py."""

import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from climate.sandbox import guest_image

needs_loader = pytest.mark.skipif(
    not list(Path("/lib").glob("*-linux-gnu/ld-linux-*")) or shutil.which("busybox") is None,
    reason="the loader of Debian or busybox is not installed",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What the packages would contain, from programs of this system."""
    loader = next(Path("/lib").glob("*-linux-gnu/ld-linux-*"))
    libraries = tmp_path / loader.parent.relative_to("/")
    libraries.mkdir(parents=True)
    for library in ("libc.so.6", loader.name):
        shutil.copy(loader.with_name(library), libraries / library)
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / loader.name).symlink_to(loader)
    for path, program in ((guest_image.DROPBEAR, "true"), (guest_image.BUSYBOX, "busybox")):
        found = shutil.which(program)
        assert found is not None
        (tmp_path / path).parent.mkdir(parents=True)
        shutil.copy(found, tmp_path / path)
    return tmp_path


@needs_loader
def test_the_image_has_its_programs_and_their_libraries_and_nothing_of_the_system(root: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(guest_image.container_image(root))) as archive:
        names = set(archive.getnames())
        shell, init = archive.getmember("bin/sh"), archive.getmember("sbin/init")
        home, login = archive.getmember("root"), archive.extractfile("sbin/serve-ssh")
        assert login is not None
        assert login.read().decode() == guest_image.SERVE_SSH
    assert {guest_image.DROPBEAR, guest_image.BUSYBOX, "etc/passwd"} <= names
    assert any(name.endswith("/libc.so.6") for name in names)
    assert any(name.startswith("lib64/ld-linux-") for name in names)
    assert (shell.linkname, init.mode, home.mode) == ("busybox", 0o755, 0o700)
    assert not [name for name in names if name.startswith(("/", "tmp", ".."))]


@pytest.mark.parametrize("script", [guest_image.INIT, guest_image.SERVE_SSH])
def test_its_scripts_are_valid(script: str) -> None:
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)


def test_a_program_that_is_missing_or_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(guest_image.ImageError, match=r"no-such-program cannot run \(No such file or directory\)"):
        guest_image.output("no-such-program")
    with pytest.raises(guest_image.ImageError, match="false failed: 1"):
        guest_image.output("false")


def test_the_command_needs_one_file() -> None:
    words = [sys.executable, "-m", "climate.sandbox.guest_image"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "usage: python -m climate.sandbox.guest_image FILE\n")


@needs_loader
def test_a_further_program_takes_the_place_of_the_command_of_busybox(root: Path) -> None:
    content = guest_image.container_image(root, {"bin/ls": b"#!/bin/sh"})
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert archive.getnames().count("bin/ls") == 1
        assert (archive.getmember("bin/ls").isfile(), archive.getmember("bin/ls").mode) == (True, 0o755)
        assert archive.getmember("bin/cat").issym()
