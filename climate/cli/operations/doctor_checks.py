"""Checks of `climate doctor`: each is a function of the session that yields findings."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from climate.cli.connection.session import Session
from climate.cli.errors import Failure
from climate.cli.operations.journal import direct_engine
from climate.database.connections import reading
from climate.embedded import StoreError, running, serving
from climate.embedded.binaries import choose_postgres, choose_valkey
from climate.settings import SettingError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from climate.cli.response_types.zones import ChildZone, Neighbour
    from climate.context import Climate
    from climate.service.process_health import Check

GOOD, FAIR, BAD = "good", "fair", "BAD"
LEAST_DISK, LITTLE_DISK = 200 * 1024**2, 2 * 1024**3
"""Free bytes below which the disk check fails or warns."""
CLOCK_SECONDS = 2.0
OF_WEB = ("compute", "network", "zones")
"""Checks of the web process that the doctor runs itself."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    level: str
    says: str


def settings(session: Session) -> list[Finding]:
    """Yield the settings of folders."""
    chosen = session.settings
    home = chosen.home.absolute()
    given = "CLIMATE_HOME" if session.environ.get("CLIMATE_HOME") else "the default; CLIMATE_HOME is not set"
    return [
        Finding(
            "home",
            GOOD if home.is_dir() else FAIR,
            f"{home} ({given}){'' if home.is_dir() else ', does not exist yet'}",
        )
    ]


def stores(session: Session) -> list[Finding]:
    """Yield the stores and the reason for each."""
    chosen = session.settings
    up = running(chosen.home) is not None
    postgres = _store(
        "postgres", chosen.database_url, up, lambda: str(choose_postgres(chosen.pg_bin, _data_version(chosen.home)))
    )
    return [postgres, _store("valkey", chosen.redis_url, up, lambda: str(choose_valkey()))]


def plugins(session: Session) -> list[Finding]:
    """Yield the resource types that processes with these settings handle."""
    from climate import plugin

    chosen = session.settings.resource_plugins
    try:
        loaded = plugin.load(chosen)
    except SettingError as error:
        return [Finding("plugins", BAD, str(error))]
    why = "CLIMATE_RESOURCE_PLUGINS" if chosen else "all that are installed; CLIMATE_RESOURCE_PLUGINS is not set"
    return [Finding("plugins", GOOD, f"{', '.join(sorted(loaded))} ({why})")]


def _store(name: str, url: str, up: bool, choose: Callable[[], str]) -> Finding:
    if url:
        variable = "CLIMATE_DATABASE_URL" if name == "postgres" else "CLIMATE_REDIS_URL"
        return Finding(
            name, GOOD, f"the one at {_without_password(url)}, because {variable} is set; climate starts none"
        )
    try:
        says = f"started by climate, because no URL is set: {choose()}"
    except StoreError as error:
        return Finding(name, BAD, str(error))
    return Finding(name, GOOD if up else BAD, says if up else f"{says}; not running: `climate up` starts it")


