"""Security groups on interfaces of servers: at the start, after changes, and with servers as the far side."""

from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from uuid import uuid4

import pytest

from climate.compute.errors import Conflict, NetworkError
from climate.compute.models.security_group import SecurityGroup, SecurityRule, default_group
from climate.compute.models.server import DELETE, Server
from climate.compute.network.driver import Plug
from climate.compute.network.operations import security_groups
from climate.compute.network.render.port_filter import EGRESS, INGRESS, TCP, FilterRule
from climate.compute.servers import create, sync_states
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.servers.tasks import task_worker
from tests.compute.cloud_factory import request
from tests.compute.recorded_networks import Wired, wired_place

BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}
WHO = ("demo", "demo")
OUT = (FilterRule(EGRESS, 4), FilterRule(EGRESS, 6))


@pytest.fixture
def wired(scratch: str, tmp_path: Path) -> Iterator[Wired]:
    with wired_place(scratch, tmp_path) as made:
        yield made


@pytest.fixture
def web(wired: Wired) -> SecurityGroup:
    return security_groups.create(wired.compute, "demo", "web", "")


def booted(wired: Wired, *groups: SecurityGroup) -> Server:
    ids = tuple(group.id for group in groups) or None
    (server,) = create.boot(wired.compute, request(project_id="demo", security_groups=ids))
    wired.settle()
    return server


def plug(wired: Wired, server: Server) -> Plug:
    (found,) = [plug for _, plug in wired.plugs() if plug.netns.endswith(server.id)]
    return found


def allow(wired: Wired, group: SecurityGroup, **values: object) -> SecurityRule:
    wanted = SecurityRule("", group.id, INGRESS, 4, **values)  # type: ignore[arg-type]
    return security_groups.add_rule(wired.compute, wanted, WHO)


def test_a_server_of_default_has_no_filter_until_a_rule_of_it_changes(wired: Wired) -> None:
    server = booted(wired)
    assert plug(wired, server).rules is None
    default = default_group("demo")
    incoming = [rule.id for rule in default.rules if rule.direction == INGRESS]
    for rule_id in incoming:
        security_groups.delete_rule(wired.compute, rule_id, WHO)
    wired.settle()
    assert plug(wired, server).rules == OUT
    allow(wired, default)
    security_groups.add_rule(wired.compute, SecurityRule("", default.id, INGRESS, 6), WHO)
    wired.settle()
    assert plug(wired, server).rules is None


def test_rules_reach_the_interfaces_of_running_servers(wired: Wired, web: SecurityGroup) -> None:
    server, other = booted(wired, web), booted(wired)
    assert plug(wired, server).rules == OUT
    rule = allow(wired, web, protocol="tcp", first=22, last=23, remote_cidr="203.0.113.0/24")
    wired.settle()
    allowed = FilterRule(INGRESS, 4, TCP, 22, 23, (IPv4Network("203.0.113.0/24"),))
    assert plug(wired, server).rules == (*OUT, allowed)
    assert plug(wired, other).rules is None
    security_groups.delete_rule(wired.compute, rule.id, WHO)
    wired.settle()
    assert plug(wired, server).rules == OUT


def test_servers_of_a_group_are_the_far_side_of_a_rule(wired: Wired, web: SecurityGroup) -> None:
    clients = security_groups.create(wired.compute, "demo", "clients", "")
    server = booted(wired, web)
    allow(wired, web, protocol="tcp", first=80, last=80, remote_group_id=clients.id)
    wired.settle()
    assert plug(wired, server).rules == (*OUT, FilterRule(INGRESS, 4, TCP, 80, 80, ()))
    client = booted(wired, clients)
    wired.settle()
    (address,) = plug(wired, client).addresses
    near = FilterRule(INGRESS, 4, TCP, 80, 80, (IPv4Network(address),))
    assert plug(wired, server).rules == (*OUT, near)
    wired.ask(client, DELETE)
    sync_states.reconcile(wired.compute)
    assert plug(wired, server).rules == (*OUT, FilterRule(INGRESS, 4, TCP, 80, 80, ()))


def test_groups_of_a_server_change_while_it_runs(wired: Wired, web: SecurityGroup) -> None:
    server = booted(wired)
    who = Requester(server.id, "demo", BY)
    security_groups.add_to_server(wired.compute, who, "web")
    wired.settle()
    # The rules of all groups count, and those of `default` allow all.
    assert plug(wired, server).rules is None
    security_groups.remove_from_server(wired.compute, who, "default")
    wired.settle()
    assert plug(wired, server).rules == OUT
    security_groups.remove_from_server(wired.compute, who, web.id)
    wired.settle()
    assert plug(wired, server).rules == ()
    security_groups.add_to_server(wired.compute, who, "web")
    with pytest.raises(Conflict, match="in use"):
        security_groups.delete(wired.compute, web.id, WHO)


def test_a_lost_wake_up_and_a_failed_one_are_made_good_by_the_next_round(wired: Wired, web: SecurityGroup) -> None:
    server = booted(wired, web)
    allow(wired, web)
    wired.here.rings.rung.clear()
    before = plug(wired, server).rules
    broken = True

    def fails(verb: str) -> None:
        if verb == "guard" and broken:
            raise NetworkError("nft is missing")

    for host in ("c1", "c2"):
        wired.net(host).fails = fails
    task_worker.run_task(wired.compute, server.id)
    assert plug(wired, server).rules == before
    broken = False
    sync_states.reconcile(wired.compute)
    assert plug(wired, server).rules == (*OUT, FilterRule(INGRESS, 4))


def test_a_wake_up_for_a_server_that_is_gone_does_nothing(wired: Wired) -> None:
    task_worker.run_task(wired.compute, str(uuid4()))
    assert wired.plugs() == []
