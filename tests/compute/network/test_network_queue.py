"""What may happen on the way to a network host and back: no address is lost, and none is allocated twice."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from climate.compute.errors import Conflict, NetworkUnavailable
from climate.compute.network import floating_ips
from climate.compute.network.allocation import host_answers
from climate.compute.network.allocation.allocator import (
    ALLOCATE,
    GRANT_SECONDS,
    Allocation,
    Interface,
    InUse,
    Release,
    Translation,
)
from climate.compute.network.allocation.bundled_allocator import BundledAllocator
from climate.compute.network.allocation.messages import Answer, allocation_body
from climate.compute.network.allocation.queue import MemoryQueue, Request
from climate.compute.servers.interfaces import interfaces as addressing
from climate.compute.store.networks import allocator_messages
from tests.compute.network import allocation_queues
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import ONE, TWO, Books
from tests.compute.network.test_allocation_ways import who

HELD = "grant_id IS NOT NULL"


@dataclass
class Trouble(MemoryQueue):
    """A queue on which something happens to each request, before or after it is answered."""

    before: Callable[[Request], None] = lambda _: None
    after: Callable[[Request, Mapping[str, Answer]], Mapping[str, Answer]] = lambda _, answers: answers

    def call(self, requests: Sequence[Request], seconds: float, /) -> Mapping[str, Answer]:
        answers: dict[str, Answer] = {}
        for one in requests:
            self.before(one)
            answers |= self.after(one, super().call([one], seconds))
        return answers


def lost(_: Request, answers: Mapping[str, Answer]) -> Mapping[str, Answer]:
    return {}


def cloud_of(cloud: Cloud, queue: MemoryQueue, manager: str = "flat") -> Books:
    """A cloud with one network, whose host answers by this queue."""
    there = allocation_queues.asked(cloud(manager=manager), queue)
    queue.hosts[ONE] = allocation_queues.answers(there, ONE)
    there.served("one", "10.0.0.0/29")
    return there


def refused(there: Books, error: type[Exception] = NetworkUnavailable, says: str = "try again") -> None:
    with pytest.raises(error, match=says):
        there.boot()
    assert there.place.count("compute_servers") == 0


def test_nothing_is_sent_to_a_host_that_is_not_heard_of(cloud: Cloud) -> None:
    there = cloud_of(cloud, queue := Trouble())
    there.forward(there.compute.network.down_seconds + 1)
    refused(there, says="No network host answers for network")
    assert queue.sent == []
    assert there.place.count("compute_addresses", "server_id IS NOT NULL") == 0


def test_each_request_is_in_the_log_of_its_host(cloud: Cloud) -> None:
    there = cloud_of(cloud, Trouble())
    (network,) = there.listed()
    with capture_logs() as said:
        there.boot()
    received = [line for line in said if line["event"] == "request for addresses received"]
    assert [(line["method"], line["network"]) for line in received] == [(ALLOCATE, network.id)]


@pytest.mark.parametrize("manager", ["flat", "flat_dhcp"])
def test_what_was_granted_in_an_answer_that_is_lost_is_given_up(cloud: Cloud, manager: str) -> None:
    there = cloud_of(cloud, Trouble(after=lost), manager)
    refused(there, says="did not answer in time")
    assert there.place.count("compute_addresses", HELD) == 1
    there.tend(thorough=True)
    assert there.place.count("compute_addresses", HELD) == 1, "a beat keeps what a boot may still record"
    allocation_queues.deliver(there)
    assert there.place.count("compute_addresses", "server_id IS NOT NULL") == 0
    assert there.place.count("compute_network_messages") == 0


def test_a_message_that_comes_twice_gets_the_same_answer(cloud: Cloud) -> None:
    queue = Trouble()
    there = cloud_of(cloud, queue)
    seen: list[Mapping[str, Answer]] = []

    def doubled(request: Request, answers: Mapping[str, Answer]) -> Mapping[str, Answer]:
        seen.extend([answers, MemoryQueue.call(queue, [request], 1)])
        return answers

    queue.after = doubled
    server = there.boot()[0]
    assert seen[0] == seen[1]
    assert there.fixed(server.id) == ["10.0.0.2"]
    assert there.place.count("compute_addresses", "server_id IS NOT NULL") == 1


def test_a_message_that_two_processes_have_at_once_holds_one_address(cloud: Cloud) -> None:
    there = cloud_of(cloud, Trouble())
    (network,) = there.listed()
    interfaces = tuple(Interface(str(uuid4()), f"02:16:3e:00:00:0{number}") for number in range(2))
    asked = Allocation(str(uuid4()), network.id, str(network.cidr), "demo", interfaces)
    allocator, begin = BundledAllocator(there.host()), Barrier(4)

    def ask(_: int) -> Mapping[str, str]:
        begin.wait()
        return allocator.allocate_for_instance(asked)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert all(one == found[0] for one in found)
    assert there.place.count("compute_addresses", HELD) == 2


def test_a_message_that_comes_after_all_is_over_holds_an_address_for_a_time_only(cloud: Cloud) -> None:
    queue = Trouble()
    there = cloud_of(cloud, queue)
    late: list[Request] = []
    queue.before = late.append
    queue.after = lost
    refused(there)
    allocation_queues.deliver(there)
    MemoryQueue.call(queue, late, 1)
    assert there.place.count("compute_addresses", HELD) == 1
    there.forward(GRANT_SECONDS - 1)
    there.tend()
    assert there.place.count("compute_addresses", HELD) == 1
    there.forward(2)
    there.tend()
    assert there.place.count("compute_addresses", "server_id IS NOT NULL") == 0
    assert there.wrong() == []


def test_a_grant_that_is_over_before_it_is_recorded_is_not_taken(cloud: Cloud) -> None:
    queue = Trouble()
    there = cloud_of(cloud, queue)

    def slow(_: Request, answers: Mapping[str, Answer]) -> Mapping[str, Answer]:
        there.forward(GRANT_SECONDS + 1)
        there.tend()
        queue.after = lambda _, answers: answers
        other = there.boot(networks=(there.listed()[0].id,))
        assert there.fixed(other[0].id) == ["10.0.0.2"]
        return answers

    queue.after = slow
    with pytest.raises(Conflict, match=r"granted 10\.0\.0\.2, which is not free"):
        there.boot()
    allocation_queues.deliver(there)
    assert there.place.count("compute_servers") == 1
    assert there.place.count("compute_addresses", "server_id IS NOT NULL") == 1
    assert there.wrong() == []


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"id": "x"},
        {"addresses": {}},
        {"addresses": {"server": "10.0.0.2"}},
        {"addresses": "10.0.0.2"},
        {"addresses": {"SERVER": "not an address"}},
        {"refused": {"type": "SystemExit", "message": "no"}},
        {"refused": []},
    ],
    ids=str,
)
def test_what_is_no_answer_is_none(cloud: Cloud, answer: Any) -> None:
    there = cloud_of(cloud, queue := Trouble())

    def nonsense(message: Any) -> Any:
        server_id = message["allocation"]["interfaces"][0]["server_id"]
        body = {key: _named(value, server_id) for key, value in answer.items()} if isinstance(answer, dict) else answer
        return {"id": message["allocation"]["id"], **body} if isinstance(body, dict) else body

    queue.hosts[ONE] = nonsense
    refused(there)


def _named(value: Any, server_id: str) -> Any:
    return {key.replace("SERVER", server_id): each for key, each in value.items()} if isinstance(value, dict) else value


def test_an_address_of_another_server_or_network_or_of_nobody_is_not_taken(cloud: Cloud) -> None:
    there = cloud_of(cloud, queue := Trouble())
    there.boot()
    for address in ("10.0.0.2", "10.0.0.1", "192.0.2.1"):

        def grant(message: Any, address: str = address) -> Any:
            asked = message["allocation"]
            return {"id": asked["id"], "addresses": {asked["interfaces"][0]["server_id"]: address}}

        queue.hosts[ONE] = grant
        with pytest.raises(Conflict, match=f"granted {address}, which is not free"):
            there.boot()
    assert there.place.count("compute_servers") == 1
    assert there.wrong() == []


def test_a_host_that_fails_says_no_more_than_that(cloud: Cloud) -> None:
    class Broken(BundledAllocator):
        def allocate_for_instance(self, asked: Allocation, /) -> Mapping[str, str]:
            raise RuntimeError("secret of the host")

    queue = Trouble()
    there = cloud_of(cloud, queue)
    queue.hosts[ONE] = allocation_queues.answers(there, ONE, Broken(there.host()))
    refused(there, says="^The network host does not answer; try again later.$")


@pytest.mark.parametrize("message", [None, {}, {"method": "allocate_for_instance", "allocation": {"id": 1}}, "text"])
def test_requests_that_cannot_be_read_are_dropped(cloud: Cloud, message: Any) -> None:
    there = cloud_of(cloud, Trouble())
    assert host_answers.answer(BundledAllocator(there.host()), message) is None


@dataclass
class Remembering:
    """An allocator that writes down what it is told."""

    told: list[tuple[str, Any]] = field(default_factory=list)
    fails: int = 0
    """How often it fails before it does anything more."""

    def __getattr__(self, method: str) -> Callable[[Any], None]:
        def note(what: Any) -> None:
            if self.fails:
                self.fails -= 1
                raise OSError("the books are away")
            self.told.append((method, what))

        return note


def test_allocators_get_all_changes_in_order(cloud: Cloud) -> None:
    there = cloud_of(cloud, Trouble(), "flat_dhcp")
    (network,) = there.listed()
    server = there.boot()[0]
    addressing.add(there.compute, who(server.id), network.id)
    there.place.settle()
    addressing.remove(there.compute, who(server.id), "10.0.0.2")
    there.place.settle()
    there.pool()
    tell = there.compute.network_notifier
    with there.compute.engine.begin() as conn:
        now = there.clock.time
        held = floating_ips.allocate(conn, "demo", floating_ips.pool(conn, None, "public"), now)
        floating_ips.associate(conn, held, floating_ips.fixed(conn, "demo", address="10.0.0.3"), now, tell)
        floating_ips.disassociate(conn, floating_ips.get(conn, held.id), now, tell)
    there.delete(server.id)
    seen: Any = Remembering()
    allocation_queues.deliver(there, allocator=seen)
    assert seen.told == [
        ("remove_fixed_ip_from_instance", Release(network.id, server.id, ("10.0.0.2",))),
        ("associate_floating_ip", Translation(network.id, held.address, "10.0.0.3")),
        ("disassociate_floating_ip", Translation(network.id, held.address, "10.0.0.3")),
        ("deallocate_for_instance", Release(network.id, server.id, ("10.0.0.3",))),
    ]
    allocation_queues.deliver(there, allocator=seen)
    assert len(seen.told) == 4, "each once, where nothing failed"


def test_what_an_allocator_fails_at_is_sent_again_before_what_came_later(cloud: Cloud) -> None:
    there = cloud_of(cloud, Trouble())
    gone = [there.boot()[0].id for _ in range(2)]
    for server_id in gone:
        there.delete(server_id)
    seen: Any = Remembering(fails=1)
    allocation_queues.deliver(there, allocator=seen)
    assert seen.told == []
    allocation_queues.deliver(there, allocator=seen)
    assert [what.server_id for _, what in seen.told] == gone


@pytest.mark.parametrize(
    "change", ["method = 'eat'", "body = '{}'", "body = '[]'", 'body = \'{"server_id": 1, "addresses": 2}\'']
)
def test_a_notification_that_cannot_be_read_is_set_aside(cloud: Cloud, change: str) -> None:
    there = cloud_of(cloud, Trouble())
    damaged, whole = (there.boot()[0].id for _ in range(2))
    there.delete(damaged)
    with there.compute.engine.begin() as conn:
        conn.exec_driver_sql(f"UPDATE compute_network_messages SET {change}")
    there.delete(whole)
    seen: Any = Remembering()
    with capture_logs() as logged:
        allocation_queues.deliver(there, allocator=seen)
    assert [what.server_id for _, what in seen.told] == [whole]
    assert [one["method"] for one in logged if "set aside" in one["event"]]
    assert there.place.count("compute_network_messages") == 0


def test_many_notifications_of_one_network_keep_none_of_another_from_its_turn(cloud: Cloud) -> None:
    there = cloud_of(cloud, Trouble())
    (first,) = there.listed()
    (second,) = there.served("two", "10.1.0.0/29")
    many = [
        (first.id, "deallocate_for_instance", {"server_id": str(number), "addresses": []}) for number in range(1000)
    ]
    last = (second.id, "deallocate_for_instance", {"server_id": "last", "addresses": []})
    with there.compute.engine.begin() as conn:
        allocator_messages.write(conn, [*many, last])
    with there.compute.engine.connect() as conn:
        found = allocator_messages.of_host(conn, ONE)
    assert [one.body["server_id"] for one in found] == [*map(str, range(999)), "last"]


def test_whoever_claims_the_network_of_a_dead_host_gets_the_messages_that_it_missed(cloud: Cloud) -> None:
    there = cloud_of(cloud, Trouble(after=lost))
    refused(there)
    there.forward(there.compute.network.down_seconds + 1)
    there.tend(TWO)
    assert there.listed()[0].host == TWO
    allocation_queues.deliver(there, ONE)
    assert there.place.count("compute_addresses", HELD) == 1
    allocation_queues.deliver(there, TWO)
    assert there.place.count("compute_addresses", HELD) == 0


def test_an_allocator_is_shown_what_is_recorded_and_not_what_is_held(cloud: Cloud) -> None:
    there = cloud_of(cloud, queue := Trouble())
    server = there.boot()[0]
    queue.after = lost
    with pytest.raises(NetworkUnavailable):
        there.boot()
    seen: Any = Remembering()
    host_answers.reconcile(there.host(), seen)
    assert seen.told == [("reconcile", InUse(there.listed()[0].id, {"10.0.0.2": server.id}))]


def test_no_message_is_written_where_addresses_are_taken_directly(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    there.served("one", "10.0.0.0/29")
    there.delete(there.boot()[0].id)
    assert there.place.count("compute_network_messages") == 0


def test_a_cancelled_grant_leaves_what_was_recorded_of_it(cloud: Cloud) -> None:
    there = cloud_of(cloud, queue := Trouble())
    sent: list[Request] = []
    queue.before = sent.append
    server = there.boot()[0]
    BundledAllocator(there.host()).cancel_allocation(sent[0].asked)
    assert there.fixed(server.id) == ["10.0.0.2"]
    assert there.wrong() == []


def test_a_broker_that_answers_twice_is_read_once(cloud: Cloud, tmp_path: Path) -> None:
    there = cloud(manager="flat")
    with (
        allocation_queues.own_broker(tmp_path / "broker") as broker,
        allocation_queues.by_valkey(there, broker.store.url, times=2),
    ):
        there.served("one", "10.0.0.0/28")
        assert [there.fixed(server.id) for server in there.boot(2)] == [["10.0.0.2"], ["10.0.0.3"]]
        # A host that is late for its second answer holds further addresses, until its beats release what nobody took.
        assert there.place.count("compute_addresses", "server_id IS NOT NULL AND vif_id IS NOT NULL") == 2


def test_a_broker_that_is_away_is_said_to_be(cloud: Cloud, tmp_path: Path) -> None:
    there = cloud(manager="flat")
    with allocation_queues.own_broker(tmp_path / "broker") as broker:
        with allocation_queues.by_valkey(there, broker.store.url):
            there.served("one", "10.0.0.0/28")
        broker.kill()
        refused(there, says="The queue of the network hosts does not answer now")


def test_nobody_answers_in_time(cloud: Cloud, tmp_path: Path) -> None:
    there = cloud(manager="flat")
    with (
        allocation_queues.own_broker(tmp_path / "broker") as broker,
        allocation_queues.by_valkey(there, broker.store.url, [TWO]),
    ):
        short = replace(there.compute.network, call_seconds=0.5)
        there.place.compute = replace(there.compute, network=short)
        there.served("one", "10.0.0.0/28")
        refused(there, says="did not answer in time")


def test_a_request_is_written_as_it_is_read(cloud: Cloud) -> None:
    interface = Interface(str(uuid4()), "02:16:3e:00:00:01", "10.0.0.9")
    asked = Allocation(str(uuid4()), str(uuid4()), "10.0.0.0/28", "demo", (interface,), vpn=True)
    there = cloud_of(cloud, Trouble())
    seen: list[Allocation] = []

    class Reading(BundledAllocator):
        def allocate_for_instance(self, asked: Allocation, /) -> Mapping[str, str]:
            seen.append(asked)
            return {}

    message = {"method": "allocate_for_instance", "allocation": allocation_body(asked), "reply_to": "x"}
    allocation_queues.answers(there, ONE, Reading(there.host()))(message)
    assert seen == [asked]