def _data_version(home: Path) -> int | None:
    """Return the major version of existing data, which the programs must match."""
    try:
        return int((home / "postgres" / "data" / "PG_VERSION").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def database(session: Session) -> list[Finding]:
    """Yield checks of the database: connection, clock, schema, pollers and invariants."""
    try:
        with direct_engine(session) as climate:
            return [
                *_database(climate),
                *_set_aside(climate),
                *_journal(climate),
                *_archives(climate),
                *_pools(climate),
            ]
    except (Failure, SettingError) as failure:
        return [Finding("database", BAD, str(failure))]


def _database(climate: "Climate") -> list[Finding]:
    from climate.service import process_health

    with reading(climate.engine) as conn:
        began = time.time()
        now = climate.now(conn)
        off = now.timestamp() - (began + time.time()) / 2
        findings = [
            Finding("database", GOOD, f"answers in {(time.time() - began) * 1000:.0f} ms"),
            Finding("clock", GOOD if abs(off) < CLOCK_SECONDS else BAD, f"{off:+.1f} s from the database's"),
            _migrations(conn),
        ]
        if findings[-1].level == GOOD:
            findings += map(_finding, process_health.checks(conn, climate, now))
    return findings


def _finding(check: "Check") -> Finding:
    """Return the finding for a check of readiness."""
    return Finding(check.name, BAD if not check.ok else FAIR if check.warns else GOOD, check.detail)


def _set_aside(climate: "Climate") -> list[Finding]:
    from climate.service.leases import broken_leases

    result = broken_leases.listed(climate)
    if not result:
        return []
    first = f"lease {result[0].lease_id}, {result[0].reason}"
    return [Finding("events", BAD, f"{len(result)} leases have broken rows, the first: {first}: `climate event mend`")]


def _migrations(conn: "Connection") -> Finding:
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    from climate.database import schema_upgrade

    config = Config()
    config.set_main_option("script_location", str(schema_upgrade.scripts()))
    wanted = set(ScriptDirectory.from_config(config).get_heads())
    present = set(MigrationContext.configure(conn).get_current_heads())
    if wanted == present:
        return Finding("migrations", GOOD, f"at {', '.join(sorted(present)) or 'nothing'}")
    says = f"at {', '.join(sorted(present)) or 'nothing'}, wanted is {', '.join(sorted(wanted))}: `climate migrate`"
    return Finding("migrations", BAD, says)


def _journal(climate: "Climate") -> list[Finding]:
    """Compare a part of the rows with the journal; the next run continues."""
    from climate.service.journal import background_check

    checked = background_check.check_portion(climate)
    progress = checked.progress
    whole = "not all streams were compared yet"
    if progress.whole_since is not None:
        whole = f"each stream was compared since {progress.whole_since:%Y-%m-%d %H:%M:%S} UTC"
    so_far = f", {progress.streams} of the present pass" if progress.streams else ""
    if checked.differing:
        says = f"{checked.differing} streams differ from their rows, the first: {checked.first}"
        return [Finding("journal", BAD, f"{says}; {whole}{so_far}: `climate journal check` shows all")]
    return [Finding("journal", GOOD, f"the rows are what the journal says; {whole}{so_far}")]


def _archives(climate: "Climate") -> list[Finding]:
    """Return the archives of leases whose files are missing or have another size."""
    from climate.service.journal import archives

    with reading(climate.engine) as conn:
        absent = archives.absent(conn, climate)
    if not absent:
        return []
    says = f"{len(absent)} archives are missing or cut, the first: {archives.folder(climate.settings) / absent[0]}"
    return [Finding("archives", BAD, f"{says}: put the file back, or `climate journal lost {absent[0]}`")]


def _pools(climate: "Climate") -> list[Finding]:
    from climate.store.hosts import drift

    with reading(climate.engine) as conn:
        wrong = drift.noted(conn)
    if wrong:
        first, why = min(wrong.items())
        return [
            Finding("pools", FAIR, f"{len(wrong)} hosts are elsewhere in the cloud, the first: host {first}, {why}")
        ]
    return [Finding("pools", GOOD, "the cloud has every host where the journal says")]


def broker(session: Session) -> list[Finding]:
    """Yield the check of Valkey or Redis."""
    from redis import Redis
    from redis.exceptions import RedisError

    up = running(session.settings.home)
    url = session.settings.redis_url or (up.redis_url if up else "")
    if not url:
        return [Finding("broker", BAD, "not running")]
    began = time.monotonic()
    try:
        with Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5) as redis:
            redis.ping()
    except (RedisError, OSError, ValueError) as error:
        return [Finding("broker", BAD, f"{type(error).__name__} at {_without_password(url)}")]
    return [Finding("broker", GOOD, f"answers in {(time.monotonic() - began) * 1000:.0f} ms")]


def web(session: Session) -> list[Finding]:
    """Yield the checks of the APIs and of the services of the bundled cloud."""
    url = _web_address(session)
    try:
        answer = httpx.get(f"{url}/readyz", timeout=10.0, trust_env=False)
    except httpx.HTTPError as error:
        return [Finding("web", BAD, f"{url} does not answer ({type(error).__name__})")]
    try:
        checks = answer.json()["checks"]
        wrong = [f"{name}: {check['detail']}" for name, check in checks.items() if not check["ok"]]
        says = "; ".join([f"{url}: {answer.json()['status']}", *wrong])[:400]
        result = [_web_finding(name, checks[name]) for name in OF_WEB if name in checks]
    except (ValueError, LookupError, TypeError, AttributeError):
        return [Finding("web", BAD, f"{url}: {answer.status_code}, and the server there is not climate")]
    return [Finding("web", GOOD if answer.status_code == 200 else BAD, says), *result]


