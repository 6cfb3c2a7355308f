"""Worker process: receives messages and runs tasks."""

import logging
import warnings
from collections.abc import Callable, Sequence

import structlog
from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import worker_ready

from climate import log_setup, plugin
from climate.configuration import cells
from climate.settings import Settings
from workers import celery_app, watchdog
from workers.event_messages import BROKER_IS_AWAY
from workers.tasks import WorkerContext, register

log = structlog.get_logger(__name__)


def begin(
    app: Celery,
    settings: Settings,
    hosts: celery_app.Hosts,
    queues: Sequence[str],
    watch: Callable[[Settings, Sequence[str]], None] = watchdog.begin,
) -> None:
    """Begin to watch this worker, and request the first rounds of the services whose queues it reads.

    The watch is first, because a worker without its heartbeats counts as dead. Without a broker the poller requests
    the rounds later.
    """
    watch(settings, queues)
    first: tuple[tuple[str, str, Sequence[object]], ...] = (
        (celery_app.TEND, celery_app.compute_queue(hosts.compute), ()),
        (celery_app.TEND_NETWORKS, celery_app.network_queue(hosts.network), (True,)),
    )
    try:
        for task, queue, args in first:
            if queue in queues:
                celery_app.send(app, task, args, queue, expires=60)
    except BROKER_IS_AWAY as error:
        log.warning("first rounds not requested: broker unreachable", error=type(error).__name__)


def main(settings: Settings, context: WorkerContext | None = None) -> int:
    """Run until stopped; a warm shutdown lets tasks finish. `context` runs the tasks; None means climate's own."""
    log_setup.configure(settings.log_format, settings.log_level)
    for chatty in ("celery.worker.strategy", "celery.app.trace"):  # it logs two lines for every task
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Running as root, as in a container, is left to the operator.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    app = celery_app.connect(settings.redis_url)
    register(app, context or WorkerContext(settings))
    hosts = celery_app.Hosts(settings.service_host, settings.network_host or settings.service_host)
    has_nodes = not cells.options(settings).is_api
    queues = celery_app.queues(
        sorted(plugin.load(settings.resource_plugins)), hosts, settings.worker_queues, has_nodes=has_nodes
    )
    names = [queue.name for queue in queues]
    app.conf.task_queues = queues

    def begin_when_ready(**_: object) -> None:
        begin(app, settings, hosts, names)

    worker_ready.connect(begin_when_ready, weak=False)
    worker = app.Worker(
        concurrency=settings.worker_processes,
        hostname=f"climate@{settings.service_host}",
        loglevel=settings.log_level,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)
