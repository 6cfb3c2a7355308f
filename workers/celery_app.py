"""Celery application for wake-ups: a message says that there is work, and PostgreSQL holds the work.

A lost, duplicate, late or forged message changes nothing. It carries ids only, and its receiver asks the database
first.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import redis
from celery import Celery
from kombu.entity import Queue

from climate.compute.network.allocation.queue import TASK
from climate.service.events.event_shares import QUEUE, queue_of
from climate.settings import SettingError
from workers import tolerant_transport

RUN_EVENT, RUN_EVENTS = "climate.run_event", "climate.run_events"
SERVE, TEND = "climate.serve", "climate.tend"
TEND_POOLS, TEND_OUTSIDE = "climate.tend_pools", "climate.tend_outside"
TEND_NETWORKS = "climate.tend_networks"
NETWORK_REQUEST, NETWORK_MESSAGES = TASK, "climate.network_messages"
BUILD = "climate.build"
PREFIX = "climate:"
"""Prefix of all keys in the broker."""

LONGEST_TASK = 330
"""Seconds after which a task is killed; its event's claim has expired by then."""


class Hosts(NamedTuple):
    """Host names of the services that a worker runs."""

    compute: str
    network: str


def connect(redis_url: str) -> Celery:
    """Return a Celery application for sending and receiving."""
    app = Celery("climate", broker=broker_url(redis_url), amqp=tolerant_transport.Amqp, set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        broker_connection_max_retries=None,
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=2,
        broker_transport_options={
            "visibility_timeout": 2 * LONGEST_TASK,
            "socket_timeout": 3,
            "socket_connect_timeout": 1,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "global_keyprefix": PREFIX,
        },
        enable_utc=True,
        event_serializer="json",
        result_accept_content=["json"],
        task_acks_late=True,
        task_create_missing_queues=False,
        task_default_queue=QUEUE,
        task_ignore_result=True,
        task_publish_retry=False,
        task_reject_on_worker_lost=False,
        task_serializer="json",
        task_soft_time_limit=LONGEST_TASK - 15,
        task_time_limit=LONGEST_TASK,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_max_tasks_per_child=5000,
        worker_prefetch_multiplier=1,
        worker_send_task_events=False,
    )
    return app


def broker_url(redis_url: str) -> str:
    """Return the URL in the broker's notation: a Unix socket is `redis+socket://`."""
    return redis_url.replace("unix://", "redis+socket://", 1) if redis_url.startswith("unix://") else redis_url


def queues(resource_types: Sequence[str], hosts: Hosts, wanted: str = "", *, has_nodes: bool = True) -> list[Queue]:
    """Return the queues of a worker: one for each resource type, each compute service and each network service.

    `wanted` names some of them, separated by commas, so that a slow plugin can have workers of its own. An API cell has
    no nodes, and no compute service.
    """
    names = {resource_type: queue_of(resource_type) for resource_type in resource_types}
    names |= {"events": QUEUE, "network": network_queue(hosts.network)}
    names |= {"compute": compute_queue(hosts.compute)} if has_nodes else {}
    chosen = [word.strip() for word in wanted.split(",") if word.strip()] or sorted(names)
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        raise SettingError(
            f"CLIMATE_WORKER_QUEUES: no queue {', '.join(unknown)}; there are {', '.join(sorted(names))}"
        )
    return [_queue(names[word]) for word in chosen]


def _queue(name: str) -> Queue:
    return Queue(name, routing_key=name)  # type: ignore[no-untyped-call]


def key(queue: str) -> str:
    """Return the key of the broker that holds the messages of a queue."""
    return f"{PREFIX}{queue}"


def compute_queue(service_host: str) -> str:
    return f"compute.{service_host}"


def network_queue(host: str) -> str:
    return f"network.{host}"


def send(app: Celery, task: str, args: Sequence[object], queue: str, **options: object) -> None:
    """Send a wake-up. Raise kombu's OperationalError when the broker is away; the poller sends it again."""
    app.send_task(task, args=list(args), queue=_queue(queue), **options)


def waiting(redis_url: str, patience: float = 1.0) -> Callable[[str], int]:
    """Return a function that counts the messages of a queue, within `patience` seconds or with a RedisError."""
    client = redis.Redis.from_url(redis_url, socket_timeout=patience, socket_connect_timeout=patience)
    return lambda queue: int(client.llen(key(queue)))