def _web_finding(name: str, check: dict[str, object]) -> Finding:
    """Return the finding for a check in an answer; web processes of earlier releases have no warnings."""
    level = BAD if check["ok"] is not True else FAIR if check.get("warns") else GOOD
    return Finding(name, level, str(check["detail"]))


def _web_address(session: Session) -> str:
    """Return the public URL, or the address of the running `climate up` of this home, or that of the settings."""
    return session.settings.public_url.rstrip("/") or serving(session.settings.home) or session.settings.base_url


def sign_in(session: Session) -> list[Finding]:
    """Yield the check of the sign-in with clouds.yaml."""
    try:
        token = session.client.login()
    except Failure as failure:
        return [Finding("sign-in", BAD, str(failure))]
    user = token.body.get("user")
    return [Finding("sign-in", GOOD, f"as {user.get('name') if user else None}, by {session.client.cloud.source}")]


def keystone(session: Session) -> list[Finding]:
    """Yield the check of Keystone with climate's own credentials; none with the bundled identity."""
    if session.settings.identity != "keystone":
        return []
    from climate.domain.errors import ClimateError
    from climate.identity.keystone import doctor

    try:
        return [Finding("keystone", GOOD if good else FAIR, says) for good, says in doctor.checked(session.settings)]
    except (ClimateError, SettingError) as error:
        return [Finding("keystone", BAD, str(error))]


def zones(session: Session) -> list[Finding]:
    """Yield the checks of the child zones, for administrators."""
    try:
        children: Sequence[ChildZone] = session.client.json("compute", "GET", "/zones/detail").get("zones", ())
    except Failure:
        return []
    return [_child(zone) for zone in children]


def _child(zone: "ChildZone") -> Finding:
    label = f"{zone['name'] or 'n/a'} at {zone['api_url']}"
    error = f": {zone['last_error']}" if zone["last_error"] else ""
    if not zone["is_active"]:
        return Finding(f"zone {zone['id']}", BAD, f"{label} is inactive{error}")
    if error:
        return Finding(f"zone {zone['id']}", FAIR, f"{label}{error}")
    return Finding(f"zone {zone['id']}", GOOD, f"{label}, last seen {zone['last_seen'] or 'never yet'}")


def cells(session: Session) -> list[Finding]:
    """Yield a check of the link to each neighbouring cell."""
    enabled = session.settings.cells_enable
    try:
        result: list[Neighbour] = session.client.json("compute", "GET", "/os-cells/detail")["cells"]
    except Failure as failure:
        return [Finding("cells", BAD, str(failure))] if enabled else []
    lonely = [Finding("cells", FAIR, "no neighbour; `climate cell add` adds one")] if enabled else []
    return [_cell(cell) for cell in result] or lonely


def _cell(cell: "Neighbour") -> Finding:
    age = "no message yet" if cell["age"] is None else f"last message {cell['age']:.0f} s ago"
    says = f"{cell['type']}, {age}, {cell['messages']['waiting']} messages wait"
    if cell["last_error"]:
        return Finding(f"cell {cell['name']}", BAD, f"{says}: {cell['last_error']}")
    return Finding(f"cell {cell['name']}", FAIR if cell["state"] == "mute" else GOOD, says)


def disk(session: Session) -> list[Finding]:
    """Yield the check of free disk space."""
    folder = _there(session.settings.home.absolute())
    free = shutil.disk_usage(folder).free
    level = BAD if free < LEAST_DISK else FAIR if free < LITTLE_DISK else GOOD
    return [Finding("disk", level, f"{free / 1024**3:.1f} GB free at {folder}")]


def _there(folder: Path) -> Path:
    """Return the folder, or the nearest parent that exists."""
    return next(place for place in (folder, *folder.parents) if place.is_dir())


CHECKS: Sequence[Callable[[Session], list[Finding]]] = (
    settings,
    stores,
    plugins,
    database,
    broker,
    web,
    sign_in,
    keystone,
    zones,
    cells,
    disk,
)
"""Checks in the order of the report."""
