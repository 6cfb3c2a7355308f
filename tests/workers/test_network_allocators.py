"""A network host whose allocator is another package's: a worker process that answers the API's queue."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from climate import bootstrap
from climate.bootstrap import Deployment
from climate.compute.errors import NetworkError, NetworkUnavailable, NoMoreAddresses
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import DELETE, Server
from climate.compute.network import floating_ips, networks
from climate.compute.network.allocation import allocator
from climate.compute.network.creation_request import CreationRequest
from climate.compute.nodes import nodes_file, services
from climate.compute.servers import actions, create
from climate.compute.servers.tasks import task_worker
from climate.compute.store.networks import fixed_ips
from climate.compute.store.projects import flavors
from climate.settings import Settings
from climate.store.engine import connect
from tests.compute.cloud_factory import TINY, empty, request
from tests.compute.network import allocation_queues
from tests.compute.network.recorded_network import ONE
from tests.databases import unsafe
from tests.system.packages import install
from workers import celery_app
from workers.poller import Poller

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0
"""Seconds after which a test gives up; what it waits for takes a second or so."""


@dataclass
class Office:
    """An API over a real broker, its poller, and the worker of a network host in another process."""

    deployment: Deployment
    poller: Poller
    env: dict[str, str]
    home: Path
    network_id: str = ""

    @contextmanager
    def worker(self) -> Iterator["subprocess.Popen[bytes]"]:
        with (self.home / "worker.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "climate", "worker"], cwd=ROOT, env=self.env, stdout=log, stderr=log
            )
        try:
            yield child
        finally:
            child.terminate()
            child.wait(PATIENCE)

    def until(self, found: Callable[[], Any], what: str) -> None:
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while not found():
            assert time.monotonic() < deadline, f"{what}: {(self.home / 'worker.log').read_text()[-3000:]}"
            pause.wait(0.05)

    def boot(self, count: int = 1) -> list[Server]:
        return create.boot(
            self.deployment.compute, request(TINY, count=count, least=count, networks=(self.network_id,))
        )

    def fixed(self, server: Server) -> list[str]:
        with self.deployment.compute.engine.connect() as conn:
            return [str(one) for vif in fixed_ips.vifs_of(conn, [server.id]) for one in vif.addresses]

    def count(self, what: str) -> int:
        with self.deployment.compute.engine.connect() as conn:
            return int(conn.execute(text(f"SELECT count(*) FROM {what}")).scalar_one())

    def books(self) -> dict[str, Any]:
        """What the other package has written down."""
        found: dict[str, Any] = json.loads((self.home / "worker" / "ipam.json").read_text(encoding="utf-8") or "{}")
        return found

    def told(self) -> None:
        """Wait until the allocator has done all that it was told."""

        def done() -> bool:
            self.poller.beat()
            return self.count("compute_network_messages") == 0

        self.until(done, "messages are left")


@pytest.fixture
def office(make_database: Callable[..., str], tmp_path: Path) -> Iterator[Office]:
    url = unsafe(make_database())
    bootstrap.migrate(Settings(database_url=url))
    engine = connect(url, pool_size=1)
    empty(engine)
    engine.dispose()
    site = install("ipam", tmp_path / "site")
    (tmp_path / "worker").mkdir()
    with allocation_queues.own_broker(tmp_path / "broker") as broker:
        settings = Settings(
            database_url=url, redis_url=broker.store.url, home=tmp_path / "api", network_allocation="queue"
        )
        deployment = bootstrap.build(settings, pool_size=3)
        env = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{site}:{ROOT}",
            "CLIMATE_HOME": str(tmp_path / "worker"),
            "CLIMATE_DATABASE_URL": url,
            "CLIMATE_REDIS_URL": broker.store.url,
            "CLIMATE_WORKER_QUEUES": "network",
            "CLIMATE_WORKER_PROCESSES": "2",
            "CLIMATE_NETWORK_HOST": ONE,
            "CLIMATE_NETWORK_ALLOCATION": "queue",
            "CLIMATE_NETWORK_ALLOCATOR": "ipam",
        }
        made = Office(deployment, Poller(deployment, celery_app.connect(broker.store.url)), env, tmp_path)
        _furnish(made)
        yield made
        deployment.climate.engine.dispose()


def _furnish(office: Office) -> None:
    compute = office.deployment.compute
    nodes_file.write(compute.home, [NodeSpec("n1", 200, 200_000, 2000, driver="memory")])
    services.refresh(compute)
    with compute.engine.begin() as conn:
        flavors.insert(conn, TINY)
        wanted = CreationRequest("one", networks.IPv4Network("10.0.0.0/29"))
        office.network_id = networks.create(conn, compute.network, wanted, "flat_dhcp")[0].id
        pool = floating_ips.create_pool(conn, "public", networks.IPv4Network("172.24.4.0/28"))
        floating_ips.add(conn, pool, networks.IPv4Network("172.24.4.0/28")[3], networks.IPv4Network("172.24.4.0/28")[5])


@pytest.mark.slow
def test_the_manager_of_another_package_serves_from_another_process(office: Office) -> None:
    compute = office.deployment.compute
    with office.worker():
        office.until(lambda: office.count("compute_networks WHERE host = 'net-1'"), "the network is not claimed")
        servers = office.boot(2)
        assert [office.fixed(server) for server in servers] == [["10.0.0.6"], ["10.0.0.5"]], "from the top"
        with pytest.raises(NoMoreAddresses, match=r"Nothing is left of 10\.0\.0\.0/29"):
            office.boot(4)
        with compute.engine.begin() as conn:
            now = compute.now(conn)
            held = floating_ips.allocate(conn, "demo", floating_ips.pool(conn, None, "public"), now)
            target = floating_ips.fixed(conn, "demo", address="10.0.0.6")
            floating_ips.associate(conn, held, target, now, compute.network_notifier)
        office.told()
        assert office.books()["floating"] == {held.address: "10.0.0.6"}
        assert sorted(office.books()[office.network_id]) == ["10.0.0.5", "10.0.0.6"]
        actions.request_task(compute, servers[0].id, DELETE)
        task_worker.run_task(compute, servers[0].id)
        office.told()
        assert sorted(office.books()[office.network_id]) == ["10.0.0.5"]


@pytest.mark.slow
def test_a_host_that_dies_is_waited_for_no_longer_than_is_set_and_serves_again(office: Office) -> None:
    with office.worker() as child:
        office.until(lambda: office.count("compute_networks WHERE host = 'net-1'"), "the network is not claimed")
        child.kill()
        child.wait(PATIENCE)
    compute = office.deployment.compute
    short = replace(compute, network=replace(compute.network, call_seconds=1.0))
    with pytest.raises(NetworkUnavailable, match="did not answer in time"):
        create.boot(short, request(TINY, networks=(office.network_id,)))
    assert office.count("compute_servers") == 0
    with office.worker():
        office.told()
        assert office.fixed(office.boot()[0]) == ["10.0.0.6"]


def test_an_allocator_that_is_not_there_is_named(office: Office) -> None:
    with pytest.raises(NetworkError, match="No network allocator 'nobody' is installed; installed are: bundled"):
        allocator.load("nobody", office.deployment.compute)
    env = {**office.env, "CLIMATE_NETWORK_ALLOCATOR": "nobody"}
    run = subprocess.run([sys.executable, "-m", "climate", "worker"], cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.returncode != 0
    assert "CLIMATE_NETWORK_ALLOCATOR='nobody': unknown; installed are broken, bundled, ipam" in run.stderr
