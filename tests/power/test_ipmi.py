"""How ipmitool is called, and what is made of what it says."""

import stat
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from marshmallow import ValidationError

from climate.power import OFF, ON, PowerError, PowerRefused, Target
from climate.power.ipmi import IpmiDriver, IpmiSettings
from climate.processes import process_supervisor
from tests.power import bmc
from tests.power.driver_cases import changed
from tests.system.stack import await_so

SETTINGS = {"address": "bmc.example", "username": "admin"}
TARGET = Target("n1", SETTINGS, {"password": "correct horse"})


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], IpmiDriver]:
    """A driver whose ipmitool is a script that a test writes."""

    def write(script: str) -> IpmiDriver:
        path = tmp_path / "ipmitool"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return IpmiDriver(tmp_path, str(path))

    return write


def test_the_password_is_in_the_environment_alone(program: Callable[[str], IpmiDriver], tmp_path: Path) -> None:
    driver = program(f'echo "$@" > {tmp_path}/argv; /usr/bin/env > {tmp_path}/env; echo Chassis Power is off')
    assert driver.state(changed(TARGET, port=6230, privilege="ADMINISTRATOR", cipher_suite=17)) == OFF
    argv = "-I lanplus -v -E -C 17 -H bmc.example -p 6230 -U admin -L ADMINISTRATOR chassis power status"
    assert (tmp_path / "argv").read_text().strip() == argv
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert seen.pop("IPMI_PASSWORD") == "correct horse"
    assert set(seen) <= {"CLIMATE_RUN_ID", "LC_ALL", "PWD", "SHLVL", "_", "OLDPWD"}


def test_defaults_are_what_most_controllers_have(program: Callable[[str], IpmiDriver]) -> None:
    options = "-I lanplus -v -E -C 3 -H bmc.example -p 623 -U admin -L OPERATOR"
    driver = program(f'[ "$*" = "{options} chassis power status" ] && echo Chassis Power is on')
    assert driver.state(TARGET) == ON


SAID = {
    "> RAKP 2 HMAC is invalid": (PowerRefused, "does not accept the password"),
    "RAKP 2 message indicates an error : unauthorized name": (PowerRefused, "knows no such user"),
    "RAKP 2 message indicates an error : unauthorized role or privilege level requested": (PowerRefused, "privilege"),
    "Set Chassis Power Control to Up/On failed: Insufficient privilege level": (PowerRefused, "does not let this user"),
    "Error in open session response message : no matching cipher suite": (PowerRefused, "cipher suite"),
    "Authentication algorithm 0x01 is not what we requested 0x03": (PowerRefused, "cipher suite"),
    "Error in open session response message : invalid authentication algorithm": (PowerRefused, "cipher suite"),
    "Error in open session response message : insufficient resources to create a session": (PowerError, "status 1"),
    "Invalid completion code received: Insufficient privilege level": (PowerError, "status 1"),
    "Error: Unable to establish IPMI v2 / RMCP+ session": (PowerError, "status 1"),
    "": (PowerError, "status 1"),
}


@pytest.mark.parametrize("words", SAID)
def test_what_it_says_tells_whether_another_try_is_of_use(program: Callable[[str], IpmiDriver], words: str) -> None:
    kind, meaning = SAID[words]
    driver = program(f"echo '{words}'; echo correct horse >&2; exit 1")
    for verb in (driver.state, driver.on, driver.off):
        with pytest.raises(PowerError, match=meaning) as caught:
            verb(TARGET)
        assert type(caught.value) is kind
        assert "horse" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("said", ["", "Chassis Power is maybe", "Is Chassis Power is on?", "\\377\\376"])
def test_words_that_say_no_state_are_an_error(program: Callable[[str], IpmiDriver], said: str) -> None:
    driver = program(f"printf '{said}\\n'")
    for verb in (driver.state, driver.on, driver.off):
        with pytest.raises(PowerError, match="does not report"):
            verb(TARGET)


