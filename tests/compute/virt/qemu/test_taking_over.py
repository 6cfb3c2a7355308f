"""Taking over a guest of another machine: slow monitors, workers that die between two files, and files left."""

import json
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.virt import Guest
from climate.compute.virt.guest_folders import CONSOLE, PID, Homes
from climate.compute.virt.live_migrator import APART, SECRETS, Limits, MigrationCommand
from climate.compute.virt.qemu import migration_tls, qmp, remote_route
from climate.compute.virt.qemu.live_migration import FROM_AFAR, INCOMING, QemuMigrator
from climate.compute.virt.qemu.migration_tls import CLIENT, Credentials

HANGS = "hangs"
PATIENCE = 30.0


class Qemu:
    """A monitor that gives these answers to commands, one after the other; the last one remains.  HANGS: it is silent.

    An answer that is a VirtError is a refusal; commands without answers return nothing.
    """

    def __init__(self, folder: Path, answers: Mapping[str, list[Any]]) -> None:
        self.asked: list[str] = []
        self._answers = {name: list(told) for name, told in answers.items()}
        self._listening = qmp.listen(folder)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with self._listening.accept()[0] as stream:
            stream.sendall(b'{"QMP": {}}\n')
            self._talk(stream)

    def _talk(self, stream: socket.socket) -> None:
        while question := stream.recv(65536):
            name = json.loads(question)["execute"]
            self.asked.append(name)
            told = self._answers.get(name, [{}])
            answer = told.pop(0) if len(told) > 1 else told[0]
            if isinstance(answer, VirtError):
                stream.sendall(json.dumps({"error": {"desc": str(answer)}}).encode() + b"\n")
            elif answer != HANGS:
                stream.sendall(json.dumps({"return": answer}).encode() + b"\n")


@contextmanager
def answering(folder: Path, answers: Mapping[str, list[Any]], seconds: float = PATIENCE) -> Iterator[Any]:
    """Yield a QEMU and a connection to its monitor."""
    qemu = Qemu(folder, {"query-named-block-nodes": [[]], "qom-list": [[]], **answers})
    try:
        with qmp.connect(folder, seconds) as monitor:
            yield qemu, monitor
    finally:
        qemu.close()


def test_a_guest_that_goes_on_is_not_given_up_for_a_monitor_that_is_slow(tmp_path: Path) -> None:
    with answering(tmp_path, {"query-status": [{"status": "paused"}], "announce-self": [HANGS]}, 0.5) as (
        qemu,
        monitor,
    ):
        remote_route.take_over(monitor, tmp_path, running=True)
    assert "cont" in qemu.asked


def test_a_qemu_that_reads_the_last_of_the_memory_is_waited_for(tmp_path: Path) -> None:
    states = [{"status": "inmigrate"}] * 3 + [{"status": "paused"}]
    with answering(tmp_path, {"query-status": states}) as (qemu, monitor):
        remote_route.take_over(monitor, tmp_path, running=True)
    assert "cont" in qemu.asked


def test_a_key_that_a_qemu_refuses_is_in_no_file(tmp_path: Path) -> None:
    refusal = VirtError("no such type")
    with answering(tmp_path, {"object-add": [refusal]}) as (_, monitor), pytest.raises(VirtError, match="object-add"):
        migration_tls.configure(monitor, tmp_path, Credentials("token", migration_tls.new_key()), CLIENT)
    assert [one.name for one in tmp_path.rglob("*") if one.name != qmp.SOCKET] == []


def test_a_worker_that_died_between_the_monitor_and_the_process_is_succeeded(tmp_path: Path) -> None:
    guest = Guest(str(uuid4()), "kept", "n1")
    homes = Homes(tmp_path / "machines")
    waits = homes.of(guest.id) / INCOMING
    waits.mkdir(parents=True)
    with open("/dev/null", "r+b") as nothing:
        number = processes.spawn(["/bin/sleep", "60"], {}, nothing.fileno(), nothing.fileno())
    waiting = processes.of(number)
    assert waiting is not None
    processes.write(waits / PID, waiting)
    (waits / FROM_AFAR).write_text("true")
    (waits.parent / qmp.SOCKET).touch()
    try:
        QemuMigrator(homes, "tcg", 1.0).keep(guest, {})
        assert homes.pid(guest.id) == waiting
        assert not waits.exists()
    finally:
        processes.send(waiting, signal.SIGKILL)


def test_a_guest_that_has_arrived_is_sent_although_its_console_cannot_be_read(tmp_path: Path) -> None:
    guest = Guest(str(uuid4()), "sent", "n1")
    homes = Homes(tmp_path / "machines")
    (homes.of(guest.id) / CONSOLE).mkdir(parents=True)
    (homes.of(guest.id) / remote_route.ARRIVED).write_text("token")
    arrangement = {
        APART: True,
        "token": "token",
        "pid": "4194304 1",
        "running": True,
        "disks": [],
        SECRETS: {"key": "00"},
        "address": "127.0.0.1",
        "memory_port": 1,
        "disk_port": 2,
    }
    sent = QemuMigrator(homes, "tcg", 1.0).send(guest, arrangement, Limits(), lambda progress: MigrationCommand.GO_ON)
    assert sent == {SECRETS: {"console": ""}}


def test_a_guest_that_has_arrived_goes_on_although_its_console_cannot_be_written(tmp_path: Path) -> None:
    guest = Guest(str(uuid4()), "kept", "n1")
    homes = Homes(tmp_path / "machines")
    waits = homes.of(guest.id) / INCOMING
    waits.mkdir(parents=True)
    (homes.of(guest.id) / CONSOLE).mkdir()
    with open("/dev/null", "r+b") as nothing:
        number = processes.spawn(["/bin/sleep", "60"], {}, nothing.fileno(), nothing.fileno())
    waiting = processes.of(number)
    assert waiting is not None
    processes.write(waits / PID, waiting)
    (waits / FROM_AFAR).write_text("true")
    answers = {"query-status": [{"status": "paused"}], "query-named-block-nodes": [[]], "qom-list": [[]]}
    qemu = Qemu(waits, answers)
    try:
        QemuMigrator(homes, "tcg", PATIENCE).keep(guest, {SECRETS: {"console": "booted"}})
        assert "cont" in qemu.asked
        assert homes.pid(guest.id) == waiting
    finally:
        qemu.close()
        processes.send(waiting, signal.SIGKILL)
