"""The sandbox: what runs in it hears what it should, and nothing of it is left whatever ends it."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from climate.compute.linux import netns
from climate.sandbox import topology
from climate.sandbox.entry_command import within, words
from climate.sandbox.namespace import SHARED_MEMORY

pytestmark = pytest.mark.netlab
ROOT = Path(__file__).parents[2]

BUSY = """
ip netns add deep
ip link add left type veth peer name right netns deep
setsid ip netns exec deep sleep 600 &
setsid sleep 600 &
mount -t tmpfs tmpfs /mnt
echo "world $(stat -L -c %i /proc/self/ns/net) $(stat -L -c %i /run/netns/deep)"
exec sleep 600
"""
COUNTS = """
import signal, sys, time
heard = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: heard.append(number))
print("listening", flush=True)
while not heard:
    time.sleep(0.01)
print("hears", flush=True)
# The last one: what came before it, by the same way, is here by now.
while signal.SIGTERM not in heard:
    time.sleep(0.01)
print(f"heard {[int(number) for number in heard]}", flush=True)
"""


@contextmanager
def begun(*command: str, session: bool = False, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The command in a sandbox; when the block is done with it, it has to end by itself."""
    argv = words(command, session=session)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT, **options) as outer:
        try:
            yield outer
            outer.wait(60)
        finally:
            outer.kill()


def line(outer: subprocess.Popen[str]) -> str:
    assert outer.stdout
    return outer.stdout.readline()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.01)


def networks() -> set[int]:
    """The networks in which there are processes."""
    found = set()
    for process in psutil.process_iter():
        try:
            found.add(os.stat(f"/proc/{process.pid}/ns/net").st_ino)
        except OSError:
            continue
    return found


def machine() -> tuple[str, str, list[str]]:
    """What must not change out here: interfaces, mounts, namespaces with names."""
    links = subprocess.run(["ip", "-oneline", "link"], capture_output=True, text=True, check=True).stdout
    return links, Path("/proc/self/mounts").read_text(), sorted(os.listdir("/run/netns"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_whatever_ends_it(number: signal.Signals) -> None:
    before = machine()
    with begun("sh", "-c", BUSY) as outer:
        inodes = set(map(int, line(outer).split()[1:]))
        until(lambda: inodes <= networks())
        assert machine() == before
        outer.send_signal(number)
    until(lambda: not networks() & inodes)
    assert machine() == before
    assert outer.returncode == (-9 if number == signal.SIGKILL else 128 + number)


def test_the_first_process_ends_with_everything_below_it() -> None:
    with begun("sh", "-c", BUSY) as outer:
        inodes = set(map(int, line(outer).split()[1:]))
        (first,) = psutil.Process(outer.pid).children()
        first.kill()
    until(lambda: not networks() & inodes)
    assert outer.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize(("command", "status"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_the_status_is_the_command_s(command: str, status: int) -> None:
    with begun("sh", "-c", command) as outer:
        pass
    assert outer.returncode == status


def test_a_command_that_is_not_there_is_named() -> None:
    with begun("no-such-program", stderr=subprocess.PIPE) as outer:
        said = outer.communicate()[1]
    assert (outer.returncode, said) == (125, "sandbox: no-such-program cannot be run: No such file or directory\n")


def test_it_is_empty_and_its_own() -> None:
    script = "cat /proc/net/dev | tail -n +3; ls /run/netns; ps -e -o pid=,comm= | wc -l; test -e /run/climate-sandbox"
    with begun("sh", "-c", script) as outer:
        assert outer.stdout
        links, processes = outer.stdout.read().split("\n")[:2]
    assert links.split(":")[0].strip() == "lo"
    assert int(processes) <= 4
    assert outer.returncode == 0
    assert within()


def test_orphans_are_buried() -> None:
    script = "for n in 1 2 3; do (setsid true &) ; done; while ps -e -o stat= | grep -q Z; do :; done; echo buried"
    with begun("sh", "-c", script) as outer:
        assert outer.stdout
        assert outer.stdout.read() == "buried\n"


@pytest.mark.parametrize("session", [False, True])
def test_ctrl_c_is_heard_once(session: bool) -> None:
    """A terminal tells everybody in the foreground; a command in a session of its own hears it through us."""
    master, slave = pty.openpty()
    with begun(
        sys.executable, "-c", COUNTS, session=session, stdin=slave, start_new_session=True, preexec_fn=_take_terminal
    ) as outer:
        os.close(slave)
        assert line(outer) == "listening\n"
        os.write(master, b"\x03")
        # A terminal tells in its own time, which may be after what is sent next.
        assert line(outer) == "hears\n"
        outer.send_signal(signal.SIGTERM)
        assert line(outer) == f"heard {[int(signal.SIGINT), int(signal.SIGTERM)]}\n"
    os.close(master)
    assert outer.returncode == 0


def test_a_signal_to_the_outer_process_alone_is_passed_on_once() -> None:
    with begun(sys.executable, "-c", COUNTS) as outer:
        assert line(outer) == "listening\n"
        outer.send_signal(signal.SIGTERM)
        assert line(outer) == "hears\n"
        assert line(outer) == f"heard {[int(signal.SIGTERM)]}\n"


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_lab_that_cannot_be_created_says_what_was_refused() -> None:
    lab = topology.described(("a-name-too-long",))
    try:
        with pytest.raises(topology.LabError, match=r"link add sw-a-name-too-long .*: "):
            topology.up(lab)
    finally:
        topology.down(lab)
    assert netns.names() == []


def test_what_lies_below_run_is_reached_when_it_is_needed() -> None:
    home = Path("/run/climate-test-home")
    home.mkdir()
    (home / "file").write_text("kept")
    with begun("cat", str(home / "file"), env={**os.environ, "CLIMATE_HOME": str(home)}) as outer:
        assert outer.stdout
        assert outer.stdout.read() == "kept"
    (home / "file").unlink()
    home.rmdir()


def test_of_shared_memory_only_what_is_needed_is_there_and_nothing_stays() -> None:
    """PostgreSQL has segments there, which nobody removes after a `kill -9`."""
    kept = Path(tempfile.mkdtemp(prefix="climate-test-", dir=SHARED_MEMORY))
    segment = SHARED_MEMORY / f"segment-of-{kept.name}"
    script = (
        f"stat -c %a {SHARED_MEMORY}; ls {SHARED_MEMORY}; echo > {segment}; echo > {kept}/file; echo; exec sleep 600"
    )
    with begun("sh", "-c", script, env={**os.environ, "CLIMATE_HOME": str(kept)}) as outer:
        assert [line(outer) for _ in range(3)] == ["1777\n", f"{kept.name}\n", "\n"]
        outer.kill()
    assert not segment.exists()
    (kept / "file").unlink()
    kept.rmdir()


def test_a_refusal_says_why_and_what_to_do() -> None:
    """As where user namespaces are switched off: no rights of root, and no new one may be made."""
    forbidden = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set -all --inh-caps -all "$@"'
    argv = ["unshare", "--user", "--map-root-user", "sh", "-c", forbidden, "sh", *words(["true"])]
    refused = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
    assert refused.returncode == 125
    assert refused.stderr == (
        "sandbox: user namespaces are disabled: use sudo, or allow them with"
        " `sudo sysctl user.max_user_namespaces=10000`\n"
    )
