"""What is particular to containers: walls, roots that images bring, and all processes behind the walls."""

import os
import shutil
import subprocess
import tarfile
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psutil
import pytest

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.virt import Guest, State, archive
from climate.compute.virt.containers.driver import BubblewrapContainer
from climate.compute.virt.process import ProcessDriver
from tests.compute.virt.driver_cases import Subject, cannot, until

NOBODY, FORBIDDEN = 65534, 77
PROGRAMS = ("sh", "setpriv", "setsid", "sleep", "true", "unshare", "touch")


@pytest.fixture
def container(make_subject: Callable[[str], Subject]) -> Subject:
    return make_subject("container")


def disk(subject: Subject, guest: Guest) -> Path:
    assert subject.homes is not None
    return subject.homes.of(guest.id) / "disk"


def bring(root: Path, program: str) -> None:
    """Copy a program of the system and the libraries it needs into a root."""
    found = shutil.which(program)
    assert found is not None
    shutil.copy(found, root / "bin" / program)
    words = subprocess.run(["ldd", found], capture_output=True, text=True, check=False).stdout.split()
    for library in (Path(word) for word in words if word.startswith("/")):
        place = root / library.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)


@pytest.fixture
def rooted(tmp_path: Path) -> Callable[[str], Path]:
    """Makes images with a few programs, and a script as their first process."""

    def make(script: str) -> Path:
        root = tmp_path / "root"
        for folder in ("bin", "sbin", "etc"):
            (root / folder).mkdir(parents=True)
        for program in PROGRAMS:
            bring(root, program)
        (root / "sbin/init").write_text(f"#!/bin/sh\n{script}\nwhile :; do read -r _; done\n")
        (root / "sbin/init").chmod(0o755)
        archive.pack([(path, path.name) for path in root.iterdir()], tmp_path / "rooted")
        return tmp_path / "rooted"

    return make


LOOK_AROUND = """
echo "I am $$, and there are" /proc/[0-9]*
read -r name < /proc/sys/kernel/hostname; echo "named $name"
while read -r line; do echo "net $line"; done < /proc/net/dev
[ -e {secret} ] && echo "sees the secret"
read -r rule < /proc/sys/kernel/core_pattern
echo "$rule" 2> /dev/null > /proc/sys/kernel/core_pattern && echo "rules the kernel"
[ -w /proc/sysrq-trigger ] && echo "rules the machine"
setpriv --clear-groups true && echo "has one group"
unshare -Ur true 2> /dev/null && echo "makes namespaces"
touch /mine && echo "keeps its own"
echo "given: ${CLIMATE_HOME-nothing}"
echo "all seen"
"""


