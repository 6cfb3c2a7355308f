"""Allocation queue in Redis or Valkey: tasks on the queues `network.<host>`, and a list per request for the answers."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

import redis
import structlog
from celery import Celery
from kombu.entity import Queue
from kombu.exceptions import KombuError

from climate.compute.cells.messaging.broker import OPTIONS, PREFIX
from climate.compute.errors import NetworkUnavailable
from climate.compute.network.allocation.messages import Answer
from climate.compute.network.allocation.queue import TASK, Request

log = structlog.get_logger(__name__)

AGAIN_SECONDS = 2.0
"""Seconds after which an unanswered request is sent again."""

REPLIES = "network.replies."
KEPT_SECONDS = 60
"""Seconds for which an unread answer is kept."""

LONGEST_BATCH = 100
"""Maximum number of answers kept for one request; more can only come from duplicated messages."""

BROKER_ERRORS = (redis.RedisError, KombuError, OSError)


@dataclass
class BrokerQueue:
    """Allocation queue over the broker. Connects on first use, hence after a fork. Threads may share it."""

    redis_url: str = field(repr=False)

    @cached_property
    def _app(self) -> Celery:
        url = self.redis_url
        broker = url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url
        app = Celery("climate-network", broker=broker, set_as_current=False)
        app.conf.update(
            broker_connection_timeout=2,
            broker_transport_options={key: value for key, value in OPTIONS.items() if key != "body_encoding"},
            event_serializer="json",
            task_create_missing_queues=False,
            task_ignore_result=True,
            task_publish_retry=False,
            task_serializer="json",
        )
        return app

    @cached_property
    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self.redis_url, socket_timeout=2 * AGAIN_SECONDS + 1, socket_connect_timeout=2)

    def call(self, requests: Sequence[Request], seconds: float, /) -> Mapping[str, Answer]:
        """Return the answers that came in time, by request id. Raise NetworkUnavailable if the broker
        is unreachable.
        """
        reply_to, deadline = f"{REPLIES}{uuid4()}", time.monotonic() + seconds
        answers: dict[str, Answer] = {}
        try:
            while (left := deadline - time.monotonic()) > 0 and len(answers) < len(requests):
                self._send([one for one in requests if one.asked.id not in answers], reply_to, left)
                self._collect(requests, answers, reply_to, min(left, AGAIN_SECONDS))
        except BROKER_ERRORS as error:
            log.warning("broker unreachable: request to network hosts not sent", error=type(error).__name__)
            raise NetworkUnavailable("The queue of the network hosts does not answer now: try again later.") from None
        return answers

    def _send(self, requests: Sequence[Request], reply_to: str, seconds: float) -> None:
        for one in requests:
            name = f"network.{one.host}"
            queue = Queue(name, routing_key=name)  # type: ignore[no-untyped-call]
            # The caller has stopped waiting by then.
            self._app.send_task(TASK, args=[one.message(reply_to)], queue=queue, expires=seconds)

    def _collect(self, requests: Sequence[Request], answers: dict[str, Answer], reply_to: str, seconds: float) -> None:
        """Read answers until the timeout, or until all have arrived."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and len(answers) < len(requests):
            result: Any = self._client.blpop([f"{PREFIX}{reply_to}"], timeout=max(left, 0.01))
            if result is None:
                return
            body = _loaded(result[1])
            for one in requests:
                answer = one.read(body)
                if answer is not None:
                    answers[one.asked.id] = answer


@dataclass
class Replies:
    """Sender of a host's answers."""

    redis_url: str = field(repr=False)

    @cached_property
    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self.redis_url, socket_timeout=3, socket_connect_timeout=2)

    def send(self, reply_to: object, body: Mapping[str, object]) -> None:
        """Send an answer to the caller's reply list; drop it if the request names no such list."""
        if not isinstance(reply_to, str) or not reply_to.startswith(REPLIES):
            log.warning("answer dropped: the request names no reply list")
            return
        key = f"{PREFIX}{reply_to}"
        with self._client.pipeline(transaction=True) as pipe:
            pipe.rpush(key, json.dumps(body))
            pipe.ltrim(key, -LONGEST_BATCH, -1)
            pipe.expire(key, KEPT_SECONDS)
            pipe.execute()


def _loaded(text: bytes) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
