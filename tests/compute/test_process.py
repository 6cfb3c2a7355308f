"""Servers as real processes: held at the gate, woken, paused, killed and found again."""

import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from climate.compute import asking, boot, lifecycle, nodes
from climate.compute.errors import VirtError
from climate.compute.server import ACTIVE, DELETE, RESERVED, SHUTOFF, STOP, SUSPEND, SUSPENDED, WAKE
from climate.compute.virt import Guest, State, pids
from climate.compute.virt.cluster import ClusterDriver
from climate.compute.virt.process import ProcessDriver
from climate.embedded import guard
from tests.compute.place import Place, node, place, request


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ProcessDriver]:
    made = ProcessDriver(tmp_path / "servers")
    yield made
    for server_id in made.states():
        made.delete(server_id)


@pytest.fixture
def guest() -> Guest:
    return Guest(str(uuid4()), "web\n../x", "n1", ("10.10.0.2",))


def end_all(driver: ProcessDriver) -> int:
    """As whoever has started everything does it, by what the driver has left on disk; how many processes that were."""
    numbers = guard.end_servers(driver.folder.parent)
    for number in numbers:
        psutil.Process(number).wait(10)
    return len(numbers)


def pid_of(driver: ProcessDriver, guest: Guest) -> pids.Pid:
    pid = pids.read(driver.folder / guest.id / "pid")
    assert pid is not None
    return pid


def recognisable(pid: pids.Pid) -> pids.Pid:
    """The process, once the kernel has put its environment in place."""
    process = psutil.Process(pid.number)
    while "CLIMATE_SERVER" not in process.environ():
        with pytest.raises(psutil.TimeoutExpired):
            process.wait(0.005)
    return pid


def printed(driver: ProcessDriver, guest: Guest) -> str:
    """The console, once the guest has printed all of its banner."""
    process = psutil.Process(pid_of(driver, guest).number)
    for _ in range(500):
        if "boot finished" in driver.console(guest, None):
            break
        with pytest.raises(psutil.TimeoutExpired):
            process.wait(0.01)
    return driver.console(guest, None)


def test_a_held_guest_runs_only_once_it_is_woken(driver: ProcessDriver, guest: Guest) -> None:
    driver.hold(guest)
    held = pid_of(driver, guest)
    assert driver.states() == {guest.id: State.HELD}
    assert os.getsid(held.number) == held.number
    driver.hold(guest)
    assert pid_of(driver, guest) == held
    assert driver.console(guest, None) == ""
    driver.run(guest)
    driver.run(guest)
    assert driver.states() == {guest.id: State.RUNNING}
    assert pid_of(driver, guest) == held
    assert "eth0 has address 10.10.0.2" in printed(driver, guest)
    assert driver.console(guest, 1) == "climate: boot finished\n"
    assert driver.console(guest, 0) == ""


def test_a_gate_outlives_its_maker_and_opens_for_anybody(driver: ProcessDriver, guest: Guest) -> None:
    program = (
        "import os, sys; from pathlib import Path; from climate.compute.virt import Guest;"
        "from climate.compute.virt.process import ProcessDriver;"
        "ProcessDriver(Path(sys.argv[1])).hold(Guest(sys.argv[2], 'web', 'n1')); os.kill(os.getpid(), 9)"
    )
    maker = subprocess.run([sys.executable, "-c", program, str(driver.folder), guest.id], check=False)
    assert maker.returncode == -signal.SIGKILL
    assert driver.states() == {guest.id: State.HELD}
    held = pid_of(driver, guest)
    driver.run(guest)
    assert driver.states() == {guest.id: State.RUNNING}
    assert pid_of(driver, guest) == held
    assert "boot finished" in printed(driver, guest)


def test_pause_go_on_stop_and_start(driver: ProcessDriver, guest: Guest) -> None:
    driver.run(guest)
    first = pid_of(driver, guest)
    driver.suspend(guest)
    assert psutil.Process(first.number).status() == psutil.STATUS_STOPPED
    assert driver.states() == {guest.id: State.PAUSED}
    driver.resume(guest)
    assert driver.states() == {guest.id: State.RUNNING}
    driver.suspend(guest)
    driver.stop(guest)
    assert driver.states() == {guest.id: State.DEAD}
    assert not psutil.pid_exists(first.number)
    with pytest.raises(VirtError):
        driver.suspend(guest)
    driver.run(guest)
    assert driver.states() == {guest.id: State.RUNNING}
    assert pid_of(driver, guest) != first


def test_nothing_is_left_of_a_deleted_guest(driver: ProcessDriver, guest: Guest) -> None:
    driver.hold(guest)
    pid = pid_of(driver, guest)
    driver.delete(guest.id)
    driver.delete(guest.id)
    assert not psutil.pid_exists(pid.number)
    assert driver.states() == {}
    assert not (driver.folder / guest.id).exists()


def test_a_guest_whose_pid_file_was_never_written_is_still_found(driver: ProcessDriver, guest: Guest) -> None:
    driver.hold(guest)
    stray = recognisable(pid_of(driver, guest))
    (driver.folder / guest.id / "pid").unlink()
    driver.run(guest)
    assert not psutil.pid_exists(stray.number)
    again = recognisable(pid_of(driver, guest))
    (driver.folder / guest.id / "pid").unlink()
    driver.delete(guest.id)
    assert not psutil.pid_exists(again.number)


