"""`climate up` as its user sees it: begun in order, kept alive, ended in order, refused in one line."""

import signal
import socket
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from climate.embedded import serving
from tests.runner.conftest import WEB, Begin, Runner, idle, nothing_left_of
from tests.system.stack import await_so

pytestmark = pytest.mark.slow

RELEASE = "release: python -c \"print('migrated')\""
FIRST = ("python", "-c", "print('prepared')")


def test_release_comes_first_then_all_others_and_ctrl_c_ends_them(begin: Begin) -> None:
    runner = begin(RELEASE, WEB, idle("poller"), idle("worker"), first=FIRST).ready()
    runner.pid_of("worker")
    family = runner.family()

    assert runner.end(signal.SIGINT) == 0

    order = [line for line in runner.lines if not line.startswith("climate")]
    assert [line.split(" | ")[1] for line in order[:2]] == ["migrated", "prepared"]
    assert {"poller   | poller ends", "worker   | worker ends"} <= set(runner.lines)
    assert nothing_left_of(family)


def test_other_commands_find_the_address_while_it_runs(begin: Begin, home: Path, port: int) -> None:
    runner = begin(WEB).ready()
    assert serving(home) == f"http://127.0.0.1:{port}"
    assert runner.end() == 0
    assert serving(home) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_it_too(begin: Begin, number: int) -> None:
    runner = begin(WEB, idle("worker")).ready()
    family = runner.family()

    assert runner.end(number) == 0

    assert nothing_left_of(family)


def test_processes_find_their_settings_and_stores(begin: Begin, home: Path, port: int) -> None:
    script = "import os; print([os.environ[n] for n in ('CLIMATE_HOME', 'CLIMATE_PORT', 'PORT', 'CLIMATE_REDIS_URL')])"
    runner = begin(f'release: python -c "{script}"', WEB).ready()

    assert f"release  | ['{home}', '{port}', '{port}', 'redis://elsewhere']" in runner.lines


def test_a_process_that_dies_is_begun_again_and_what_it_left_is_ended(begin: Begin) -> None:
    runner = begin(WEB, idle("worker")).ready()
    worker = psutil.Process(runner.pid_of("worker"))
    below = worker.children()
    assert below
    worker.kill()

    runner.wait_for(r"^worker was ended by SIGKILL; restarting it$")

    assert psutil.pid_exists(runner.pid_of("worker", 2))
    assert nothing_left_of(below)
    assert runner.end() == 0


def test_a_process_that_cannot_live_ends_all_with_its_reason(begin: Begin) -> None:
    runner = begin(idle("poller"), 'web: python -c "raise SystemExit(3)"')
    family = runner.family()

    assert runner.result() == 1
    assert runner.lines[-1] == "climate up: web ended with status 3 too often"
    assert nothing_left_of(family)


def test_migrations_that_fail_end_all_before_anything_began(begin: Begin) -> None:
    runner = begin("release: python -c \"raise SystemExit('no table')\"", WEB, idle("worker"))

    assert runner.result() == 1
    assert runner.lines[-2:] == ["release  | no table", "climate up: release ended with status 1"]
    assert not any("worker" in line for line in runner.lines)


def test_a_program_that_is_not_there_is_named(begin: Begin) -> None:
    runner = begin(WEB, "worker: no-such-program at all")

    assert runner.result() == 1
    assert runner.lines[-1] == "climate up: worker cannot be started: program not found: no-such-program"


def test_only_some_and_several_of_them(begin: Begin) -> None:
    runner = begin(WEB, idle("poller"), idle("worker"), only=("worker",), formation={"worker": 2})

    runner.wait_for("^climate runs worker.1, worker.2$")
    runner.wait_for(r"^worker.2 \| worker \d+ above")

    assert runner.end() == 0
    assert not any(line.startswith(("poller", "web")) for line in runner.lines)


def test_a_name_that_is_not_in_the_procfile_is_refused(begin: Begin) -> None:
    runner = begin(WEB, only=("wbe",))

    assert runner.result() == 1
    assert runner.lines == ["climate up: the Procfile has no process named wbe"]


def test_several_web_processes_on_one_port_are_refused(begin: Begin) -> None:
    runner = begin(WEB, formation={"web": 2})

    assert runner.result() == 1
    assert len(runner.lines) == 1
    assert "CLIMATE_WEB_PROCESSES" in runner.lines[0]


def test_a_second_one_is_refused_in_one_line_and_disturbs_nothing(begin: Begin, home: Path) -> None:
    first = begin(WEB).ready()

    second = begin(WEB)

    assert second.result() == 1
    assert second.lines == [f"climate up: climate is already running in {home} (process {first.process.pid})"]
    assert first.end() == 0


def test_a_port_that_is_taken_is_refused_in_one_line(begin: Begin, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        runner = begin(WEB)
        assert runner.result() == 1

    assert runner.lines == [
        f"climate up: 127.0.0.1 port {port} cannot be used (Address already in use); "
        "choose another with --port or CLIMATE_PORT"
    ]


def test_a_second_ctrl_c_ends_by_force(begin: Begin) -> None:
    runner = begin(WEB, idle("worker", "stubborn")).ready()
    runner.pid_of("worker")
    family = runner.family()
    runner.process.send_signal(signal.SIGINT)
    runner.wait_for("^climate is stopping$")
    with pytest.raises(psutil.TimeoutExpired):
        psutil.Process(runner.process.pid).wait(1)

    assert runner.end(signal.SIGINT, seconds=12) == 0
    assert nothing_left_of(family)


def zombies(runner: Runner) -> list[int]:
    """Those below it that have ended, and that nobody has taken notice of yet."""
    found = []
    for process in runner.family():
        with suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def test_an_orphan_is_buried_and_leaves_no_zombie(begin: Begin) -> None:
    script = "import os, time; pid = os.fork(); pid or os.setsid(); pid or time.sleep(0.3)"
    runner = begin(f'release: python -c "{script}"', WEB, idle("worker")).ready()
    runner.pid_of("worker")
    psutil.Process(runner.pid_of("worker")).kill()
    runner.pid_of("worker", 2)

    await_so(lambda: zombies(runner) == [], 30, "the burial of the orphan")
    assert runner.end() == 0
