"""Notices to administrators about child zones."""

from sqlalchemy import text

from climate.compute.zones import registry
from climate.domain.policy import Caller
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Listing
from tests.compute.zones.conftest import lone, standing
from tests.compute.zones.tree import Tree
from workers import zone_polls

ADMIN = Caller("a", "p", frozenset({"admin"}))
MEMBER = Caller("m", "p", frozenset({"member"}))

__all__ = ["lone", "standing"]


def test_administrators_are_informed_when_a_child_is_lost_and_when_it_is_back(lone: Tree) -> None:
    deployment = lone["parent"].deployment
    registry.add(deployment.compute, {"api_url": "http://away", "username": "u", "password": "sesame"})
    for _ in range(4):
        with deployment.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_zones SET polled_at = NULL"))
        assert zone_polls.poll(deployment) == 1
    (told,) = delivery.listed(deployment.climate, ADMIN, Listing())
    assert told.notice.kind == "zone.inactive"
    assert "http://away" in told.notice.message
    assert "sesame" not in repr(told)
    assert delivery.listed(deployment.climate, MEMBER, Listing()) == []


def test_child_is_due_within_a_period() -> None:
    assert zone_polls.interval(30) <= 30 / 2