def test_a_number_used_again_is_not_the_guest(driver: ProcessDriver, guest: Guest) -> None:
    driver.run(guest)
    real = recognisable(pid_of(driver, guest))
    (driver.folder / guest.id / "pid").write_text(f"{os.getpid()} 1\n")
    assert driver.states() == {guest.id: State.DEAD}
    driver.delete(guest.id)
    assert not psutil.pid_exists(real.number)


def test_a_snapshot_holds_what_the_guest_printed(driver: ProcessDriver, guest: Guest, tmp_path: Path) -> None:
    driver.run(guest)
    printed(driver, guest)
    driver.snapshot(guest, tmp_path / "image")
    with tarfile.open(tmp_path / "image") as archive:
        assert sorted(archive.getnames()) == ["banner", "console.log"]
    with pytest.raises(VirtError):
        driver.snapshot(Guest(str(uuid4()), "none", "n1"), tmp_path / "other")


def test_all_guests_can_be_ended_without_the_database(driver: ProcessDriver) -> None:
    guests = [Guest(str(uuid4()), "web", "n1") for _ in range(3)]
    for one in guests:
        driver.hold(one)
    assert end_all(driver) == 3
    assert set(driver.states().values()) == {State.DEAD}
    assert end_all(driver) == 0


def test_a_cluster_reads_its_nodes_each_time(tmp_path: Path) -> None:
    process = ProcessDriver(tmp_path / "servers")
    cluster = ClusterDriver(lambda: nodes.read(tmp_path), {"process": process})
    assert cluster.nodes() == []
    nodes.write(tmp_path, [node("a", driver="process"), node("b", driver="other")])
    assert [spec.name for spec in cluster.nodes()] == ["a"]
    assert cluster.remembers("a")
    with pytest.raises(VirtError, match="does not exist"):
        cluster.hold(Guest(str(uuid4()), "x", "gone"))
    nodes.write(tmp_path, nodes.demo_nodes())
    assert [spec.name for spec in cluster.nodes()] == ["gpu-1", "gpu-2", "gpu-3", "gpu-4", "std-1", "std-2"]


@pytest.mark.parametrize("content", ["- {vcpus: 1}", "just text", "[", "- {name: a, vcpus: x}", "- {name: a}"])
def test_a_damaged_file_of_nodes_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / nodes.FILE).write_text(content)
    with pytest.raises(VirtError):
        nodes.read(tmp_path)


@pytest.fixture
def real(scratch: str, tmp_path: Path, driver: ProcessDriver) -> Iterator[Place]:
    """A cloud of one node whose servers are processes."""
    nodes.write(tmp_path, [node("n1", driver="process")])
    cluster = ClusterDriver(lambda: nodes.read(tmp_path), {"process": driver})
    with place(scratch, tmp_path, [], cluster) as found:
        yield found


def test_from_reserved_to_gone(real: Place, driver: ProcessDriver) -> None:
    server_id = boot.reserve(real.compute, request(), str(uuid4())).id
    real.settle()
    assert driver.states() == {server_id: State.HELD}
    asking.ask(real.compute, server_id, WAKE)
    real.settle()
    assert (real.look(server_id).status, driver.states()) == (ACTIVE, {server_id: State.RUNNING})
    asking.ask(real.compute, server_id, SUSPEND)
    real.settle()
    assert (real.look(server_id).status, driver.states()) == (SUSPENDED, {server_id: State.PAUSED})
    asking.ask(real.compute, server_id, DELETE)
    real.settle()
    assert driver.states() == {}


def test_what_died_by_itself_is_noticed(real: Place, driver: ProcessDriver) -> None:
    running = real.boot_one()
    sleeping = boot.reserve(real.compute, request(), str(uuid4()))
    stopped = real.boot_one()
    asking.ask(real.compute, stopped.id, STOP)
    real.settle()
    lifecycle.reconcile(real.compute)
    assert real.rings.rung == []
    assert real.look(running.id).status == ACTIVE
    end_all(driver)
    lifecycle.reconcile(real.compute)
    assert real.look(running.id).status == SHUTOFF
    assert (real.look(sleeping.id).status, real.look(sleeping.id).task) == (RESERVED, "reserving")
    real.settle()
    assert driver.states()[sleeping.id] is State.HELD
    assert real.look(stopped.id).status == SHUTOFF


def test_a_reserved_server_whose_gate_died_is_woken_all_the_same(real: Place, driver: ProcessDriver) -> None:
    server = boot.reserve(real.compute, request(), str(uuid4()))
    real.settle()
    end_all(driver)
    asking.ask(real.compute, server.id, WAKE)
    real.settle()
    assert real.look(server.id).status == ACTIVE
    assert driver.states() == {server.id: State.RUNNING}


def test_what_belongs_to_no_server_is_cleared_away(real: Place, driver: ProcessDriver) -> None:
    stray = Guest(str(uuid4()), "stray", "n1")
    driver.hold(stray)
    (driver.folder / "not-a-server").mkdir()
    kept = real.boot_one()
    lifecycle.reconcile(real.compute)
    assert driver.states().keys() == {kept.id, "not-a-server"}
    (driver.folder / "not-a-server").rmdir()
