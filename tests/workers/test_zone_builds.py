"""Builds over zones: the poller rings for those that are due, and a worker carries them out."""

from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import text

from climate.compute.zones.builds import builds
from tests.compute.zones.build_plan_trees import done, look, server
from tests.compute.zones.conftest import pair, standing_plans
from tests.compute.zones.tree import Tree, Zone
from workers import celery_app
from workers.poller import Poller
from workers.tasks import WorkerContext

__all__ = ["pair", "standing_plans"]


@dataclass
class Bell:
    """A broker that remembers what was sent."""

    sent: list[tuple[str, Any, str]] = field(default_factory=list)

    def send_task(self, name: str, *, args: Any, queue: Any) -> None:
        self.sent.append((name, args, queue.name))


def poller(zone: Zone) -> tuple[Poller, Bell]:
    bell = Bell()
    return Poller(zone.deployment, cast("Any", bell)), bell


def test_a_build_is_rung_for_once_and_again_only_after_a_while(pair: Tree) -> None:
    parent = pair["parent"]
    reservation = done(parent.ask("POST", "/zones/boot", server(num_instances=2)))["reservation_id"]
    ringing, bell = poller(parent)
    ringing._wake_for_builds()
    build_id = look(parent, reservation)["id"]
    assert bell.sent == [(celery_app.BUILD, [build_id], "events")]
    ringing._wake_for_builds()
    assert len(bell.sent) == 1
    with parent.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zone_builds SET rung_at = rung_at - interval '6 s'"))
    ringing._wake_for_builds()
    assert len(bell.sent) == 2


def test_a_worker_carries_a_build_out_and_it_is_not_rung_for_any_more(pair: Tree) -> None:
    parent = pair["parent"]
    reservation = done(parent.ask("POST", "/zones/boot", server(num_instances=2)))["reservation_id"]
    desk = WorkerContext(parent.deployment.settings)
    desk.__dict__["deployment"] = parent.deployment
    desk.build(look(parent, reservation)["id"])
    assert look(parent, reservation)["state"] == "done"
    assert builds.to_ring(parent.compute, again=0) == []
    ringing, bell = poller(parent)
    ringing._wake_for_builds()
    assert bell.sent == []


def test_builds_that_ended_long_ago_are_forgotten_and_their_servers_stay(pair: Tree) -> None:
    parent = pair["parent"]
    reservation = done(parent.ask("POST", "/zones/boot", server(num_instances=2)))["reservation_id"]
    desk = WorkerContext(parent.deployment.settings)
    desk.__dict__["deployment"] = parent.deployment
    desk.build(look(parent, reservation)["id"])
    builds.sweep(parent.compute)
    assert look(parent, reservation)["placed"] == 2
    with parent.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zone_builds SET finished_at = finished_at - interval '8 days'"))
    builds.sweep(parent.compute)
    assert parent.ask("GET", f"/os-zone-builds/{reservation}").status_code == 404
    with parent.compute.engine.connect() as conn:
        assert conn.execute(text("SELECT count(*) FROM compute_servers")).scalar_one() == 2
