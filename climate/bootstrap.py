"""Composition root: builds every object of a process from the settings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from sqlalchemy import Engine, func, make_url, select
from sqlalchemy.exc import ArgumentError

from climate import compute, identity, plugin, power
from climate.adapters import scheduler_notices
from climate.adapters.project_contents import DeploymentContents
from climate.cloud import Cloud, openstack
from climate.cloud.bundled import BundledCloud
from climate.cloud.bundled_cells import BundledCells
from climate.cloud.bundled_zones import BundledZones
from climate.compute import Compute
from climate.compute.clusters.networked_driver import HostNetworks
from climate.compute.clusters.remote_members import RemoteMembers
from climate.compute.errors import VirtError
from climate.compute.images.quota import ImageLimits
from climate.compute.migrations import host_drain
from climate.compute.models.node import NodeDefaults
from climate.compute.nodes import nodes_file, services
from climate.compute.scheduler.decisions.notifications import Tell, silent
from climate.compute.store.cells import changes
from climate.compute.virt.hypervisor_cluster.driver import ClusterOptions, Find
from climate.compute.virt.live_migrator import Limits
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.qemu.driver import MachineOptions
from climate.compute.virt.qemu.migration_ports import PortRange
from climate.configuration import cells, mail, networks, policy_file, scheduler, zones
from climate.context import Climate
from climate.database import schema_upgrade
from climate.domain.errors import Conflict
from climate.domain.policy import ADMIN, Caller
from climate.identity import Identity, keys, keystone
from climate.identity.authentication import recovery
from climate.identity.authentication.revocation_cache import Number
from climate.identity.keys import KeyRing
from climate.sealed_secrets import Vault
from climate.service import readiness
from climate.service.hosts import inventory
from climate.service.notifications import webhooks
from climate.service.power import power_saving
from climate.settings import SettingError, Settings
from climate.store.engine import UNSYNCED, connect
from climate.store.leases.event_claims import CHANNEL

if TYPE_CHECKING:
    from climate.identity.keystone.service import KeystoneIdentity

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Deployment:
    """All objects that one process works with."""

    settings: Settings
    climate: Climate
    identity: Identity
    compute: Compute


def build(
    settings: Settings,
    *,
    application: str = "climate",
    pool_size: int = 10,
    last_revocation: Number | None = None,
) -> Deployment:
    """Build a deployment over the stores of `settings`; open no connection yet.

    `last_revocation` is a number that the processes of one web server share.
    """
    engine = connect(_database(settings), pool_size=pool_size, application=application)
    # Token keys are not used here: they are deleted after a few rotations, with the secrets that they sealed.
    vault = Vault(KeyRing(settings.home / "keys", name="secret").fernet)
    cloud = replace(_compute(engine, settings, vault), cells=cells.options(settings, vault))
    external = _keystone(settings)
    users = identity.build(engine, settings, None, DeploymentContents(), external, last_revocation)
    return Deployment(
        settings=settings,
        climate=Climate(
            engine,
            _lender(settings, cloud),
            plugin.load(settings.resource_plugins),
            settings,
            power=power.load(settings.home / power.FOLDER),
            zones=BundledZones(cloud),
            cells=BundledCells(cloud),
            vault=vault,
            addresses=users.addresses,
            unknown_accounts=users.unknown_accounts,
        ),
        identity=users,
        compute=cloud,
    )


def _keystone(settings: Settings) -> "KeystoneIdentity | None":
    """Return the Keystone that authenticates requests; None with the bundled identity."""
    return keystone.of(settings, policy_file.read(settings)) if settings.identity == "keystone" else None


def quick(settings: Settings, cloud: Compute, pool_size: int) -> Compute:
    """Return the cloud over autocommit connections whose commits do not wait for the disk."""
    url = _database(settings)
    engine = connect(url, pool_size=pool_size, application="climate-cells", options=UNSYNCED, autocommit=True)
    return replace(cloud, engine=engine)


def check(settings: Settings) -> None:
    """Raise SettingError for settings that name something that does not exist; open nothing."""
    if settings.database_url:
        _database(settings)
    if settings.public_url:
        _check_public_url(settings)
    scheduler.chosen(settings)
    plugin.load(settings.resource_plugins)
    networks.check(settings)
    zones.check(settings)
    cells.check(settings)
    webhooks.check(settings)
    mail.server(settings)
    policy_file.read(settings)
    keys.check(settings.home / "keys")
    power_saving.check(settings)
    readiness.needed(settings)
    if settings.cloud == "openstack":
        openstack.of(settings.openstack_cloud, settings.openstack_config)
    _keystone(settings)


def check_nodes(settings: Settings) -> None:
    """Raise SettingError when a worker is only a compute service and none of its nodes can work on this machine.

    A worker with other work starts all the same and logs a warning. An unreadable nodes file may be corrected while the
    worker waits for it.
    """
    if [word.strip() for word in settings.worker_queues.split(",") if word.strip()] != ["compute"]:
        return
    driver = _driver(settings)
    try:
        there = driver.nodes()
    except VirtError:
        return
    if not there and driver.failures:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in driver.failures.items())
        raise SettingError(f"None of the nodes in {settings.nodes_file} can work here: {reasons}")


def _compute(engine: Engine, settings: Settings, vault: Vault) -> Compute:
    schedule, rules = scheduler.chosen(settings)
    hosts = HostNetworks(engine, networks.network_drivers(settings), networks.options(settings))
    find = _elsewhere(engine, settings, vault)
    clusters = ClusterOptions(_node_defaults(settings), find, vault, hosts.connect)
    built = compute.build(
        engine,
        home=settings.home,
        service_host=settings.service_host,
        cast=lambda host, *servers: _wake_pollers(engine),
        driver=_driver(settings, clusters),
    )
    return replace(
        built,
        schedule=schedule,
        rules=rules,
        trust=scheduler.trust(settings),
        uuid_builds=settings.reservation_id_format == "uuid",
        tell=_notifier(settings),
        defaults=_node_defaults(settings),
        down_seconds=settings.service_down_seconds,
        leaving_pools=_leaving_pools(settings),
        confirm_seconds=settings.resize_confirm_window,
        live_limits=_live_limits(settings),
        network=hosts.network,
        network_drivers=hosts.network_drivers,
        network_service=settings.network_host or None,
        network_netns=settings.network_netns or None,
        network_queue=networks.queue(settings),
        zones=zones.options(settings, engine, vault),
        vault=vault,
        volume_gb=settings.volume_gb_per_project,
        image_limits=ImageLimits(
            settings.images_per_project, settings.image_mb_per_project, settings.image_disk_free_mb
        ),
    )


def _leaving_pools(settings: Settings) -> frozenset[str]:
    """Return the pools whose hosts migrate their servers away. Raise SettingError for an unknown pool."""
    words = frozenset(word.strip() for word in settings.migrate_from.split(",") if word.strip())
    if unknown := sorted(words - host_drain.POOLS):
        known = ", ".join(sorted(host_drain.POOLS))
        raise SettingError(f"CLIMATE_MIGRATE_FROM: unknown pool {', '.join(unknown)}; use {known}")
    return words


def _notifier(settings: Settings) -> Tell:
    """Return the writer of scheduler notices; it has its own connections, so that no request waits for another."""
    if not settings.scheduler_notices:
        return silent
    return scheduler_notices.notifier(
        connect(_database(settings), pool_size=2, application="climate-notices", options=UNSYNCED)
    )


def _elsewhere(engine: Engine, settings: Settings, vault: Vault) -> Find:
    """Return a function that finds the members of clusters behind other services."""
    home = settings.home.resolve()
    return RemoteMembers(
        engine, home, settings.service_host, lambda: _wake_pollers(engine), settings.service_down_seconds, vault=vault
    ).find


def _driver(settings: Settings, clusters: ClusterOptions | None = None) -> MultiNodeDriver:
    return compute.drivers(
        settings.home,
        settings.nodes_file,
        MachineOptions(settings.qemu_accel, _listening(settings), _live_limits(settings)),
        wired=settings.network_driver == "linux",
        clusters=clusters or ClusterOptions(_node_defaults(settings)),
    )


def _live_limits(settings: Settings) -> Limits:
    return Limits(seconds=settings.migration_seconds)


def _listening(settings: Settings) -> PortRange | None:
    """Return the address that accepts live migrations from other machines, or None. Raise SettingError."""
    if not settings.migration_address:
        return None
    try:
        return PortRange.of(settings.migration_address, settings.migration_ports)
    except ValueError as error:
        raise SettingError(f"CLIMATE_MIGRATION_ADDRESS and CLIMATE_MIGRATION_PORTS: {error}") from error


def _node_defaults(settings: Settings) -> NodeDefaults:
    return NodeDefaults(
        ram_ratio=settings.ram_allocation_ratio,
        cpu_ratio=settings.cpu_allocation_ratio,
        disk_ratio=settings.disk_allocation_ratio,
        reserved_ram_mb=settings.reserved_host_memory_mb,
        reserved_disk_mb=settings.reserved_host_disk_mb,
    )


def _lender(settings: Settings, bundled: Compute) -> Cloud:
    """Return the cloud whose hosts are reserved."""
    if settings.cloud == "openstack":
        return openstack.of(
            settings.openstack_cloud, settings.openstack_config, blazar_filter=settings.openstack_blazar_filter
        )
    return BundledCloud(bundled)


def _wake_pollers(engine: Engine) -> None:
    """Wake the pollers, which also send the messages for servers. A web process never waits for the broker."""
    with engine.begin() as conn:
        conn.execute(select(func.pg_notify(CHANNEL, "")))


def migrate(settings: Settings, *, wait: float = 0.0) -> None:
    """Upgrade the database schema to this release; any number of processes may call this at once.

    Wait up to `wait` seconds for a database that does not answer.
    """
    engine = connect(_database(settings), pool_size=1, application="climate-migrate")
    try:
        with schema_upgrade.connected(engine, wait) as conn:
            conn.exec_driver_sql("SET statement_timeout = 0")
            conn.commit()
            schema_upgrade.upgrade(conn)
            if not settings.cells_enable and changes.is_tracked(conn):
                changes.untrack(conn)  # it was a cell before
                conn.commit()
    finally:
        engine.dispose()


def prepare(settings: Settings, *, demo: bool = False) -> None:
    """Create the objects of a first start: the administrator, clouds.yaml, flavors, an image, a network.

    With `demo` also create nodes, and register four of them as reservable hosts.
    """
    deployment = build(settings, application="climate-prepare", pool_size=2)
    try:
        if deployment.identity.external is None:
            identity.first_start(deployment.identity, settings, print)
        else:
            print(f"Users and tokens are Keystone's, at {deployment.identity.external.public_url}")  # noqa: T201
        services.furnish(deployment.compute)
        if demo and not deployment.compute.cells.is_api:
            create_demo(deployment)
    finally:
        deployment.climate.engine.dispose()


def reset_admin_password(settings: Settings, password: str, echo: Callable[[str], None]) -> str:
    """Set the administrator's password in the database.

    `climate.identity.authentication.recovery` has the details and the result.
    """
    engine = connect(_database(settings), pool_size=2, application="climate-recovery")
    try:
        return recovery.reset_admin_password(identity.build(engine, settings), settings, password, echo)
    finally:
        engine.dispose()


DEMO_HOST_PREFIX = "gpu-"


def create_demo(deployment: Deployment) -> None:
    """Create a small demonstration cloud; keep whatever exists already."""
    home, file = deployment.settings.home, deployment.settings.nodes_file
    try:
        present = nodes_file.read(home, file)
    except VirtError as error:
        raise SettingError(str(error)) from error
    if not present:
        nodes_file.write(home, nodes_file.demo_nodes(), file)
    services.refresh(deployment.compute)
    if deployment.settings.cloud != "bundled":  # hosts of an external cloud are not registered for the demo
        return
    admin = Caller("climate:prepare", "", frozenset({ADMIN}))
    known = {host.name for host in inventory.listed(deployment.climate, admin)}
    wanted = [node.name for node in nodes_file.demo_nodes() if node.name.startswith(DEMO_HOST_PREFIX)]
    for name in wanted:
        if name not in known and deployment.climate.cloud.find_hosts(name):
            _register(deployment, admin, name)


def _register(deployment: Deployment, admin: Caller, name: str) -> None:
    """Register a host of the demo as reservable, unless it is already used for something else."""
    try:
        inventory.register(deployment.climate, admin, name, {"gpu_count": "4"})
    except Conflict as refusal:
        log.warning("demo host not registered", host=name, reason=str(refusal))


def _database(settings: Settings) -> str:
    if not settings.database_url:
        raise SettingError("CLIMATE_DATABASE_URL is not set; `climate up` starts a database of its own and sets it")
    try:
        backend = make_url(settings.database_url.replace("postgres://", "postgresql://", 1)).get_backend_name()
    except (ArgumentError, ValueError):
        backend = ""
    if backend != "postgresql":  # the value is not shown, because it may have a password
        raise SettingError("CLIMATE_DATABASE_URL is not a URL like postgresql://user:password@host:5432/database")
    return settings.database_url


def _check_public_url(settings: Settings) -> None:
    try:
        parts = urlsplit(settings.base_url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise SettingError(f"CLIMATE_PUBLIC_URL: {settings.public_url!r} is not a URL like https://climate.example.org")


def plain_url(database_url: str) -> str:
    """Return the URL as libpq reads it, without the name of a driver."""
    return database_url.replace("postgresql+psycopg://", "postgresql://", 1)
