"""Fixtures for all: a real Postgres, a database of its own for each test, a clock that only moves when told."""

import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import get_ident
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.pool import ConnectionPoolEntry
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from climate import embedded, plugin
from climate.cloud import CloudHost
from climate.cloud.fake import FakeCloud
from climate.compute.store.tables import metadata as compute_metadata
from climate.context import Climate
from climate.domain.policy import Caller
from climate.identity.store.tables import metadata as identity_metadata
from climate.service.hosts import inventory
from climate.settings import Settings
from climate.store.engine import connect
from climate.store.tables import metadata
from tests.campaign import length
from tests.databases import Databases, Restored, connected, unsafe, without_autovacuum
from tests.installed_plugins import installed_plugins

pytest_plugins = ("tests.netlab.netlab_option",)

# The same examples in each run, however long they take: what a change has not broken does not fail on a busy machine.
# `--hypothesis-profile=default` looks for others.
settings.register_profile(
    "climate",
    max_examples=length(30, 100),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("climate")


def pytest_configure() -> None:
    """Programs that tests start are to hear Ctrl-C, also where the tests run in the background of a script.

    And nobody asks a proxy for what is on this machine, as the clients of others do where one is set.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1", "localhost")))


LONGEST_FIRST = (
    "tests/slow",
    "tests/web_pages",
    "tests/api/compute/clients",
    "tests/test_gone_leases",
    "tests/cli/test_whole_demo",
    "tests/system",
    "tests/runner/test_by_url",
    "tests/workers",
    "tests/identity/authentication/test_revocation_cache",
    "tests/compute/network/test_allocation_ways",
    "tests/api/test_web_worker",
    "tests/machine",
    "tests/service/lease_tree",
    "tests/service/power",
    "tests/compute/virt/test_",
    "tests/compute/cells/servers",
    "tests/runner",
    "tests/api/compute/test_refused_servers",
    "tests/cli/operations",
    "tests/cli/tree",
    "tests/api/compute/test_cell_servers",
    "tests/test_",
    "tests/embedded",
)
"""Beginnings of the paths of modules that take long; a worker that begins one last lets the other wait."""


SHARED = {
    "tests/api/compute/clients/test_network_clients": "the cloud of tests/api/compute/clients",
    "tests/api/compute/clients/test_nouns": "the cloud of tests/api/compute/clients",
    "tests/api/compute/clients/test_sdk": "the cloud of tests/api/compute/clients",
    "tests/api/compute/clients/test_servers": "the cloud of tests/api/compute/clients",
    "tests/api/compute/clients/test_volume_clients": "the cloud of tests/api/compute/clients",
    "tests/system/test_http_race": "the stack of tests/system",
    "tests/system/test_openstack_clients": "the stack of tests/system",
    "tests/system/test_two_services": "the stack of tests/system",
    "tests/system/test_zone_builds": "the tree of tests/system",
    "tests/system/test_zone_leases": "the tree of tests/system",
    "tests/system/test_zones": "the tree of tests/system",
    "tests/web_pages/test_keyboard": "the stack of tests/web_pages",
    "tests/web_pages/test_sign_in": "the stack of tests/web_pages",
    "tests/web_pages/test_views": "the stack of tests/web_pages",
}
"""Modules -> the running deployments that they share, whose start takes longer than most modules."""


class ByModule(LoadScopeScheduling):
    """Give whole modules to the processes of a test run, and those that share a deployment to one of them."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return SHARED.get(module.removesuffix(".py"), module)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Replace the scheduling of `--dist loadfile`, and no other."""
    return ByModule(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest modules first; the order within a module stays."""

    def rank(item: pytest.Item) -> int:
        return next((at for at, path in enumerate(LONGEST_FIRST) if item.nodeid.startswith(path)), len(LONGEST_FIRST))

    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests stay until the end: to look for garbage among them costs a tenth of the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="session", autouse=True)
def hang_up() -> None:
    """Programs that tests start are to hear when the terminal is gone, also where `nohup` keeps the tests from it."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


@pytest.fixture(scope="session", autouse=True)
def plain_tracebacks() -> None:
    """Logs that a test does not configure have tracebacks without local variables: to draw those takes seconds."""
    plain: Any = structlog.dev.plain_traceback
    structlog.dev.ConsoleRenderer.get_active().exception_formatter = plain


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A database server: that of CLIMATE_TEST_DATABASE_URL, or one that is started for this run."""
    given = os.environ.get("CLIMATE_TEST_DATABASE_URL")
    if given:
        yield given
        return
    # In memory where that is possible: what survives a crash is for the tests of the stores themselves.
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    with TemporaryDirectory(prefix="climate-test-", dir=memory if roomy else None) as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "stores"
        with embedded.run(home, Settings(home=home, redis_url="redis://unused")) as stores:
            yield without_autovacuum(stores.database_url)


@pytest.fixture(scope="session")
def make_database(server_url: str) -> Iterator[Databases]:
    databases = Databases(server_url)
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def engine_template(make_database: Databases) -> str:
    """Name of a database with the engine's tables, to make others from."""
    url = make_database()
    engine = connect(url, pool_size=1)
    metadata.create_all(engine)
    engine.dispose()
    return str(make_url(url).database)


@pytest.fixture(scope="session")
def cloud_template(make_database: Databases, engine_template: str) -> str:
    """Name of a database with the tables of engine, users and bundled cloud, to make others from."""
    url = make_database(engine_template)
    engine = connect(url, pool_size=1)
    for tables in (identity_metadata, compute_metadata):
        tables.create_all(engine)
    engine.dispose()
    return str(make_url(url).database)


@pytest.fixture(scope="session")
def cloud_database(make_database: Databases, cloud_template: str) -> str:
    """A database with all tables, for clouds that are made anew in it: whoever uses it empties it first."""
    return unsafe(make_database(cloud_template))


@pytest.fixture(scope="session")
def hosts_template(make_database: Databases, engine_template: str) -> str:
    """Name of a database in which h1..h8 are registered: that takes a test longer than what it is about."""
    url = make_database(engine_template)
    engine = connect(url, pool_size=1)
    known = Climate(engine, _cloud(), {}, Settings(minutes_before_end=0), Clock(), lambda: 0.5)
    for name, extra in HOSTS.items():
        inventory.register(known, ADMIN, name, extra)
    engine.dispose()
    return str(make_url(url).database)


@pytest.fixture(scope="session")
def with_tables(make_database: Databases, engine_template: str) -> Restored:
    """A database with the engine's tables, restored after each test."""
    return Restored(make_database, engine_template, metadata)


@pytest.fixture(scope="session")
def with_hosts(make_database: Databases, hosts_template: str) -> Restored:
    """A database in which h1..h8 are registered, restored after each test."""
    return Restored(make_database, hosts_template, metadata)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the test's own, with the engine's tables."""
    kind = "with_hosts" if "climate" in request.fixturenames else "with_tables"
    restored: Restored = request.getfixturevalue(kind)
    with restored.used() as url:
        yield url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    with connected(database_url) as engine:
        yield engine


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)

    def __call__(self, _: Connection) -> datetime:
        return self.time

    def forward(self, **step: float) -> datetime:
        self.time += timedelta(**step)
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def cloud_host(name: str, vcpus: int = 4) -> CloudHost:
    return CloudHost(name, "compute", vcpus, 8192, 100, "{}", "fake", 1000000, None, 0)


ADMIN = Caller("admin-user", "admin-project", frozenset({"admin"}), "req-admin")
MEMBER = Caller("user", "project", frozenset({"member"}), "req-test")
STRANGER = Caller("other-user", "other-project", frozenset({"member"}), "req-other")


HOSTS: Mapping[str, dict[str, str]] = {f"h{place}": {"gpu_count": "2"} if place > 4 else {} for place in range(1, 9)}


@pytest.fixture(scope="session")
def plugins() -> Mapping[str, plugin.ResourcePlugin]:
    """The installed plugins, found once."""
    return installed_plugins()


@pytest.fixture
def climate(engine: Engine, clock: Clock, plugins: Mapping[str, plugin.ResourcePlugin]) -> Iterator[Climate]:
    """An engine over a fake cloud, with eight hosts registered: h1..h8, of which h5..h8 have `gpu_count` 2."""
    cloud = _cloud()
    for name in HOSTS:
        cloud.find_hosts(name)
        cloud.enrol(name, 1)
    with _idle(engine) as cloud.watch:
        yield Climate(engine, cloud, dict(plugins), Settings(minutes_before_end=0), clock, lambda: 0.5)


def _cloud() -> FakeCloud:
    """A cloud with h1..h8."""
    known = [cloud_host(f"h{place}", vcpus=4 if place <= 4 else 8) for place in range(1, 9)]
    return FakeCloud({host.name: host for host in known})


@contextmanager
def _idle(engine: Engine) -> Iterator[Callable[[str], None]]:
    """A check that the thread which asks the cloud has no transaction open; others may.

    It listens to the pool, which outlives the engine of a test, no longer than the block lasts.
    """
    held: Counter[int] = Counter()

    def taken(_: object, record: ConnectionPoolEntry, __: object) -> None:
        record.info["thread"] = get_ident()
        held[get_ident()] += 1

    def given_back(_: object, record: ConnectionPoolEntry) -> None:
        held[record.info["thread"]] -= 1

    def check(_: str) -> None:
        assert held[get_ident()] == 0, "a transaction is open while the cloud works"

    listeners = {"checkout": taken, "checkin": given_back}
    for name, listener in listeners.items():
        event.listen(engine.pool, name, listener)
    try:
        yield check
    finally:
        for name, listener in listeners.items():
            event.remove(engine.pool, name, listener)
