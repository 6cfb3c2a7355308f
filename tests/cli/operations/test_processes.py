"""No process starts with settings that name what there is not."""

import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from climate import bootstrap
from climate.cli.operations.processes import web_command
from climate.settings import SettingError, Settings
from tests.cli import forked_command
from tests.cli.conftest import Cli

PROCESSES = ("up", "web", "poller", "worker")


def test_a_wrong_filter_is_named_before_anything_is_started(tmp_path: Path) -> None:
    environ = {
        "CLIMATE_HOME": str(tmp_path),
        "CLIMATE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "CLIMATE_REDIS_URL": "redis://127.0.0.1:1/0",
        "CLIMATE_SCHEDULER_FILTERS": "RamFilter,Mine",
    }
    for process in [forked_command.begin((name,), environ) for name in PROCESSES]:
        ended = process.ended()
        assert ended.returncode == 2
        assert ended.stderr.startswith(
            "error: CLIMATE_SCHEDULER_FILTERS='RamFilter,Mine': Scheduler Filter Mine could not be"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_compute_service_none_of_whose_nodes_can_work_does_not_start(tmp_path: Path) -> None:
    """VD-7: a worker that does other work too starts, and warns."""
    entry = "- {name: A, driver: vcenter, vcpus: 8, memory_mb: 8192, local_gb: 100}\n"
    (tmp_path / "nodes.yaml").write_text(entry)
    only = Settings(home=tmp_path, worker_queues="compute")
    with pytest.raises(SettingError, match=r"None of the nodes in nodes\.yaml can work here: A: there is no driver"):
        bootstrap.check_nodes(only)
    bootstrap.check_nodes(replace(only, worker_queues="events, compute"))
    (tmp_path / "nodes.yaml").write_text(f"{entry}{entry.replace('name: A, driver: vcenter', 'name: B')}")
    bootstrap.check_nodes(only)
    (tmp_path / "nodes.yaml").write_text("- {name: broken")
    bootstrap.check_nodes(only)
    (tmp_path / "nodes.yaml").unlink()
    bootstrap.check_nodes(only)


def test_the_worker_says_why_it_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text("- {name: A, driver: vcenter, vcpus: 8, memory_mb: 8192, local_gb: 100}\n")
    environ = {
        "CLIMATE_HOME": str(tmp_path),
        "CLIMATE_REDIS_URL": "redis://127.0.0.1:1/0",
        "CLIMATE_WORKER_QUEUES": "compute",
    }
    begun = forked_command.run(("worker",), environ)
    assert begun.returncode == 2
    assert "error: None of the nodes in nodes.yaml can work here" in begun.stderr


@pytest.mark.parametrize("url", ["nonsense", "mysql://a:secret@h/x", "postgresql://a:secret@h:port/x"])
def test_a_url_of_no_database_is_named_without_its_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingError, match="CLIMATE_DATABASE_URL is not a URL like postgresql://") as caught:
        bootstrap.check(Settings(home=tmp_path, database_url=url))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["nonsense", "climate.example.org:8000", "http://[x", "http://h:99999"])
def test_a_public_url_of_no_host_is_named(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingError, match=r"CLIMATE_PUBLIC_URL: .* is not a URL like https://"):
        bootstrap.check(Settings(home=tmp_path, public_url=url))


def test_usual_urls_are_accepted(tmp_path: Path) -> None:
    for database in ("postgres://h/x", "postgresql+psycopg://a:b@h:5432/x?sslmode=require"):
        for public in ("https://climate.example.org/", "http://[::1]:8000/below"):
            bootstrap.check(Settings(home=tmp_path, database_url=database, public_url=public))


def test_a_database_that_does_not_run_is_named_in_a_sentence(tmp_path: Path) -> None:
    environ = {"CLIMATE_HOME": str(tmp_path), "CLIMATE_DATABASE_URL": "postgresql://a:secret@127.0.0.1:1/none"}
    ended = forked_command.run(("migrate",), environ)
    assert ended.returncode == 8
    assert ended.stderr.startswith("error: the database does not serve: ")
    assert "sqlalche.me" not in ended.stderr
    assert "secret" not in ended.stderr


def test_a_metadata_service_without_an_address_is_refused(cli: Cli) -> None:
    ran = cli("metadata")
    assert ran.code == 1
    assert "CLIMATE_METADATA_ADDRESS is not set" in ran.err
    assert "set CLIMATE_METADATA_ADDRESS=169.254.169.254:80" in ran.err


def test_a_metadata_service_needs_an_address_of_its_host(cli: Cli, environ: dict[str, str]) -> None:
    environ["CLIMATE_METADATA_ADDRESS"] = "192.0.2.77:8775"
    ran = cli("metadata")
    assert ran.code == 1
    assert "CLIMATE_METADATA_ADDRESS=192.0.2.77:8775 cannot be used (Cannot assign requested address)" in ran.err
    environ["CLIMATE_NETWORK_NETNS"] = "no-such-host"
    assert "(No such file or directory: /run/netns/no-such-host)" in cli("metadata").err


def test_no_header_of_a_client_sets_the_path(tmp_path: Path) -> None:
    """A proxy on this machine may refuse some paths; most pass the header SCRIPT_NAME."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = web_command(Settings(home=tmp_path), "tests.api.small_app:app", f"fd://{listener.fileno()}")
        server = subprocess.Popen(command, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
        try:
            with socket.create_connection(listener.getsockname(), 120) as client:
                client.sendall(b"GET /x/y HTTP/1.1\r\nHost: h\r\nSCRIPT_NAME: /x\r\nConnection: close\r\n\r\n")
                assert client.makefile("rb").read().endswith(b"/x/y 0")
        finally:
            server.terminate()
            server.wait(60)
