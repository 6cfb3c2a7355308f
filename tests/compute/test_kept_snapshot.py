"""Whatever the cloud's verbs do, the snapshot that is kept shows it: every one of them says what it has changed."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from climate.compute.errors import ComputeError
from climate.compute.models.node import OWNER
from climate.compute.models.server import DELETE
from climate.compute.nodes import aggregates, maintenance, services
from climate.compute.reservations import pools, shared_capacity
from climate.compute.reservations.shared_capacity import Grant
from climate.compute.servers import actions
from climate.compute.virt.in_memory import MemoryDriver
from tests.campaign import length
from tests.compute.cloud_factory import HALF, SERVICE, TINY, Place, node, place
from tests.compute.scheduler.hosts.test_snapshot_cache import asked_anew, take, told

NAMES = ["n1", "n2", "n3"]
Verb = Callable[[Place, str, int], object]
"""Done to the cloud, with a node's name and a number that only grows."""


PLACES = ("freepool", "recycling", "r1", None, "maintenance")


def granted(name: str, number: int) -> Grant:
    return Grant("g1", "demo", 1, 512, 1, {name: 1 + number % 3})


def _oldest(here: Place) -> str:
    with here.compute.engine.connect() as conn:
        return conn.exec_driver_sql("SELECT min(id::text) FROM compute_servers").scalar() or str(UUID(int=0))


def _aggregate(here: Place, number: int) -> int:
    known = aggregates.listed(here.compute)
    return known[number % len(known)].id


def _reports(here: Place, name: str, number: int) -> None:
    here.driver.specs = [node(name, vcpus=8 + number % 3, stats={"round": number % 2}) for name in NAMES[number % 3 :]]
    services.refresh(here.compute)


def _disables(here: Place, name: str, number: int) -> None:
    service = services.listed(here.compute, SERVICE)[0]
    maintenance.change(here.compute, service, enabled=not service.enabled)


def _grouped(change: Callable[[Place, int, str], object]) -> Verb:
    return lambda here, name, number: change(here, _aggregate(here, number), name)


VERBS: dict[str, Verb] = {
    "boots": lambda here, name, number: here.boot(TINY, networks=()),
    "boots in a pool": lambda here, name, number: here.boot(HALF, networks=(), hints={"reservation": "r1"}),
    "finishes": lambda here, name, number: here.settle(),
    "deletes": lambda here, name, number: actions.request_task(here.compute, _oldest(here), DELETE),
    "enrols": lambda here, name, number: pools.enrol(here.compute, name, 1),
    "withdraws": lambda here, name, number: pools.withdraw(here.compute, name, 1),
    "lends": lambda here, name, number: pools.lend(here.compute, "r1", "demo", [name], number),
    "closes": lambda here, name, number: pools.close(here.compute, "r1", number),
    "takes back": lambda here, name, number: pools.take_back(here.compute, "r1", [], number),
    "recycles": lambda here, name, number: pools.take_back(here.compute, "r1", [], number, "recycling"),
    "releases": lambda here, name, number: pools.take_back(here.compute, "r1", [], number, None),
    "places": lambda here, name, number: pools.place(here.compute, name, PLACES[number % len(PLACES)], number),
    "grants": lambda here, name, number: shared_capacity.grant(here.compute, granted(name, number), number),
    "boots on a grant": lambda here, name, number: here.boot(granted(name, number).flavor, networks=()),
    "revokes": lambda here, name, number: shared_capacity.revoke(here.compute, "g1", number),
    "reports": _reports,
    "disables": _disables,
    "maintains": lambda here, name, number: maintenance.maintain(here.compute, name, "disk" if number % 2 else None),
    "groups": lambda here, name, number: aggregates.create(here.compute, f"a{number}", "z"),
    "names": _grouped(lambda here, number, name: aggregates.update(here.compute, number, name=f"b{number}")),
    "says of a group": _grouped(lambda here, number, name: aggregates.set_metadata(here.compute, number, {"k": name})),
    "lends a group": _grouped(
        lambda here, number, name: aggregates.set_metadata(here.compute, number, {OWNER: "demo"})
    ),
    "adds": _grouped(lambda here, number, name: aggregates.add_host(here.compute, number, name)),
    "removes": _grouped(lambda here, number, name: aggregates.remove_host(here.compute, number, name)),
    "ungroups": _grouped(lambda here, number, name: aggregates.delete(here.compute, number)),
    "audits": lambda here, name, number: services.audit(here.compute),
}


@given(steps=st.lists(st.tuples(st.sampled_from(sorted(VERBS)), st.sampled_from(NAMES)), min_size=10, max_size=25))
@settings(
    max_examples=length(6, 20),
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_what_a_verb_has_done_is_seen(steps: list[tuple[str, str]], scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [], MemoryDriver([node(name) for name in NAMES])) as here:
        for number, (verb, name) in enumerate(steps, 1):
            with contextlib.suppress(ComputeError):
                VERBS[verb](here, name, number)
            with here.compute.engine.connect() as conn:
                assert told(take(here.compute.roster, conn)) == told(asked_anew(conn))
