"""The unmodified clients of OpenStack against compute, image and network."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

import pytest

from api import create_app
from climate import plugin
from climate.cloud.bundled import BundledCloud
from climate.compute import services
from climate.context import Climate
from climate.settings import Settings
from tests.api.reservation.face import Deployment
from tests.compute import place as cloud
from tests.identity import place as people

OPENSTACK = Path(sys.executable).with_name("openstack")
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def home(
    make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A served deployment whose compute service works; the folder with its clouds.yaml."""
    folder = tmp_path_factory.mktemp("home")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings = Settings(home=folder, port=free.getsockname()[1])
    database = make_database(engine_template)
    nodes = [cloud.node("n1"), cloud.node("n2")]
    with cloud.place(database, folder, nodes) as here, people.place(database, folder, settings) as known:
        services.furnish(here.compute)
        climate = Climate(here.compute.engine, BundledCloud(here.compute), plugin.load(), settings)
        app = create_app(cast("Any", Deployment(settings, climate, known.identity, here.compute)))
        stop = Event()
        service = Thread(target=_serve, args=(here, stop))
        service.start()
        with people.served(app, settings.port):
            yield folder
        stop.set()
        service.join()


def _serve(here: cloud.Place, stop: Event) -> None:
    while not stop.wait(0.1):
        here.settle()


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """Runs `openstack … -f json` as a user of clouds.yaml; its answer."""

    def ask(words: str, *more: str, user: str = "climate-demo", as_json: bool = True) -> Any:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "OS_CLIENT_CONFIG_FILE": str(home / "clouds.yaml"),
            "OS_CLOUD": user,
        }
        form = ("-f", "json") if as_json else ()
        done = subprocess.run(
            [str(OPENSTACK), *words.split(), *more, *form], env=environ, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if as_json and done.stdout.strip() else done.stdout

    return ask


def test_a_server_by_the_openstack_client(run: Run) -> None:
    made = run("server create --flavor m1.tiny --image demo --network private --property a=b --wait s1")
    assert made["status"] == "ACTIVE"
    assert made["image"].startswith("demo")
    assert [one["Name"] for one in run("server list")] == ["s1"]
    shown = run("server show s1")
    assert (shown["OS-EXT-STS:vm_state"], shown["properties"]) == ("active", {"a": "b"})
    run("server stop s1", as_json=False)
    assert "s1" in run("console log show s1", as_json=False)
    assert [note["Action"] for note in run("server event list s1")][-1] == "create"
    run("server delete --wait s1", as_json=False)
    assert run("server list") == []


def test_what_surrounds_servers_by_the_openstack_client(run: Run) -> None:
    assert "m1.tiny" in [one["Name"] for one in run("flavor list")]
    assert run("image list")[0]["Name"] == "demo"
    assert run("network list")[0]["Name"] == "private"
    assert run("availability zone list --compute")[0]["Zone Name"] == "nova"
    assert run("limits show --absolute")
    assert len(run("hypervisor list --long", user="climate")) == 2
    assert run("hypervisor show n1", user="climate")["hypervisor_hostname"] == "n1"
    assert run("compute service list", user="climate")[0]["State"] == "up"
    assert run("aggregate list", user="climate")[0]["Name"] == "freepool"
    assert run("flavor create --ram 64 --vcpus 1 --disk 1 f9", user="climate")["name"] == "f9"
    run("flavor delete f9", user="climate", as_json=False)
