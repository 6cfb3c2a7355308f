"""Interfaces of servers are on their nodes when their guests are, and nowhere else, whatever dies in between."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute.errors import NetworkError, VirtError
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    ERROR,
    PAUSE,
    PAUSED,
    REBOOT,
    RESERVED,
    RESUME,
    REWIRE,
    SHELVED_OFFLOADED,
    SHUTOFF,
    START,
    STOP,
    SUSPEND,
    SUSPENDED,
    UNPAUSE,
    WAKE,
    Server,
)
from climate.compute.network.driver import Link
from climate.compute.servers import actions, create, rebuild, sync_states, unshelve
from climate.compute.servers.interfaces import interfaces, vif_plugging
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.virt import State, Wiring
from tests.compute.cloud_factory import request
from tests.compute.recorded_networks import Died, Wired, wired_place

BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}


@pytest.fixture
def wired(scratch: str, tmp_path: Path) -> Iterator[Wired]:
    with wired_place(scratch, tmp_path) as made:
        yield made


def test_each_task_plugs_and_unplugs_in_its_order(wired: Wired) -> None:
    server = wired.here.boot_one()
    assert wired.settle() == ["plug", "run"]
    assert wired.plug().up
    for task, steps, up in (
        (STOP, ["stop", "plug"], False),
        (START, ["plug", "run"], True),
        (PAUSE, ["pause", "plug"], False),
        (REWIRE, ["plug", "rewire"], False),
        (UNPAUSE, ["plug", "unpause"], True),
        (SUSPEND, ["suspend", "plug"], False),
        (REWIRE, ["plug", "rewire"], False),
        (RESUME, ["plug", "resume"], True),
        (REBOOT, ["stop", "plug", "run"], True),
        (REWIRE, ["plug", "rewire"], True),
        (DELETE, ["delete", "unplug", "drop_netns"], None),
    ):
        assert (task, wired.ask(server, task)) == (task, steps)
        assert [plug.up for _, plug in wired.plugs()] == ([] if up is None else [up])


def test_a_reserved_server_is_plugged_and_down_until_it_is_woken(wired: Wired) -> None:
    server = create.reserve(wired.compute, request(), str(uuid4()))
    assert wired.settle() == ["plug", "prepare"]
    assert not wired.plug().up
    assert wired.plug().addresses == (IPv4Address(wired.here.look(server.id).addresses[0].address),)
    assert wired.ask(server, WAKE) == ["plug", "run"]
    assert wired.plug().up


def test_a_shelved_server_has_no_interface_until_it_is_back(wired: Wired) -> None:
    server = wired.here.boot_one()
    wired.steps.asked.clear()
    actions.shelve(wired.compute, server.id)
    assert wired.settle() == ["stop", "snapshot", "delete", "unplug", "drop_netns"]
    assert wired.plugs() == []
    unshelve.unshelve(wired.compute, server.id)
    wired.settle()
    assert wired.plug().up
    assert wired.plug().mac == server.addresses[0].mac


def test_a_server_that_is_recreated_while_it_is_shut_off_stays_silent(wired: Wired) -> None:
    server = wired.here.boot_one()
    made = actions.snapshot(wired.compute, server.id, "image")
    wired.settle()
    wired.ask(server, STOP)
    wired.steps.asked.clear()
    rebuild.rebuild(wired.compute, server.id, rebuild.Rebuilt(made))
    assert wired.settle() == ["delete", "plug", "run", "stop", "plug"]
    assert not wired.plug().up


BEGINS: dict[str, Callable[[Wired, Server], None]] = {
    STOP: lambda wired, server: actions.request_task(wired.compute, server.id, STOP),
    REBOOT: lambda wired, server: actions.request_task(wired.compute, server.id, REBOOT),
    REWIRE: lambda wired, server: actions.request_task(wired.compute, server.id, REWIRE),
    DELETE: lambda wired, server: actions.request_task(wired.compute, server.id, DELETE),
    "shelve": lambda wired, server: actions.shelve(wired.compute, server.id),
}
ENDS = {STOP: (SHUTOFF, [False]), REBOOT: (ACTIVE, [True]), REWIRE: (ACTIVE, [True]), "shelve": (SHELVED_OFFLOADED, [])}


@pytest.mark.parametrize("step", range(7))
@pytest.mark.parametrize("task", BEGINS)
def test_a_worker_that_is_killed_at_any_step_loses_and_doubles_nothing(wired: Wired, task: str, step: int) -> None:
    server = wired.here.boot_one()
    wired.steps.asked.clear()
    BEGINS[task](wired, server)
    wired.steps.dies = step
    try:
        wired.settle()
    except Died:
        wired.restarted(server.id)
    if task == DELETE:
        assert (wired.here.count("compute_servers"), wired.plugs()) == (0, [])
        return
    status, ups = ENDS[task]
    assert (wired.here.look(server.id).status, [plug.up for _, plug in wired.plugs()]) == (status, ups)


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("reserved", [True, False])
def test_a_worker_that_is_killed_while_it_makes_a_server_is_followed_by_another(
    wired: Wired, reserved: bool, step: int
) -> None:
    server = create.reserve(wired.compute, request(), str(uuid4())) if reserved else wired.here.boot()[0]
    wired.steps.dies = step
    try:
        wired.settle()
    except Died:
        wired.restarted(server.id)
    assert wired.here.look(server.id).status == (RESERVED if reserved else ACTIVE)
    assert wired.plug().up is not reserved


def broken_at(wired: Wired, host: str, verb: str) -> None:
    before = wired.net(host).fails

    def fails(asked: str) -> None:
        before(asked)
        if asked == verb:
            raise NetworkError(f"{verb} cannot be done")

    wired.net(host).fails = fails


def test_a_server_that_could_not_be_created_leaves_no_interface_on_the_node_that_failed(wired: Wired) -> None:
    wired.here.driver.broken.add("n1")
    for _ in range(4):
        wired.here.boot_one()
    assert [host for host, _ in wired.plugs()] == ["c2"] * 4
    assert {"delete", "unplug", "drop_netns"} <= set(wired.steps.asked)


def test_a_node_whose_network_cannot_be_created_is_passed_over(wired: Wired) -> None:
    broken_at(wired, "c1", "plug")
    made = [wired.here.boot_one() for _ in range(3)]
    assert {server.node for server in made} == {"n2"}
    broken_at(wired, "c2", "ensure")
    failed = wired.here.boot_one()
    assert failed.status == ERROR
    assert failed.fault is not None
    assert "the network cannot be configured: " in failed.fault["message"]
    assert [host for host, _ in wired.plugs()] == ["c2"] * 3


def test_a_deletion_that_cannot_unplug_is_tried_again_until_it_can(wired: Wired) -> None:
    server = wired.here.boot_one()
    host = {"n1": "c1", "n2": "c2"}[server.node or ""]
    before = wired.net(host).fails
    broken_at(wired, host, "unplug")
    wired.ask(server, DELETE)
    assert wired.here.look(server.id).task == DELETE
    wired.net(host).fails = before
    wired.restarted(server.id)
    assert (wired.here.count("compute_servers"), wired.plugs()) == (0, [])


def test_what_no_server_has_is_swept_away_and_what_one_has_stays(wired: Wired) -> None:
    server = wired.here.boot_one()
    mine = wired.plugs()
    for host in ("c1", "c2"):
        wired.net(host).plug(replace(mine[0][1], vif_id=str(uuid4()), link=Link("gone", "br-gone")))
    other = "c2" if mine[0][0] == "c1" else "c1"
    wired.net(other).plug(mine[0][1])
    vif_plugging.sweep(wired.compute)
    assert wired.plugs() == mine
    for host in ("c1", "c2"):
        assert "gone" not in wired.net(host).links
    assert wired.here.look(server.id).status == ACTIVE


def test_another_services_interfaces_on_the_same_host_are_let_be(wired: Wired) -> None:
    server = wired.here.boot_one()
    mine = wired.plugs()
    with wired.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET name = 'theirs' WHERE name = :name"), {"name": server.node})
    vif_plugging.sweep(wired.compute)
    assert wired.plugs() == mine


@pytest.mark.parametrize(("task", "status", "up"), [(None, ACTIVE, True), (STOP, SHUTOFF, False)])
def test_an_interface_that_was_removed_is_plugged_in_by_the_next_round(
    wired: Wired, task: str | None, status: str, up: bool
) -> None:
    server = wired.here.boot_one()
    if task is not None:
        wired.ask(server, task)
    sync_states.reconcile(wired.compute)
    assert wired.here.rings.rung == []
    wired.net(wired.plugs()[0][0]).plugs.clear()
    sync_states.reconcile(wired.compute)
    wired.settle()
    after = wired.here.look(server.id)
    assert (after.status, after.task, after.fault, wired.plug().up) == (status, None, None, up)


def test_a_server_that_died_is_shut_off_and_silent(wired: Wired) -> None:
    server = wired.here.boot_one()
    wired.here.driver.told = True
    wired.here.driver.guests[server.id] = State.DEAD
    sync_states.reconcile(wired.compute)
    assert wired.here.look(server.id).status == SHUTOFF
    wired.settle()
    assert (wired.here.look(server.id).task, wired.plug().up) == (None, False)


def test_the_interfaces_follow_a_guest_that_was_paused_or_resumed_from_outside(wired: Wired) -> None:
    server = wired.here.boot_one()
    wired.here.driver.told = True
    for state, status in ((State.PAUSED, PAUSED), (State.RUNNING, ACTIVE)):
        wired.here.driver.guests[server.id] = state
        sync_states.reconcile(wired.compute)
        wired.settle()
        after = wired.here.look(server.id)
        assert (after.status, after.task, wired.plug().up) == (status, None, state is State.RUNNING)


def test_what_cannot_be_connected_anew_stays_what_it_is(wired: Wired) -> None:
    server = wired.here.boot_one()
    for host in ("c1", "c2"):
        broken_at(wired, host, "plug")
    wired.ask(server, REWIRE)
    after = wired.here.look(server.id)
    assert (after.status, after.task, after.fault) == (ACTIVE, None, None)


def test_a_service_whose_network_cannot_be_looked_at_still_looks_at_its_servers(wired: Wired) -> None:
    server = wired.here.boot_one()
    broken_at(wired, "c1", "standing")
    wired.here.driver.told = True
    wired.here.driver.guests[server.id] = State.PAUSED
    sync_states.reconcile(wired.compute)
    assert wired.here.look(server.id).status == PAUSED


def test_an_address_that_is_added_may_be_a_source_and_one_that_is_removed_may_not(wired: Wired) -> None:
    server = wired.here.boot_one()
    network = server.addresses[0].network_id
    who = Requester(server.id, "demo", BY)
    interfaces.add(wired.compute, who, network)
    wired.steps.asked.clear()
    assert wired.settle()[:1] == ["plug"]
    both = wired.plug().addresses
    assert len(both) == 2
    assert wired.here.driver.seen[server.id].interfaces[0].addresses == tuple(map(str, both))
    interfaces.remove(wired.compute, who, str(both[0]))
    wired.settle()
    assert wired.plug().addresses == both[1:]


def test_an_interface_whose_last_address_is_removed_goes(wired: Wired) -> None:
    server = wired.here.boot_one()
    interfaces.remove(wired.compute, Requester(server.id, "demo", BY), server.addresses[0].address)
    wired.settle()
    with wired.compute.engine.connect() as conn:
        left = conn.execute(text("SELECT count(*) FROM compute_vifs")).scalar_one()
    assert len(wired.plugs()) == left


def test_a_flat_network_tells_guests_their_addresses_by_file_or_by_hand(wired: Wired) -> None:
    with wired.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_networks SET injected = true, dns = '{192.0.2.53}'"))
    server = wired.here.boot_one()
    own = IPv4Interface(f"{server.addresses[0].address}/26")
    assert (wired.plug().static, wired.plug().router) == ((own,), IPv4Address("10.10.0.1"))
    told = wired.here.driver.seen[server.id].interfaces[0].interfaces_file
    assert told is not None
    assert f"    address {own.ip}\n    netmask 255.255.255.192\n" in told
    assert "    gateway 10.10.0.1\n    dns-nameservers 192.0.2.53\n" in told


def test_a_node_without_networks_has_guests_with_addresses_on_paper(wired: Wired) -> None:
    wired.here.driver.wiring_mode = Wiring.NONE
    server = wired.here.boot_one()
    card = wired.here.driver.seen[server.id].interfaces[0]
    assert (card.mac, card.addresses) == (server.addresses[0].mac, (server.addresses[0].address,))
    assert (card.netns, card.tap, wired.plugs()) == (None, None, [])
    assert wired.ask(server, SUSPEND) == ["suspend"]
    assert wired.here.look(server.id).status == SUSPENDED
    assert wired.ask(server, DELETE) == ["delete"]


def test_what_cannot_be_removed_keeps_nothing_else_in_its_place(wired: Wired) -> None:
    wired.here.boot_one()
    ((host, plug),) = wired.plugs()
    net, failed = wired.net(host), list[str]()
    for _ in range(3):
        stray = replace(plug, vif_id=str(uuid4()))
        net.plugs[stray.name] = stray

    def fail(verb: str) -> None:
        if verb == "unplug" and not failed:
            failed.append(verb)
            raise NetworkError("the device is busy")

    net.fails = fail
    with pytest.raises(VirtError, match="the device is busy"):
        vif_plugging.sweep(wired.compute)
    assert len(net.plugs) == 2, "the server's own, and the one that failed"
    vif_plugging.sweep(wired.compute)
    assert list(net.plugs) == [plug.name]