def test_a_guest_is_alone_behind_its_walls(container: Subject, rooted: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    guest = container.guest(image=rooted(LOOK_AROUND.replace("{secret}", str(tmp_path / "secret"))))
    container.driver.run(guest)
    said = container.said(guest, "all seen")
    assert "I am 1, and there are /proc/1\n" in said
    assert f"named {guest.name}\n" in said
    assert "has one group\n" in said
    interfaces = [line.split()[1] for line in said.splitlines() if line.startswith("net ") and ":" in line.split()[1]]
    assert interfaces == ["lo:"]
    assert "secret" not in said
    assert not any(claim in said for claim in ("rules", "makes namespaces"))
    assert "keeps its own" in said
    assert "given: nothing" in said
    assert (disk(container, guest) / "mine").exists()


def test_all_that_a_guest_has_created_stands_still_and_ends_with_it(
    container: Subject, rooted: Callable[[str], Path]
) -> None:
    guest = container.guest(image=rooted("setsid sleep 1000 & setsid sleep 1000 &"))
    container.driver.run(guest)
    container.said(guest)
    first = container.pid(guest)
    until(lambda: len(list(processes.descendants(first))) == 3, "too few")
    made = list(processes.descendants(first))
    assert {processes.state(one) in processes.STOPPED for one in made} == {False}
    container.driver.pause(guest)
    assert {processes.state(one) in processes.STOPPED for one in made} == {True}
    container.driver.unpause(guest)
    assert {processes.state(one) in processes.STOPPED for one in made} == {False}
    container.driver.pause(guest)
    container.driver.delete(guest.id)
    until(lambda: [processes.state(one) for one in made] == [None] * 3, "something goes on")


def test_the_waiting_shell_ends_when_it_is_asked(container: Subject) -> None:
    guest = container.guest()
    assert isinstance(container.driver, ProcessDriver)
    patient = replace(container.driver, stop_seconds=60)
    patient.run(guest)
    container.said(guest)
    patient.stop(guest)
    assert container.state(guest) is State.DEAD


def test_a_guest_without_programs_borrows_the_systems_and_may_not_change_them(container: Subject) -> None:
    guest = container.guest()
    container.driver.run(guest)
    assert "server web" in container.said(guest)
    mounts = Path(f"/proc/{container.pid(guest).number}/mounts").read_text().splitlines()
    modes = {line.split()[1]: line.split()[3].split(",")[0] for line in mounts}
    assert (modes["/"], modes["/usr"]) == ("rw", "ro")
    assert not Path(f"/proc/{container.pid(guest).number}/root/etc/passwd").exists()


def test_what_a_guest_wrote_is_in_its_image_and_nothing_else(container: Subject, tmp_path: Path) -> None:
    guest = container.guest()
    container.driver.run(guest)
    container.said(guest)
    (disk(container, guest) / "root" / "note").write_text("kept")
    container.driver.snapshot(guest, tmp_path / "image")
    assert container.state(guest) is State.RUNNING
    with tarfile.open(tmp_path / "image") as made:
        files = [entry.name for entry in made if entry.isfile()]
    assert files == ["root/note"]
    copy = container.guest("copy", image=tmp_path / "image")
    container.driver.run(copy)
    assert "server copy" in container.said(copy)
    assert (disk(container, copy) / "root" / "note").read_text() == "kept"


def test_a_guest_outlives_the_walls_builder(container: Subject) -> None:
    guest = container.guest()
    container.driver.run(guest)
    assert container.said(guest)
    builder = psutil.Process(container.pid(guest).number).parent()
    assert builder is not None
    builder.kill()
    until(lambda: container.driver.states() and not builder.is_running(), "it is still there")
    assert container.state(guest) is State.RUNNING
    container.driver.delete(guest.id)
    assert container.left(guest) == []


def test_a_guest_whose_pid_file_was_never_written_is_still_found(container: Subject) -> None:
    guest = container.guest()
    container.driver.run(guest)
    stray = container.pid(guest)
    (disk(container, guest).parent / "pid").unlink()
    container.driver.delete(guest.id)
    until(lambda: processes.state(stray) is None, "it lives")
    assert container.left(guest) == []


@pytest.mark.parametrize("name", ["proc", "dev", "run", "tmp"])
def test_an_image_cannot_move_what_belongs_to_the_walls(container: Subject, tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("/oldroot/etc")
    archive.pack([(tmp_path / "link", name)], tmp_path / "image")
    guest = container.guest(image=tmp_path / "image")
    with pytest.raises(VirtError, match=f"a link instead of the folder /{name}"):
        container.driver.run(guest)


def test_an_image_that_is_none_is_refused(container: Subject, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"\xeb\xfe" * 600)
    guest = container.guest(image=tmp_path / "image")
    with pytest.raises(VirtError, match="not a usable tar"):
        container.driver.run(guest)
    assert container.state(guest) is State.DEAD


def test_an_image_with_nothing_to_run_is_an_error_with_the_reason(container: Subject, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    archive.pack([(tmp_path / "text", "bin/text")], tmp_path / "image")
    guest = container.guest(image=tmp_path / "image")
    with pytest.raises(VirtError, match="/bin/sh"):
        container.driver.run(guest)
    assert container.state(guest) is State.DEAD


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(os.getuid() != 0, reason="all tests here are an ordinary user's already")
def test_an_ordinary_user_may_do_all_this(container: Subject) -> None:
    with TemporaryDirectory(prefix="climate-nobody-") as home, TemporaryDirectory() as before:
        assert live(Path(before)) == 0  # everything is imported by now: Python itself may be out of a user's reach
        os.chown(home, NOBODY, NOBODY)
        pid = os.fork()
        if not pid:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os._exit(live(Path(home)))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == FORBIDDEN:
        cannot("ordinary users may not make namespaces here")
    assert code == 0


def live(home: Path) -> int:
    """All verbs; 0 when they did what they promise."""
    driver = ProcessDriver(home / "containers", BubblewrapContainer(), stop_seconds=2)
    guest = Guest(str(uuid4()), "web", "n1")
    try:
        if driver.trouble() is not None:
            return FORBIDDEN
        found = []
        for verb in (driver.prepare, driver.run, driver.pause, driver.unpause, driver.stop, driver.run):
            verb(guest)
            found.append(driver.states()[guest.id])
        driver.snapshot(guest, home / "image")
        locked = home / "containers" / guest.id / "disk" / "root" / "locked"
        (locked / "in").mkdir(parents=True)
        (locked / "in").chmod(0)
        locked.chmod(0)
        driver.delete(guest.id)
    except Exception:
        traceback.print_exc()
        driver.homes.end(guest.id)
        return 1
    wanted = [State.PREPARED, State.RUNNING, State.PAUSED, State.RUNNING, State.DEAD, State.RUNNING]
    return 0 if found == wanted and list((home / "containers").iterdir()) == [] else 2
