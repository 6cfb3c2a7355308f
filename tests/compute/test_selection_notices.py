"""Each selection of nodes is told of at its start and its end, also when it finds none."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import create_engine

from climate.adapters.scheduler_notices import notifier
from climate.bootstrap import build
from climate.compute.scheduler.decisions.notifications import END, START, silent
from climate.compute.zones.builds.selection import room
from climate.settings import Settings
from climate.store.notices import notifications
from climate.store.notices.notifications import Listing
from climate.store.tables import metadata
from tests import databases
from tests.compute.cloud_factory import HUGE, TINY, Place, request


def heard(here: Place) -> tuple[Place, list[tuple[str, Mapping[str, Any]]]]:
    """The same cloud, and what is told of its selections."""
    told: list[tuple[str, Mapping[str, Any]]] = []
    return replace(here, compute=replace(here.compute, tell=lambda kind, body: told.append((kind, body)))), told


def test_a_selection_is_reported_with_its_request_and_its_nodes(here: Place) -> None:
    cloud, told = heard(here)
    made = cloud.boot(count=2, least=2, networks=(), hints={"own": "x"})
    assert [kind for kind, _ in told] == [START, END]
    spec = told[0][1]["request_spec"]
    assert told[1][1]["request_spec"] == spec
    assert "hosts" not in told[0][1]
    assert [entry["nodename"] for entry in told[1][1]["hosts"]] == [server.node for server in made]
    assert told[1][1]["hosts"][0]["limits"]["memory_mb"] == 8192 * 1.5
    assert (spec["num_instances"], spec["project_id"], spec["user_id"]) == (2, "demo", "dora")
    assert (spec["reservation_id"], spec["instance_uuids"]) == (made[0].build_id, [server.id for server in made])
    assert (spec["ram_mb"], spec["scheduler_hints"]) == (512, {"own": "x"})


def test_a_selection_that_finds_nothing_ends_with_its_error(here: Place) -> None:
    cloud, told = heard(here)
    cloud.boot(HUGE, networks=())
    assert [kind for kind, _ in told] == [START, END]
    assert "No valid host was found" in told[1][1]["error"]


def test_an_estimate_is_a_selection_too(here: Place) -> None:
    cloud, told = heard(here)
    assert room(cloud.compute, request(TINY)) == 1
    assert [kind for kind, _ in told] == [START, END]


def test_notices_stay_though_the_request_leaves_nothing(here: Place) -> None:
    databases.create_tables(here.compute.engine.url, metadata)
    apart = create_engine(here.compute.engine.url)
    cloud = replace(here, compute=replace(here.compute, tell=notifier(apart)))
    cloud.boot(networks=())
    cloud.boot(HUGE, networks=())
    with apart.connect() as conn:
        found = [kept.notice for kept in notifications.listed(conn, Listing())]
    apart.dispose()
    assert [notice.kind for notice in found] == [START, END, START, END]
    assert {notice.project_id for notice in found} == {None}, "for administrators alone"
    assert found[1].message.startswith("Nodes are selected for 1 servers of project demo, reservation r-")
    assert "No nodes for" in found[3].message
    assert found[3].body["error"] in found[3].message


def test_a_notice_that_cannot_be_written_hinders_nobody(here: Place) -> None:
    nowhere = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert replace(here, compute=replace(here.compute, tell=notifier(nowhere))).boot_one(networks=()).node is not None


def test_notices_are_given_where_the_settings_say_so() -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    assert build(Settings(database_url=url)).compute.tell is silent
    assert build(Settings(database_url=url, scheduler_notices=True)).compute.tell is not silent