def test_a_program_that_hangs_is_killed_with_what_it_started(
    program: Callable[[str], IpmiDriver], tmp_path: Path
) -> None:
    driver = program(f"sleep 1000 & echo $! $$ > {tmp_path}/pids; wait")
    with pytest.raises(PowerError, match=r"within 2 s"):
        driver.state(changed(TARGET, timeout_seconds=2))
    left = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    alive = [psutil.Process(pid) for pid in left if psutil.pid_exists(pid)]
    assert [one for one in psutil.wait_procs(alive, 10)[1] if one.status() != psutil.STATUS_ZOMBIE] == []


def test_the_program_ends_with_the_process_that_runs_it(program: Callable[[str], IpmiDriver], tmp_path: Path) -> None:
    """A request that a dead worker left behind could undo that of the next one."""
    driver = program(f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 1000")
    call = "import sys; from tests.power.test_ipmi import *; IpmiDriver(Path(sys.argv[1]), sys.argv[2]).state(TARGET)"
    with subprocess.Popen([sys.executable, "-c", call, str(tmp_path), driver.program]) as worker:
        await_so((tmp_path / "pid").exists, 60, "the program starts")
        worker.kill()
    pid = int((tmp_path / "pid").read_text())
    await_so(lambda: not process_supervisor.started_at(pid), 60, "the program ends")


def test_all_runs_of_a_call_share_its_time(program: Callable[[str], IpmiDriver]) -> None:
    driver = program("sleep 1.2; echo Chassis Power is off")
    with pytest.raises(PowerError, match=r"within 2 s"):
        driver.on(changed(TARGET, timeout_seconds=2))


def test_without_the_program_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PowerRefused, match=r"is not installed \(Debian: ipmitool\)"):
        IpmiDriver(tmp_path, str(tmp_path / "ipmitool")).state(TARGET)


def test_a_program_that_cannot_be_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ipmitool").write_text("#!/no/such/shell\n")
    (tmp_path / "ipmitool").chmod(stat.S_IRWXU)
    with pytest.raises(PowerRefused, match="cannot be run"):
        IpmiDriver(tmp_path, str(tmp_path / "ipmitool")).state(TARGET)


def test_each_verb_is_the_controller_s_own(machine: bmc.Machine, tmp_path: Path) -> None:
    machine.be(OFF)
    driver = IpmiDriver(tmp_path)
    here = Target("n1", {"address": "127.0.0.1", "port": machine.port, "username": bmc.USER}, TARGET.secrets)
    driver.on(here)
    machine.settle()
    driver.off(here)
    driver.off(here, hard=True)
    assert machine.asked == ["on", "off", "hard off"]


GOOD = {**SETTINGS, "password": "x"}
BAD: dict[str, list[object]] = {
    "address": ["", "-H", "a;b", "$(a)", "a b", "a\n", "-oProxy", "a_b", "fe80::1%eth0", "::g", "a" * 254, 7, None],
    "port": [0, 65536, -1, "623", 1.5, None],
    "username": ["", "-U", "a b", "a;b", "a\n", "a" * 17, "\u00e4", 7, None],
    "password": ["", "a" * 21, "a\0", "a\n", "\u00e4", 7, None],
    "privilege": ["USER", "operator", "", 7, None],
    "cipher_suite": [0, 1, "3", None],
    "timeout_seconds": [0, 61, None],
    "kg": ["x"],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_settings_are_refused_by_name(name: str) -> None:
    for value in BAD[name]:
        with pytest.raises(ValidationError) as caught:
            IpmiSettings().load({**GOOD, name: value})
        assert set(caught.value.messages_dict) == {name}


@pytest.mark.parametrize("address", ["bmc-1.example", "192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7"])
def test_good_addresses_are_accepted(address: str) -> None:
    assert IpmiSettings().load({**GOOD, "address": address})["port"] == 623
