"""Allocation queue: sends requests for addresses to network hosts, and returns the answers that come in time.

A queue may lose, duplicate and delay messages; the caller resends a request until it is answered.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from climate.compute.network.allocation.allocator import CANCEL, Allocation
from climate.compute.network.allocation.messages import Answer, WireError, allocation_body, answer_of

TASK = "climate.network_request"
"""Name of the task that answers a request, on the queue `network.<host>`."""


@dataclass(frozen=True, slots=True)
class Request:
    """Request to a network host."""

    host: str
    method: str
    asked: Allocation

    def message(self, reply_to: str) -> dict[str, object]:
        """Return the request as a message; the answer goes to the queue `reply_to`."""
        return {"method": self.method, "allocation": allocation_body(self.asked), "reply_to": reply_to}

    def read(self, body: object) -> Answer | None:
        """Decode the answer to this request from a message; return None if it is not one."""
        try:
            return answer_of(self.asked, body, cancelled=self.method == CANCEL)
        except WireError:
            return None


class AllocationQueue(Protocol):
    """Transport of requests to network hosts."""

    def call(self, requests: Sequence[Request], seconds: float, /) -> Mapping[str, Answer]:
        """Return the answers that came in time, by request id. Raise NetworkUnavailable if nothing can be sent."""


Answering = Callable[[object], dict[str, object] | None]
"""Function that answers the message of a request."""


@dataclass
class MemoryQueue:
    """In-memory queue for tests: each request is answered synchronously."""

    hosts: dict[str, Answering] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)
    """(host, method) of all requests."""

    def call(self, requests: Sequence[Request], seconds: float, /) -> Mapping[str, Answer]:
        """Answer the requests to known hosts."""
        answers: dict[str, Answer] = {}
        for one in requests:
            self.sent.append((one.host, one.method))
            answering = self.hosts.get(one.host)
            answer = None if answering is None else one.read(answering(one.message("memory")))
            if answer is not None:
                answers[one.asked.id] = answer
        return answers
