"""Network hosts that answer the API's queue in tests: in memory, and by a real Valkey."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kombu.entity import Queue

from climate.compute.network.allocation import host_answers
from climate.compute.network.allocation.allocator import NetworkAllocator
from climate.compute.network.allocation.broker_queue import PREFIX, BrokerQueue, Replies
from climate.compute.network.allocation.bundled_allocator import BundledAllocator
from climate.compute.network.allocation.queue import TASK, AllocationQueue, MemoryQueue
from climate.embedded import valkey
from climate.embedded.home import locked
from tests.compute.network.recorded_network import ONE, TWO, Books
from tests.workers.cell_stacks import OwnBroker
from workers import celery_app, tolerant_transport


def asked(there: Books, queue: AllocationQueue) -> Books:
    """The cloud, with its addresses asked of this queue."""
    there.place.compute = replace(there.place.compute, network_queue=queue)
    there.hosts.clear()
    return there


def answers(there: Books, host: str, allocator: NetworkAllocator | None = None) -> Any:
    """What answers the queue of a host: as JSON in and out, as by a wire."""

    def answer(message: Any) -> Any:
        known = allocator or BundledAllocator(there.host(host))
        return json.loads(json.dumps(host_answers.answer(known, json.loads(json.dumps(message)))))

    return answer


def in_memory(there: Books, *hosts: str) -> MemoryQueue:
    """Have the hosts of a cloud answer in this process."""
    queue = MemoryQueue()
    asked(there, queue)
    queue.hosts.update({host: answers(there, host) for host in hosts or (ONE, TWO)})
    return queue


def deliver(there: Books, *hosts: str, allocator: NetworkAllocator | None = None) -> None:
    """Hand over what the allocators of hosts are told."""
    for host in hosts or (ONE,):
        host_answers.deliver(there.host(host), allocator or BundledAllocator(there.host(host)))


@dataclass
class Answering:
    """The process of a network host, as a thread: takes requests off its queue, and answers them."""

    there: Books
    url: str
    host: str = ONE
    times: int = 1
    """How often each request is answered."""
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        options = {"socket_timeout": 3, "socket_connect_timeout": 2, "global_keyprefix": PREFIX}
        connection: Any = tolerant_transport.connect(celery_app.broker_url(self.url), options)
        name = celery_app.network_queue(self.host)
        queue = Queue(name, routing_key=name)  # type: ignore[no-untyped-call]
        with connection, connection.Consumer([queue], callbacks=[self._answer], no_ack=True, accept=["json"]):
            while not self.stopping.is_set():
                with suppress(TimeoutError):
                    connection.drain_events(timeout=0.2)

    def _answer(self, body: Any, message: Any) -> None:
        assert message.headers["task"] == TASK
        (request,) = body[0]
        for _ in range(self.times):
            reply = host_answers.answer(BundledAllocator(self.there.host(self.host)), request)
            assert reply is not None
            Replies(self.url).send(request["reply_to"], reply)


@contextmanager
def own_broker(home: Path) -> Iterator[OwnBroker]:
    """A Valkey of the test's own."""
    home.mkdir(exist_ok=True)
    with ExitStack() as stack:
        broker = OwnBroker(home, valkey.prepare(home, stack.enter_context(locked(home))))
        stack.callback(broker.stop)
        broker.start()
        yield broker


@contextmanager
def by_valkey(there: Books, url: str, hosts: Sequence[str] = (ONE, TWO), times: int = 1) -> Iterator[None]:
    """Have the hosts of a cloud answer by a real broker."""
    asked(there, BrokerQueue(url))
    for host in hosts:
        there.host(host)
    work = [Answering(there, url, host, times) for host in hosts]
    threads = [threading.Thread(target=one.run, daemon=True) for one in work]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for one in work:
            one.stopping.set()
        for thread in threads:
            thread.join(30)
