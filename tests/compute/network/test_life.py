"""The life of addresses: whatever servers, DHCP clients, network hosts and the clock do, the books stay right."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from sqlalchemy import text

from climate.compute.errors import Conflict, NetworkError, NoMoreAddresses, NotFound
from climate.compute.network import fixed_ips, floating_ips
from climate.compute.network.driver import DhcpAction
from climate.compute.store.networks import floating_ips as floating_rows
from tests.compute.network.recorded_network import ONE, TWO, Books, books
from tests.conftest import Clock
from tests.machine.search import look

HOSTS = (ONE, TWO)
PROJECTS = ("p1", "p2")
DOWN, TIME_OUT = 60, 600
VERBS = ("happened", "forget", "serve", "unserve", "standing", "translate", "release")
ANY = st.integers(0, 10**6)
"""One of what there is then."""


class Once:
    """Fails at the next call of a verb."""

    def __init__(self, verb: str) -> None:
        self.verb: str | None = verb

    def __call__(self, verb: str) -> None:
        if verb == self.verb:
            self.verb = None
            raise NetworkError(f"{verb} does not work")


class Life(RuleBasedStateMachine):
    """Two projects, two network hosts, three managers, DHCP clients that tell the truth or do not, and the clock."""

    cloud: Callable[..., AbstractContextManager[Books]]

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, tuple[str, list[str]]] = {}
        """Server -> its project, and the addresses that it has been given."""
        self.told: list[tuple[DhcpAction, str, str, str]] = []
        self.closing = ExitStack()
        self.there: Books

    @initialize(manager=st.sampled_from(["flat", "flat_dhcp", "vlan"]), force=st.booleans())
    def furnish(self, manager: str, force: bool) -> None:
        given: dict[str, Any] = {"down_seconds": DOWN, "timeout_seconds": TIME_OUT, "public_interface": "eth0"}
        self.there = self.closing.enter_context(type(self).cloud(manager=manager, force_release=force, **given))
        self.there.make("net", "10.0.0.0/28", count=2, size=8) if manager != "flat_dhcp" else self._shared()
        self.there.pool("172.24.4.0/29")
        self.there.tend(*HOSTS)
        self.there.tend(*HOSTS)
        self.floating = [self.there.floating(project).id for project in PROJECTS]

    def _shared(self) -> None:
        for place in (0, 1):
            self.there.make(f"net{place}", f"10.0.0.{8 * place}/29", bridge=f"br{place}")

    @rule(project=st.sampled_from(PROJECTS), count=st.integers(1, 3), least=st.integers(1, 3))
    def boot(self, project: str, count: int, least: int) -> None:
        before = self._whose()
        try:
            made = self.there.boot(count, project_id=project, least=min(least, count))
        except NoMoreAddresses:
            assert self.there.place.count("compute_servers") == len(self.servers)
            return
        for server in made:
            given = self.there.fixed(server.id)
            assert given, "its networks have hosts"
            assert not set(given) & set(before), "it was somebody's"
            self.servers[server.id] = (project, given)

    def _whose(self) -> Mapping[str, str]:
        with self.there.compute.engine.connect() as conn:
            query = "SELECT host(address), server_id::text FROM compute_addresses WHERE server_id IS NOT NULL"
            return {row[0]: row[1] for row in conn.execute(text(query))}

    @precondition(lambda self: self.servers)
    @rule(which=ANY)
    def delete(self, which: int) -> None:
        server_id = self._server(which)
        self.there.delete(server_id)
        del self.servers[server_id]

    def _server(self, which: int) -> str:
        return sorted(self.servers)[which % len(self.servers)]

    @rule(what=st.sampled_from(list(DhcpAction)), which=ANY, mac=ANY, host=st.sampled_from(HOSTS), forged=st.booleans())
    def client(self, what: DhcpAction, which: int, mac: int, host: str, forged: bool) -> None:
        """A DHCP client does something with an address: its own, or with the MAC of anybody."""
        with self.there.compute.engine.connect() as conn:
            query = "SELECT network_id::text, host(address), mac FROM compute_addresses ORDER BY mac IS NULL, address"
            rows = [tuple(row) for row in conn.execute(text(query))]
        known = [row for row in rows if row[2] is not None] or rows
        network_id, address, own = (rows if forged else known)[which % len(rows if forged else known)]
        other = known[mac % len(known)][2]
        story = (what, network_id, address, (other if forged else own) or "02:16:3e:00:00:00")
        self.told.append(story)
        self.there.tell(*story, host=host)

    @precondition(lambda self: self.told)
    @rule(which=ANY, host=st.sampled_from(HOSTS))
    def told_again(self, which: int, host: str) -> None:
        self.there.tell(*self.told[which % len(self.told)], host=host)

    @rule(seconds=st.sampled_from([1, 30, DOWN + 1, TIME_OUT, TIME_OUT + 1]))
    def time_passes(self, seconds: int) -> None:
        self.there.forward(seconds)

    @rule(host=st.sampled_from(HOSTS), thorough=st.booleans())
    def beat(self, host: str, thorough: bool) -> None:
        self.there.tend(host, thorough=thorough)

    @rule(host=st.sampled_from(HOSTS), verb=st.sampled_from(VERBS))
    def breaks(self, host: str, verb: str) -> None:
        self.there.wire(host).fails = Once(verb)

    @precondition(lambda self: self.servers)
    @rule(which=ANY, network=ANY)
    def add(self, which: int, network: int) -> None:
        server_id = self._server(which)
        project, given = self.servers[server_id]
        usable = [one.id for one in self.there.listed() if one.project_id in (None, project)]
        usable = [one for one in usable if self.there.network(one).vlan is None or self._owned(one, project)]
        if usable and self._tried(fixed_ips.add, server_id, project, usable[network % len(usable)]):
            now = self.there.fixed(server_id)
            assert set(given) < set(now)
            assert len(now) == len(given) + 1
            self.servers[server_id] = (project, now)

    def _owned(self, network_id: str, project: str) -> bool:
        return self.there.network(network_id).project_id == project

    @precondition(lambda self: self.servers)
    @rule(which=ANY, address=ANY)
    def remove(self, which: int, address: int) -> None:
        server_id = self._server(which)
        project, given = self.servers[server_id]
        if given and self._tried(fixed_ips.remove, server_id, given[address % len(given)]):
            self.servers[server_id] = (project, [one for one in given if one != given[address % len(given)]])

    def _tried(self, verb: Callable[..., None], *given: str) -> bool:
        try:
            with self.there.compute.engine.begin() as conn:
                verb(conn, *given, self.there.clock.time)
        except (NoMoreAddresses, Conflict):
            return False
        return True

    @precondition(lambda self: self.servers)
    @rule(which=ANY, mine=st.sampled_from(PROJECTS))
    def associate(self, which: int, mine: str) -> None:
        server_id = self._server(which)
        with self.there.compute.engine.begin() as conn:
            held = next((one for one in floating_rows.listed(conn, mine)), None)
            if held is None:
                held = floating_ips.allocate(conn, mine, floating_ips.pool(conn, None, "public"), self.there.clock.time)
        try:
            with self.there.compute.engine.begin() as conn:
                target = floating_ips.fixed(conn, mine, server_id=server_id)
                floating_ips.associate(conn, floating_ips.get(conn, held.id), target, self.there.clock.time)
        except (NotFound, Conflict):
            return
        assert self.servers[server_id][0] == mine

    @rule(mine=st.sampled_from(PROJECTS), release=st.booleans())
    def let_go(self, mine: str, release: bool) -> None:
        with self.there.compute.engine.begin() as conn:
            for one in floating_rows.listed(conn, mine):
                held = floating_ips.get(conn, one.id, mine)
                if release:
                    floating_ips.release(conn, held, self.there.clock.time)
                elif held.fixed_address is not None:
                    floating_ips.disassociate(conn, held, self.there.clock.time)

    @rule()
    def rest(self) -> None:
        """When nothing fails, the hosts do after a few beats what the database says."""
        for host in HOSTS:
            self.there.wire(host).fails = lambda _: None
        self.there.settle(*HOSTS)
        self._as_written()

    def _as_written(self) -> None:
        there = self.there
        for host in HOSTS:
            own = {one.id for one in there.listed() if one.host == host and one.manager != "flat"}
            assert set(there.wire(host).serving) == own
            for network_id in own:
                served = there.wire(host).serving[network_id].dhcp
                assert served is not None
                told = {(str(entry.address), entry.mac) for entry in served.entries}
                query = "SELECT host(address), mac FROM compute_addresses WHERE vif_id IS NOT NULL AND network_id = :id"
                with there.compute.engine.connect() as conn:
                    held = {tuple(row) for row in conn.execute(text(query), {"id": network_id})}
                # Each interface is told of one of its addresses.
                assert told <= held
                assert sorted(mac for _, mac in told) == sorted({mac for _, mac in held})
            nat = there.wire(host).nat
            with there.compute.engine.connect() as conn:
                wanted = floating_rows.on_host(conn, host)
            told_nat = [] if nat is None else [(str(one.floating), str(one.fixed)) for one in nat.forwards]
            assert told_nat == [(one, to) for one, to, _ in wanted]

    @invariant()
    def the_books_are_right(self) -> None:
        if hasattr(self, "there"):
            assert self.there.wrong() == []
            for server_id, (_, given) in self.servers.items():
                assert sorted(self.there.fixed(server_id)) == sorted(given)
            assert self.there.place.count("compute_vifs v", "server_id IS NULL") == 0

    def teardown(self) -> None:
        """Every address is back after the last deletion and the time-out."""
        with self.closing:
            if hasattr(self, "there"):
                self._all_comes_back()

    def _all_comes_back(self) -> None:
        for server_id in list(self.servers):
            self.there.delete(server_id)
        self.rest()
        self.there.forward(TIME_OUT + 1)
        self.rest()
        assert self.there.place.count("compute_addresses", "server_id IS NOT NULL OR leased") == 0
        assert self.there.place.count("compute_vifs") == 0
        assert self.there.place.count("compute_floating_addresses", "fixed_address IS NOT NULL") == 0
        assert self.there.place.count("compute_network_calls") == 0


@pytest.fixture
def life(scratch: str, tmp_path: Path) -> type[Life]:
    def begun(**options: Any) -> AbstractContextManager[Books]:
        return books(scratch, tmp_path, Clock(), **options)

    return type("LifeHere", (Life,), {"cloud": staticmethod(begun)})


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_order_of_events_gives_an_address_twice_or_loses_one(life: type[Life]) -> None:
    look(life, examples=8, steps=30)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_no_order_of_events_does_so_in_a_long_search(life: type[Life]) -> None:
    look(life, examples=60, steps=50)
