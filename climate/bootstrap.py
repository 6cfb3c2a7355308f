"""The only place that builds things: settings in, everything else out."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, func, select

from climate import compute, identity, plugin
from climate.cloud.bundled import BundledCloud
from climate.compute import Compute, nodes, services
from climate.context import Climate
from climate.domain.policy import ADMIN, Caller
from climate.identity import Identity
from climate.service import hosts
from climate.settings import SettingError, Settings
from climate.store.claims import CHANNEL
from climate.store.engine import connect


@dataclass(frozen=True)
class Deployment:
    """All that one process works with."""

    settings: Settings
    climate: Climate
    identity: Identity
    compute: Compute


def build(settings: Settings, *, application: str = "climate", pool_size: int = 10) -> Deployment:
    """A deployment over the stores of `settings`; opens no connection yet."""
    engine = connect(_database(settings), pool_size=pool_size, application=application)
    cloud = compute.build(
        engine, home=settings.home, service_host=settings.service_host, cast=lambda host, server: _ring(engine)
    )
    return Deployment(
        settings=settings,
        climate=Climate(engine, BundledCloud(cloud), plugin.load(), settings),
        identity=identity.build(engine, settings),
        compute=cloud,
    )


def _ring(engine: Engine) -> None:
    """Wake the pollers, which ring for servers too: a web process never waits for the broker."""
    with engine.begin() as conn:
        conn.execute(select(func.pg_notify(CHANNEL, "")))


def migrate(settings: Settings) -> None:
    """Bring the database's tables up to this release; any number of processes may ask for it at once."""
    engine = connect(_database(settings), pool_size=1, application="climate-migrate")
    try:
        with engine.connect() as conn:
            conn.exec_driver_sql("SET statement_timeout = 0")
            conn.exec_driver_sql("SET lock_timeout = '60s'")
            conn.commit()
            upgrade(conn)
    finally:
        engine.dispose()


def upgrade(conn: Connection) -> None:
    """Run the migrations that are missing over an open connection."""
    config = Config()
    config.set_main_option("script_location", str(migrations()))
    config.attributes["connection"] = conn
    command.upgrade(config, "head")


def migrations() -> Path:
    return Path(str(resources.files("migrations")))


def prepare(settings: Settings, *, demo: bool = False) -> None:
    """What a first start needs: the administrator, clouds.yaml, flavors, an image, a network.

    With `demo` also nodes, and four of them registered as hosts that can be reserved.
    """
    deployment = build(settings, application="climate-prepare", pool_size=2)
    try:
        identity.first_start(deployment.identity, settings, print)
        services.furnish(deployment.compute)
        if demo:
            _make_demo(deployment)
    finally:
        deployment.climate.engine.dispose()


DEMO_HOST_PREFIX = "gpu-"


def _make_demo(deployment: Deployment) -> None:
    """A small cloud to play with; what is there already is left alone."""
    if not nodes.read(deployment.settings.home):
        nodes.write(deployment.settings.home, nodes.demo_nodes())
    services.refresh(deployment.compute)
    admin = Caller("climate:prepare", "", frozenset({ADMIN}))
    known = {host.name for host in hosts.listed(deployment.climate, admin)}
    wanted = [node.name for node in nodes.demo_nodes() if node.name.startswith(DEMO_HOST_PREFIX)]
    for name in wanted:
        if name not in known and deployment.climate.cloud.find_hosts(name):
            hosts.register(deployment.climate, admin, name, {"gpu_count": "4"})


def _database(settings: Settings) -> str:
    if not settings.database_url:
        raise SettingError("CLIMATE_DATABASE_URL is not set; `climate up` starts a database of its own and sets it")
    return settings.database_url


def plain_url(database_url: str) -> str:
    """The URL as libpq reads it, without the name of a driver."""
    return database_url.replace("postgresql+psycopg://", "postgresql://", 1)
