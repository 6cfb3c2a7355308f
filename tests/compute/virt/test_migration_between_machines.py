"""Live migration between machines, seen at the two QEMUs: refusals, secrets, and what is put right afterwards."""

import contextlib
import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from climate.bootstrap import build
from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.virt import Guest, State
from climate.compute.virt.live_migrator import APART, SECRETS, Limits, LiveMigrator, MigrationCommand, Progress
from climate.compute.virt.qemu import qmp
from climate.compute.virt.qemu.driver import QemuDriver
from climate.compute.virt.qemu.live_migration import INCOMING, LOG, WAITS_IN, QemuMigrator
from climate.compute.virt.qemu.migration_ports import PORTS, PortRange
from climate.settings import SettingError, Settings
from tests.compute.virt.afar import LISTENING, afar
from tests.compute.virt.driver_cases import PATIENCE, Subject

pytestmark = pytest.mark.slow

LIMITS = Limits(seconds=PATIENCE)


def on(progress: Progress) -> MigrationCommand:
    return MigrationCommand.GO_ON


def migrator(subject: Subject) -> LiveMigrator:
    found = subject.driver.live("n1")
    assert found is not None
    return found


@dataclass
class Pair:
    """A guest that runs at `here`, on one machine, and `there`, on another."""

    here: Subject
    there: Subject
    guest: Guest

    def receive(self) -> Mapping[str, Any]:
        return migrator(self.there).receive(self.guest, migrator(self.here).offer(self.guest))

    def send(
        self, arrangement: Mapping[str, Any], watch: Callable[[Progress], MigrationCommand] = on
    ) -> Mapping[str, Any]:
        return migrator(self.here).send(self.guest, arrangement, LIMITS, watch)

    def nothing_waits(self) -> None:
        """Raise AssertionError unless nothing of the guest is at the destination."""
        home = self.waits().parent
        assert not home.exists()
        assert list(processes.carrying({WAITS_IN: str(home)})) == []

    def waits(self) -> Path:
        assert self.there.homes is not None
        return self.there.homes.of(self.guest.id) / INCOMING


@pytest.fixture
def pair(make_subject: Callable[[str], Subject], tmp_path: Path) -> Iterator[Pair]:
    qemu = make_subject("qemu")
    other = QemuDriver(tmp_path / "other" / "machines", accel="tcg", stop_seconds=5)
    here, there = afar(qemu, "here"), afar(replace(qemu, driver=other, homes=other.homes), "there")
    guest = here.guest()
    here.driver.run(guest)
    here.said(guest)
    yield Pair(here, there, guest)
    with contextlib.suppress(VirtError):
        there.driver.delete(guest.id)


def test_a_guest_of_another_machine_is_refused_where_no_address_is_set(pair: Pair) -> None:
    assert pair.there.homes is not None
    offer = migrator(pair.here).offer(pair.guest)
    with pytest.raises(VirtError, match=r"different machines.*CLIMATE_MIGRATION_ADDRESS"):
        QemuMigrator(pair.there.homes, "tcg", PATIENCE).receive(pair.guest, offer)
    pair.nothing_waits()


def test_a_guest_of_another_accelerator_is_refused(pair: Pair) -> None:
    offer = {**migrator(pair.here).offer(pair.guest), "accel": "kvm"}
    with pytest.raises(VirtError, match="under kvm and the destination has tcg"):
        migrator(pair.there).receive(pair.guest, offer)
    pair.nothing_waits()


def test_one_folder_for_two_machines_is_refused(pair: Pair) -> None:
    """Its marks would be taken for those of processes that run on the other machine."""
    offer = {**migrator(pair.here).offer(pair.guest), "machine": "another"}
    with pytest.raises(VirtError, match="share the folder"):
        migrator(pair.here).receive(pair.guest, offer)
    pair.here.goes_on(pair.guest)


def test_files_that_cannot_be_seen_are_on_another_machine(pair: Pair) -> None:
    """Containers of one machine have its boot id, and not each other's files."""
    offer = migrator(pair.here).offer(pair.guest)
    assert APART in migrator(pair.there).receive(pair.guest, {**offer, "machine": "there", "from": "/nowhere"})


def test_the_key_is_in_no_command_line_no_environment_and_no_log(pair: Pair) -> None:
    arrangement = pair.receive()
    key = arrangement[SECRETS]["key"]
    assert len(bytes.fromhex(key)) == 32
    seen = [one for name in ("cmdline", "environ") for one in Path("/proc").glob(f"[0-9]*/{name}") if _has(one, key)]
    assert seen == []
    assert key not in json.dumps({name: told for name, told in arrangement.items() if name != SECRETS})
    files = [one for one in pair.waits().parent.rglob("*") if one.is_file() and _has(one, key)]
    assert [one.stat().st_mode & 0o077 for one in files] == [0], "only the server's file has it, for its user alone"
    pair.send(arrangement)
    migrator(pair.there).keep(pair.guest, {})
    assert [one for one in pair.waits().parent.rglob("*") if one.is_file() and _has(one, key)] == []


