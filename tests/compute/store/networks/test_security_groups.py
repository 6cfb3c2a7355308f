"""Rows of security groups: added once, deleted with their rules, and found by the servers that have them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from climate.compute.models.security_group import INGRESS, SecurityRule, default_group, new_group
from climate.compute.store.networks import security_groups as rows
from tests.compute.recorded_networks import Wired, wired_place

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def wired(scratch: str, tmp_path: Path) -> Iterator[Wired]:
    with wired_place(scratch, tmp_path) as made:
        yield made


def test_a_group_is_added_once_and_read_as_it_was_written(wired: Wired) -> None:
    default = default_group("demo")
    with wired.compute.engine.begin() as conn:
        rows.add(conn, default)
        rows.add(conn, default)
        assert rows.listed(conn) == [default]
        rule = SecurityRule("00000000-0000-4000-8000-000000000001", default.id, INGRESS, 4, "tcp", 1, 2, "192.0.2.0/24")
        rows.add_rule(conn, rule)
        assert rule in rows.rules_of(conn, [default.id])
        assert rows.counts(conn, "demo") == (1, 5)
        rows.drop_rule(conn, rule.id)
        rows.drop(conn, default.id)
        assert rows.counts(conn, "demo") == (0, 0)


def test_servers_without_groups_are_members_of_default(wired: Wired) -> None:
    server = wired.here.boot_one()
    default, web = default_group(server.project_id), new_group(server.project_id, "web", "", NOW)
    host = wired.compute.service_host
    with wired.compute.engine.begin() as conn:
        rows.add(conn, web)
        assert rows.filtered(conn, host) == []
        rows.add(conn, default)
        assert rows.members(conn, [default.id, web.id]) == [(default.id, server.id, host)]
        assert rows.filtered(conn, host) == [server.id]
        rows.set_groups(conn, server.id, [web.id], NOW)
        assert rows.members(conn, [default.id, web.id]) == [(web.id, server.id, host)]
        named = SecurityRule("00000000-0000-4000-8000-000000000001", default.id, INGRESS, 4, remote_group_id=web.id)
        rows.add_rule(conn, named)
        assert rows.naming(conn, [web.id]) == [default.id]
