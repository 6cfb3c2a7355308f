"""Reaper: a small process that cleans up after a runner that was killed.

It reads the runner's children from a pipe, one line each: `+ PID START SIGNAL` for a new one and `- PID` for one that
has ended. The pipe is closed when the runner ends, whatever the cause. Then the reaper stops everything still alive
with its own stop signal, and soon kills it. It does the same with the servers recorded in the home. It runs as a file
with the standard library only: `python -I reaper.py HOME`.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

GRACE = 4.0
"""Seconds between the stop signal and the kill."""

SERVERS = ("servers", "containers", "machines")
"""Folders of a home in which servers are recorded, each by the file `pid` of a folder of its own."""

VOLUMES = "volumes"
"""Folder of a home below which volumes of servers may be mounted."""


def read_children(lines: Iterable[str]) -> dict[int, tuple[str, int]]:
    """Return the children that have not ended at the end of the lines: pid -> (start, stop signal)."""
    children: dict[int, tuple[str, int]] = {}
    for words in map(str.split, lines):
        if words[0] == "+" and len(words) == 4:
            children[int(words[1])] = words[2], int(words[3])
        elif words[0] == "-":
            children.pop(int(words[1]), None)
    return children


def end_all(children: dict[int, tuple[str, int]], home: Path) -> None:
    """Stop the groups of these children and the recorded servers; return when nothing is left."""
    end_servers(home)
    # The leader may have ended by its death signal; its group is still to be killed.
    groups = {pid: stop for pid, (start, stop) in children.items() if started_at(pid) in ("", start)}
    for leader, stop in groups.items():
        signal_group(leader, stop)
    if not _gone(groups, GRACE):
        for leader in groups:
            signal_group(leader, signal.SIGKILL)
        _gone(groups, GRACE)
    # A worker may have started another one in between.
    end_servers(home)
    unmount_volumes(home)


def _gone(groups: dict[int, int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(map(group_lives, groups)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def started_at(pid: int) -> str:
    """Return the start time of a living process in the system's own count; it differs when a pid is used again.

    Empty if there is no such process or only its zombie; "0" for a living one if the system does not report it.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "0" if not Path("/proc/self/stat").exists() and _takes_signals(os.kill, pid) else ""
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def group_lives(leader: int) -> bool:
    """Return whether any process of this group is left."""
    return _takes_signals(os.killpg, leader)


def _takes_signals(send: Callable[[int, int], None], pid: int) -> bool:
    try:
        send(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def signal_group(leader: int, number: int) -> None:
    """Send a signal to a process group, which may be gone."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def end_servers(home: Path) -> list[int]:
    """Kill every server that is recorded in the home and is still the recorded process; return the pids.

    A record is two words: the pid, and the start of the process in the system's count (field 22 of /proc/PID/stat).
    """
    ended = []
    for record in sorted(record for folder in SERVERS for record in (home / folder).glob("*/pid")):
        pid = _recorded(record)
        if pid is None:
            continue
        try:
            leads = os.getpgid(pid) == pid
            os.killpg(pid, signal.SIGKILL) if leads else os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
        ended.append(pid)
    return ended


def unmount_volumes(home: Path) -> None:
    """Unmount the volumes of servers that are mounted below the home."""
    folder = os.path.realpath(home / VOLUMES)
    for place in reversed(mounted_below(folder)):
        subprocess.run(["umount", place], stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603, S607


def mounted_below(folder: str) -> list[str]:
    """Return the mount points below a folder, in the order of mounting."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    # Blanks, tabs, newlines and backslashes are escaped as octal numbers.
    places = [re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), line.split()[4]) for line in lines]
    return [place for place in places if place.startswith(f"{folder}/")]


def _recorded(record: Path) -> int | None:
    try:
        words = record.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    if len(words) != 2 or not words[0].isdigit() or int(words[0]) < 2:
        return None
    pid = int(words[0])
    return pid if started_at(pid) == words[1] else None


def main(home: Path) -> None:
    """Wait for the end of the runner, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    end_all(read_children(sys.stdin), home)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