def _has(file: Path, word: str) -> bool:
    try:
        return word.encode() in file.read_bytes()
    except OSError:
        return False


def test_the_folder_of_a_guest_that_waits_is_for_its_user_alone(pair: Pair) -> None:
    pair.receive()
    assert pair.waits().parent.stat().st_mode & 0o077 == 0


def test_each_migration_has_a_key_of_its_own(pair: Pair) -> None:
    assert pair.receive()[SECRETS] != pair.receive()[SECRETS]


def test_nobody_reads_or_writes_the_disk_without_the_key(pair: Pair) -> None:
    arrangement = pair.receive()
    url = f"nbd://{arrangement['address']}:{arrangement['disk_port']}/disk"
    asked = subprocess.run(["qemu-img", "info", url], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert asked.returncode != 0
    assert "TLS" in asked.stderr
    wrong = {**arrangement, SECRETS: {"key": "00" * 32}}
    with pytest.raises(VirtError):
        pair.send(wrong)
    pair.here.goes_on(pair.guest)


def test_a_stranger_who_connects_first_does_not_keep_the_guest_out(pair: Pair) -> None:
    arrangement = pair.receive()
    with socket.create_connection((arrangement["address"], arrangement["memory_port"])) as stranger:
        stranger.sendall(b"QEVM" + bytes(64))
    sent = pair.send(arrangement)
    migrator(pair.there).keep(pair.guest, sent)
    pair.there.goes_on(pair.guest)


def test_memory_is_kept_in_a_file_after_a_migration_that_was_aborted_or_went_well(pair: Pair) -> None:
    """What was set for the way is taken back: a suspended guest is written to a file, in clear text and at once."""
    with pytest.raises(VirtError, match="aborted"):
        pair.send(
            pair.receive(), lambda progress: MigrationCommand.ABORT if progress.disk_total else MigrationCommand.GO_ON
        )
    migrator(pair.there).drop(pair.guest.id)
    for subject in (pair.here, pair.there):
        subject.driver.suspend(pair.guest)
        assert subject.state(pair.guest) is State.SUSPENDED
        subject.driver.resume(pair.guest)
        subject.goes_on(pair.guest)
        if subject is pair.here:
            migrator(pair.there).keep(pair.guest, pair.send(pair.receive()))


def test_a_guest_stands_still_until_it_is_kept(pair: Pair) -> None:
    """Only the service of the destination lets it go on, which is told in the database that the source has ended."""
    source = pair.here.pid(pair.guest)
    sent = pair.send(pair.receive())
    assert processes.state(source) is None
    with qmp.connect(pair.waits(), PATIENCE) as theirs:
        assert theirs.status() == "paused"
    migrator(pair.there).keep(pair.guest, sent)
    pair.there.goes_on(pair.guest)
    assert pair.there.driver.console(pair.guest, None).count("boot finished") == 1


@pytest.mark.parametrize("running", [True, False])
def test_a_guest_goes_on_as_it_was(pair: Pair, *, running: bool) -> None:
    if not running:
        pair.here.driver.pause(pair.guest)
    migrator(pair.there).keep(pair.guest, pair.send(pair.receive()))
    assert pair.there.state(pair.guest) is (State.RUNNING if running else State.PAUSED)


def test_the_disk_of_a_guest_that_died_before_it_was_kept_stays(pair: Pair) -> None:
    """The source has ended and gives its disk away: the one at the destination is the only one from then on."""
    arrangement = pair.receive()
    sent = pair.send(arrangement)
    waiting = processes.read(pair.waits() / "pid")
    assert waiting is not None
    processes.send(waiting, signal.SIGKILL)
    migrator(pair.here).clear(pair.guest, arrangement)
    with pytest.raises(VirtError, match="has ended"):
        migrator(pair.there).keep(pair.guest, sent)
    migrator(pair.there).drop(pair.guest.id)
    assert pair.there.state(pair.guest) is State.DEAD
    pair.there.driver.run(pair.guest)
    pair.there.said(pair.guest)


def test_a_source_that_ends_by_itself_has_not_sent_it(pair: Pair) -> None:
    arrangement = pair.receive()
    pair.here.kill(pair.guest)
    with pytest.raises(VirtError, match="ended before all of it had arrived"):
        pair.send(arrangement)
    assert pair.here.state(pair.guest) is State.DEAD


def test_a_destination_that_nobody_answers_at_leaves_the_guest_where_it_was(pair: Pair) -> None:
    arrangement = pair.receive()
    migrator(pair.there).drop(pair.guest.id)
    with pytest.raises(VirtError, match=rf"does not answer at {re.escape(LISTENING.address)}"):
        pair.send(arrangement)
    pair.here.goes_on(pair.guest)
    pair.nothing_waits()


def test_a_copy_that_breaks_off_at_the_last_moment_is_not_taken_for_whole(pair: Pair) -> None:
    """The connection of the disk alone is cut, maybe when all has been copied: the memory must not follow."""
    arrangement = pair.receive()

    def watch(progress: Progress) -> MigrationCommand:
        if progress.disk_total and not progress.memory_total:
            with qmp.connect(pair.waits(), PATIENCE) as theirs, contextlib.suppress(VirtError):
                theirs.execute("nbd-server-stop")
        return MigrationCommand.GO_ON

    with pytest.raises(VirtError):
        pair.send(arrangement, watch)
    pair.here.goes_on(pair.guest)


def test_a_migration_without_progress_is_given_up(pair: Pair) -> None:
    """The destination hears, and takes nothing: its QEMU was stopped in its tracks."""
    arrangement = pair.receive()
    waiting = processes.read(pair.waits() / "pid")
    assert waiting is not None

    def watch(progress: Progress) -> MigrationCommand:
        if progress.disk_total:
            processes.send(waiting, signal.SIGSTOP)
        return MigrationCommand.GO_ON

    with pytest.raises(VirtError, match="no progress"):
        migrator(pair.here).send(pair.guest, arrangement, replace(LIMITS, stall_seconds=2), watch)
    pair.here.goes_on(pair.guest)
    migrator(pair.there).drop(pair.guest.id)
    pair.nothing_waits()


@pytest.mark.parametrize(
    ("address", "ports", "fault"),
    [
        ("worker-1", PORTS, "is not an IP address"),
        ("0.0.0.0", PORTS, "is not an IP address"),
        ("192.0.2.7", "49152", "is not a range"),
        ("192.0.2.7", "5-4", "is not a range"),
        ("192.0.2.7", "65000-65536", "is not a range"),
    ],
)
def test_addresses_and_ports_that_are_refused(address: str, ports: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        PortRange.of(address, ports)


def test_a_service_takes_guests_where_its_settings_say(tmp_path: Path) -> None:
    given = Settings(home=tmp_path, database_url="postgresql://127.0.0.1/none", redis_url="redis://127.0.0.1")
    (tmp_path / "nodes.yaml").write_text("- {name: n1, driver: qemu, vcpus: 1, memory_mb: 1024, local_gb: 1}\n")
    own = replace(given, migration_address="192.0.2.7", migration_ports="5000-5009", migration_seconds=60)
    for settings, listening in ((given, None), (own, PortRange("192.0.2.7", 5000, 5009))):
        compute = build(settings).compute
        found = compute.driver.live("n1")
        assert isinstance(found, QemuMigrator)
        assert found.listening == listening
        assert compute.live_limits.seconds == settings.migration_seconds
    with pytest.raises(SettingError, match="CLIMATE_MIGRATION_PORTS: '7' is not a range"):
        build(replace(own, migration_ports="7"))


def test_ports_are_taken_from_the_range_until_it_is_used_up() -> None:
    with LISTENING.bound() as free:
        last = int(free.getsockname()[1])
    narrow = PortRange(LISTENING.address, last, last)
    with narrow.bound() as stream:
        assert stream.getsockname() == (LISTENING.address, last)
        with pytest.raises(VirtError, match="is free; widen the range"):
            narrow.bound()


def test_an_address_of_another_machine_cannot_be_listened_at() -> None:
    with pytest.raises(VirtError, match=r"CLIMATE_MIGRATION_ADDRESS 192\.0\.2\.7 cannot be bound"):
        PortRange.of("192.0.2.7").bound()


def test_an_ipv6_address_is_written_as_qemu_reads_it() -> None:
    assert PortRange.of("::1", "5000-5009").uri == "tcp:[::1]:5000,to=5009"


def test_the_log_of_a_guest_tells_no_secret(pair: Pair) -> None:
    arrangement = pair.receive()
    migrator(pair.there).keep(pair.guest, pair.send(arrangement))
    assert pair.there.homes is not None
    assert arrangement[SECRETS]["key"] not in pair.there.homes.console(pair.guest.id, None, LOG)
