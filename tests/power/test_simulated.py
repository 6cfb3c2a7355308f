"""The pretended machine: its moments, its troubles, and who knows of it."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from climate.power import OFF, ON, UNKNOWN, PowerError, PowerFenced, PowerRefused, Target
from climate.power.simulated import MemoryDriver, Trouble
from tests.power.driver_cases import Clock

HOST = Target("n1", {"boot_seconds": 20.0, "shutdown_seconds": 5.0})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def driver(tmp_path: Path, clock: Clock) -> MemoryDriver:
    return MemoryDriver(tmp_path / "home" / "power", clock)


def test_a_machine_that_was_never_asked_for_anything_is_on(driver: MemoryDriver) -> None:
    assert driver.state(HOST) == ON
    assert driver.machine("n1").switches == 0


def test_it_takes_its_time_and_asking_again_does_not_prolong_it(driver: MemoryDriver, clock: Clock) -> None:
    driver.off(HOST)
    clock.moment += 4.9
    driver.off(HOST)
    assert driver.state(HOST) == UNKNOWN
    clock.moment += 0.1
    assert driver.state(HOST) == OFF
    driver.on(HOST)
    clock.moment += 19.9
    driver.on(HOST)
    assert driver.state(HOST) == UNKNOWN
    clock.moment += 0.1
    assert driver.state(HOST) == ON
    assert driver.machine("n1").switches == 2


def test_it_may_change_its_mind_on_the_way(driver: MemoryDriver, clock: Clock) -> None:
    driver.off(HOST)
    driver.on(HOST)
    clock.moment += 19.9
    assert driver.state(HOST) == UNKNOWN
    clock.moment += 0.1
    assert driver.state(HOST) == ON


def test_power_that_is_cut_is_off_at_once(driver: MemoryDriver) -> None:
    driver.off(HOST)
    driver.off(HOST, hard=True)
    assert driver.state(HOST) == OFF
    assert list(driver.calls) == [("off", "n1"), ("hard off", "n1"), ("state", "n1")]


@pytest.mark.parametrize("trouble", [Trouble.FAILS, Trouble.HANGS, Trouble.REFUSES])
def test_trouble_is_reported_and_passes(driver: MemoryDriver, trouble: Trouble) -> None:
    driver.inject("n1", trouble)
    for ask in (driver.state, driver.on, driver.off):
        with pytest.raises(PowerError) as caught:
            ask(HOST)
        assert isinstance(caught.value, PowerRefused) is (trouble is Trouble.REFUSES)
    assert driver.state(Target("n2")) == ON
    driver.inject("n1", Trouble.NONE)
    assert driver.state(HOST) == ON
    assert driver.machine("n1").switches == 0


def test_a_stuck_machine_follows_only_the_cut(driver: MemoryDriver, clock: Clock) -> None:
    driver.inject("n1", Trouble.STUCK)
    driver.off(HOST)
    clock.moment += 100
    assert driver.state(HOST) == ON
    driver.off(HOST, hard=True)
    assert driver.state(HOST) == OFF
    driver.on(HOST)
    clock.moment += 100
    assert driver.state(HOST) == OFF


def test_other_processes_know_the_same_machines(tmp_path: Path) -> None:
    driver = MemoryDriver(tmp_path)
    driver.off(HOST, hard=True)
    look = "import sys, pathlib; from climate.power import Target, load; d = load(pathlib.Path(sys.argv[1]))['memory'];"
    look += "print(d.state(Target('n1')), d.state(Target('n2'))); d.off(Target('n2'), hard=True)"
    ran = subprocess.run([sys.executable, "-c", look, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [OFF, ON]
    assert driver.state(Target("n2")) == OFF


def test_nothing_is_lost_when_two_write_at_one_time(driver: MemoryDriver, clock: Clock) -> None:
    other, over = MemoryDriver(driver.folder, clock), threading.Event()

    def tell() -> None:
        while not over.is_set():
            other.inject("n1", Trouble.NONE)

    thread = threading.Thread(target=tell)
    thread.start()
    for _ in range(100):
        driver.off(HOST, hard=True)
        driver.on(HOST)
    over.set()
    thread.join()
    assert driver.machine("n1").switches == 200
    assert {path.name for path in driver.folder.iterdir()} == {"lock", "n1.json"}


@pytest.mark.parametrize("name", ["..", "../../x", "/etc/passwd", "", "a b\n", "\u00fc", "x\0y", "\ud800"])
def test_no_name_leads_out_of_the_folder(driver: MemoryDriver, tmp_path: Path, name: str) -> None:
    driver.off(Target(name), hard=True)
    assert driver.state(Target(name)) == OFF
    assert [path.parent for path in tmp_path.rglob("*.json")] == [driver.folder]


def test_a_name_too_long_and_a_folder_that_is_none_are_errors(driver: MemoryDriver, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for one, host in ((driver, "n" * 300), (MemoryDriver(tmp_path / "file"), "n1")):
        with pytest.raises(PowerError, match="cannot be used"):
            one.on(Target(host))


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"is_on": true, "more": 1}', '{"trouble": "else"}', "null"])
def test_a_file_that_cannot_be_read_is_an_error(driver: MemoryDriver, kept: str) -> None:
    driver.folder.mkdir(parents=True)
    (driver.folder / "n1.json").write_text(kept)
    with pytest.raises(PowerError, match="cannot be read"):
        driver.state(HOST)


@pytest.mark.parametrize("verb", ["on", "off", "hard off"])
def test_a_command_under_a_lower_token_is_refused(driver: MemoryDriver, clock: Clock, verb: str) -> None:
    def ask(token: int) -> None:
        target = replace(HOST, token=token)
        if verb == "on":
            driver.on(target)
        else:
            driver.off(target, hard=verb == "hard off")

    driver.off(replace(HOST, token=7), hard=True)
    driver.on(replace(HOST, token=8))
    clock.moment += 60
    before = driver.machine("n1")
    with pytest.raises(PowerFenced):
        ask(7)
    assert driver.machine("n1") == before
    ask(8)
    ask(9)
