"""Trees of zones that make build plans, and what tests ask of them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, text

from climate.compute import Compute
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.scheduler.hosts.snapshot_cache import SnapshotCache
from climate.compute.zones.builds import builds, provisioning
from climate.store.tables.leases import leases
from tests.compute.zones import tree as trees
from tests.compute.zones.tree import Tree, Zone
from tests.databases import dependants, empty

REFUSAL = "Ill-formed or incorrectly routed 'blob' data sent to instance create request."
SPEC: Mapping[str, Any] = {
    "num_instances": 1,
    "instance_type": {"name": "m1.tiny", "vcpus": 1, "memory_mb": 512},
    "instance_properties": {"image_name": "demo"},
}
CLEAR = (
    "DELETE FROM compute_zone_builds",
    "DELETE FROM compute_zone_offers",
    "DELETE FROM compute_decisions",
    "DELETE FROM compute_actions",
    "DELETE FROM compute_quotas",
    "UPDATE compute_addresses SET server_id = NULL, vif_id = NULL WHERE server_id IS NOT NULL",
    "DELETE FROM compute_vifs",
    "DELETE FROM compute_servers",
    "UPDATE compute_nodes SET used_vcpus = 0, used_ram_mb = 0, used_disk_mb = 0, used_servers = 0",
)
LEASES = dependants(leases)
"""The leases of the engine, and all that refers to them."""


@contextmanager
def planned(
    make_database: Callable[..., str], database: str, home: Path, names: tuple[str, ...], **settings: Any
) -> Iterator[Tree]:
    """Zones that are not related yet, each with a key of its own."""
    made = Tree()
    for name in names:
        # A machine that is busy for minutes makes no offer old.
        patient = {"blob_seconds": 86400.0, "zone_poll_seconds": 1.0}
        own = {"build_plan_encryption_key": f"the secret key of {name}", **patient, **settings}
        made.plug(trees.zone(made, name, make_database(database), home, own))
    yield made
    for one in made.zones.values():
        one.compute.engine.dispose()
        make_database.drop(str(make_url(one.deployment.settings.database_url).database))  # type: ignore[attr-defined]


def cleared(tree: Tree) -> Tree:
    """The zones with nothing in them but what a first start makes, and unrelated."""
    for zone in tree.zones.values():
        zone.forget_zones()
        tree.mend(zone.name)
        zone.rings.rung.clear()
        with zone.compute.engine.begin() as conn:
            for statement in CLEAR:
                conn.execute(text(statement))
            empty(conn, LEASES)
        object.__setattr__(zone.deployment, "compute", replace(zone.compute, roster=SnapshotCache()))
        zone.people.clear()
    tree.asked.clear()
    return tree


@contextmanager
def changed(zone: Zone, **changes: Any) -> Iterator[Compute]:
    """The zone with other options of its cloud, until the end of the block."""
    before = zone.compute
    try:
        object.__setattr__(zone.deployment, "compute", replace(before, **changes))
        yield zone.compute
    finally:
        object.__setattr__(zone.deployment, "compute", before)


def server(**changes: Any) -> dict[str, Any]:
    """The body of a request for servers; an ellipsis takes a key away."""
    wanted = {"name": "s", "imageRef": IMAGE_ID, "flavorRef": "1", "networks": "auto", **changes}
    return {"server": {key: value for key, value in wanted.items() if value is not ...}}


def spec(**changes: Any) -> dict[str, Any]:
    """A request spec for one small server."""
    return {**SPEC, **changes}


def done(answer: Any, status: int = 200) -> Any:
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.get_json()


def refusal(answer: Any, status: int) -> str:
    """The message of a refusal."""
    body = done(answer, status)
    (inner,) = body.values()
    return str(inner["message"])


def offered(zone: Zone, **changes: Any) -> list[dict[str, Any]]:
    """The offers of a zone for a spec."""
    return list(done(zone.ask("POST", "/zones/select", spec(**changes)))["weights"])


def built(zone: Zone, **changes: Any) -> dict[str, Any]:
    """Ask for a build, carry it out, and look at it."""
    reservation = done(zone.ask("POST", "/zones/boot", server(**changes)))["reservation_id"]
    carry_out(zone)
    return look(zone, reservation)


def carry_out(zone: Zone) -> None:
    """Do what workers do for the builds that are due."""
    for build_id in builds.to_ring(zone.compute, again=0):
        provisioning.run(zone.compute, build_id)


def look(zone: Zone, reservation: str, user: str = "admin") -> dict[str, Any]:
    return dict(done(zone.ask("GET", f"/os-zone-builds/{reservation}", user=user))["build"])


def rows(zone: Zone, table: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    with zone.compute.engine.connect() as conn:
        return [dict(row) for row in conn.execute(text(f"SELECT * FROM {table}")).mappings()]


def names_here(zone: Zone) -> list[str]:
    """Names of the servers of a zone."""
    return sorted(str(row["name"]) for row in rows(zone, "compute_servers"))


def whole(zone: Zone) -> dict[str, list[str]]:
    """Everything in the database of a zone that estimates may not change."""
    with zone.compute.engine.connect() as conn:
        tables = conn.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
        quiet = [table for table in tables if not table.startswith("identity_")]
        return {table: sorted(map(str, conn.execute(text(f'SELECT * FROM "{table}"')).all())) for table in quiet}


def make_due(zone: Zone) -> None:
    """Let nobody wait for the builds of a zone, and nobody have them."""
    with zone.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zone_builds SET due_at = now() - interval '1 s', worker_until = NULL"))
