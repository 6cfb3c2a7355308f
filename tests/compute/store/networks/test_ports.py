"""Rows of ports: whose they are, and what becomes of them with their servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from climate.compute.models.security_group import default_id
from climate.compute.models.server import DELETE
from climate.compute.network.ports import NewPort, create
from climate.compute.store.networks import fixed_ips, ports
from tests.compute.recorded_networks import Wired, wired_place


@pytest.fixture
def wired(scratch: str, tmp_path: Path) -> Iterator[Wired]:
    with wired_place(scratch, tmp_path) as made:
        yield made


def test_ports_are_listed_by_their_project_server_and_id(wired: Wired) -> None:
    (server,) = wired.here.boot()
    wired.settle()
    with wired.compute.engine.begin() as conn:
        (own,) = ports.listed(conn, {"server_id": server.id})
        made = create(conn, NewPort("other", own.network_id), None, wired.compute.now(conn))
        assert (own.kept, own.status, own.security_groups, own.host) == (False, "ACTIVE", None, server.service_host)
        assert [one.port_id for one in ports.listed(conn, {"project_id": "other"})] == [made]
        assert [one.port_id for one in ports.listed(conn, {})] == [own.port_id, made]
        assert ports.listed(conn, {"port_id": made, "project_id": server.project_id}) == []
        assert ports.lock(conn, made, server.project_id) is None
        assert ports.lock(conn, own.port_id, server.project_id) is None, "created with its server"
        assert (ports.count(conn, "other"), ports.count(conn, server.project_id)) == (1, 0)
        assert ports.in_network(conn, own.network_id) == 2
        assert fixed_ips.used(conn, "other") == fixed_ips.used(conn, server.project_id) == 1
        assert ports.with_group(conn, default_id("other")) is None


def test_a_port_is_left_by_its_server_and_is_leaving_while_that_has_a_task(wired: Wired) -> None:
    (server,) = wired.here.boot()
    wired.settle()
    with wired.compute.engine.begin() as conn:
        now = wired.compute.now(conn)
        (own,) = ports.listed(conn, {"server_id": server.id})
        made = create(conn, NewPort(server.project_id, own.network_id), None, now)
        ports.bind(conn, made, server.id, 1, now)
        assert [vif.id for vif in fixed_ips.vifs_of(conn, [server.id])] == [own.port_id, made]
        ports.unbind(conn, server.id, now, made)
        assert [vif.id for vif in fixed_ips.vifs_of(conn, [server.id])] == [own.port_id]
        left = ports.listed(conn, {"port_id": made})[0]
        assert (left.server_id, left.leaving, left.kept, len(left.addresses)) == (None, False, True, 1)
        ports.bind(conn, made, server.id, 1, now)
    wired.ask(server, DELETE)
    with wired.compute.engine.begin() as conn:
        (left,) = ports.listed(conn, {})
        assert (left.port_id, left.server_id, left.leaving) == (made, None, False)
