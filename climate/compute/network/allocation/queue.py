"""The queue of network hosts: requests for addresses go to the queue of a host, and its answers come back in time.

A queue may lose, double and delay what it carries; who asks sends a request again until the answer is there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from climate.compute.network.allocation.allocator import CANCEL, Allocation
from climate.compute.network.allocation.messages import Answer, WireError, allocation_body, answer_of

TASK = "climate.network_request"
"""Name of the task that answers a request, on the queue `network.<host>`."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a network host."""

    host: str
    method: str
    asked: Allocation

    def message(self, reply_to: str) -> dict[str, Any]:
        """The request as it is sent; the answer goes to the queue `reply_to`."""
        return {"method": self.method, "allocation": allocation_body(self.asked), "reply_to": reply_to}

    def read(self, body: Any) -> Answer | None:
        """The answer that a message holds; None: it is none to this request, or none at all."""
        try:
            return answer_of(self.asked, body, cancelled=self.method == CANCEL)
        except WireError:
            return None


class AllocationQueue(Protocol):
    """One way to reach the hosts."""

    def call(self, requests: Sequence[Request], seconds: float, /) -> Mapping[str, Answer]:
        """The answers that came in time, by the ids of the requests; NetworkUnavailable when nothing can be sent."""


Answering = Callable[[Any], dict[str, Any] | None]
"""Answers the message of a request."""


@dataclass
class MemoryQueue:
    """The queues of hosts in one process, for tests: each request is answered at once."""

    hosts: dict[str, Answering] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)
    """(host, method) of all requests."""

    def call(self, requests: Sequence[Request], seconds: float, /) -> Mapping[str, Answer]:
        """Answer what is asked of hosts that there are."""
        answers: dict[str, Answer] = {}
        for one in requests:
            self.sent.append((one.host, one.method))
            answering = self.hosts.get(one.host)
            answer = None if answering is None else one.read(answering(one.message("memory")))
            if answer is not None:
                answers[one.asked.id] = answer
        return answers
