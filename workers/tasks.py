"""Celery tasks: a few lines each, over the operations of the engine and of the bundled cloud."""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

import structlog
from celery import Celery

from climate import bootstrap
from climate.bootstrap import Deployment
from climate.compute import one_by_one
from climate.compute.images import orphan_files
from climate.compute.migrations import departed_servers, host_drain
from climate.compute.network.allocation import allocator, host_answers
from climate.compute.network.allocation.allocator import NetworkAllocator
from climate.compute.network.allocation.broker_queue import Replies
from climate.compute.network.service import network_service
from climate.compute.nodes import services
from climate.compute.nodes.services import Report
from climate.compute.placement import decisions
from climate.compute.servers import resize, sync_states
from climate.compute.servers.tasks import task_worker
from climate.compute.zones import service_reports
from climate.compute.zones.builds import provisioning
from climate.compute.zones.service_reports import LastReport
from climate.service.disk_space import DiskWatch
from climate.service.events import event_batches, events
from climate.settings import Settings
from climate.store import db_errors
from climate.store.leases.event_claims import Message
from workers import rounds
from workers.celery_app import (
    BUILD,
    NETWORK_MESSAGES,
    NETWORK_REQUEST,
    RUN_EVENT,
    RUN_EVENTS,
    SERVE,
    TEND,
    TEND_NETWORKS,
    TEND_OUTSIDE,
    TEND_POOLS,
)
from workers.rounds import RoundLock

log = structlog.get_logger(__name__)


@dataclass
class WorkerContext:
    """Objects of one worker process, built on first use, hence after the fork."""

    settings: Settings

    @cached_property
    def deployment(self) -> Deployment:
        return bootstrap.build(self.settings, application="climate-worker", pool_size=3)

    @cached_property
    def disk(self) -> DiskWatch:
        return DiskWatch(self.settings.home)

    @cached_property
    def reported(self) -> Report:
        return Report()

    @cached_property
    def compute_reported(self) -> LastReport:
        return LastReport()

    @cached_property
    def name(self) -> str:
        return f"worker:{socket.gethostname()}:{os.getpid()}"

    def run_event(self, event_id: str, token: int) -> None:
        events.run(self.deployment.climate, UUID(event_id), int(token), self.name)

    def run_events(self, claims: Sequence[tuple[str, int]]) -> None:
        """Run several events together."""
        messages = [Message(UUID(event_id), int(token)) for event_id, token in claims]
        event_batches.run(self.deployment.climate, messages, self.name)

    def serve(self, server_id: str) -> None:
        if services.ready(self.deployment.compute):
            task_worker.run_task(self.deployment.compute, str(UUID(server_id)))

    def build(self, build_id: str) -> None:
        """Continue a build over zones."""
        provisioning.run(self.deployment.compute, str(UUID(build_id)))

    def tend(self) -> None:
        """Report the nodes of this compute service, and reconcile the states of its servers."""
        compute = self.deployment.compute
        chores: dict[str, Callable[[], object]] = {
            "report of nodes": lambda: services.refresh(compute, self.reported),
            "report to zones": lambda: service_reports.report_compute(compute, self.compute_reported),
            "usage of nodes": lambda: services.audit(compute),
            "states of servers": lambda: sync_states.reconcile(compute),
            "drain": lambda: host_drain.run_round(compute),
            "confirmations": lambda: resize.confirm_waiting(compute),
            "decisions": lambda: decisions.forget(compute),
            "old migrations": lambda: departed_servers.forget(compute),
            "image files": lambda: orphan_files.sweep(compute),
        }
        one_by_one.steps("chores of the compute service", chores.items())

    def _alone(self, lock: str, of: str = "") -> AbstractContextManager[RoundLock]:
        return rounds.alone(self.deployment.climate.engine, lock, of)

    def tend_networks(self, thorough: bool = False) -> None:
        """Reconcile the networks of this network service, unless another process of it does; that one repeats its
        check.
        """
        with rounds.alone(
            self.deployment.climate.engine, rounds.NETWORKS_LOCK, self.deployment.compute.network_host
        ) as mine:
            if mine:
                one_by_one.steps("chores of the network service", self._network_chores(thorough=thorough))

    def _network_chores(self, *, thorough: bool) -> Iterator[tuple[str, Callable[[], object]]]:
        compute = self.deployment.compute
        yield "networks", lambda: network_service.run_round(compute, thorough=thorough)
        if thorough and self.settings.network_allocation != "direct":
            yield "addresses", lambda: host_answers.reconcile(compute, self.allocator)
        if thorough:
            yield "report to zones", lambda: service_reports.report_network(compute)

    @cached_property
    def allocator(self) -> NetworkAllocator:
        return allocator.load(self.settings.network_allocator, self.deployment.compute)

    @cached_property
    def replies(self) -> Replies:
        return Replies(self.settings.redis_url)

    def answer_network(self, message: object) -> None:
        """Answer a request for addresses of this network service."""
        reply = host_answers.answer(self.allocator, message)
        if reply is not None and isinstance(message, dict):
            self.replies.send(message.get("reply_to"), reply)

    def process_lease_messages(self) -> None:
        """Process lease messages of this network service's allocator, unless another process of it does."""
        with rounds.alone(
            self.deployment.climate.engine, rounds.MESSAGES_LOCK, self.deployment.compute.network_host
        ) as mine:
            if mine:
                host_answers.deliver(self.deployment.compute, self.allocator)

    def tend_pools(self) -> None:
        """Run the rounds over the hosts of all pools, unless another worker does; the next ones follow soon."""
        rounds.run_each(self.deployment.climate, rounds.OWN_ROUNDS)
        with self._alone(rounds.ROUNDS_LOCK) as mine:
            if mine:
                climate = self.deployment.climate
                rounds.run_each(climate, rounds.due(climate), may_go_on=mine.__bool__)

    def tend_outside(self) -> None:
        """Run the rounds over external systems (power supplies, receivers of notifications), unless another worker
        does.
        """
        with self._alone(rounds.OUTSIDE_LOCK) as mine:
            if mine:
                rounds.run_each(self.deployment.climate, rounds.OUTSIDE_ROUNDS, mine.__bool__)


def register(app: Celery, context: WorkerContext) -> None:
    """Register the tasks with the application. Errors are only logged, because the database keeps the pending work."""
    tasks: dict[str, Callable[..., None]] = {
        RUN_EVENT: context.run_event,
        RUN_EVENTS: context.run_events,
        SERVE: context.serve,
        BUILD: context.build,
        TEND: context.tend,
        TEND_NETWORKS: context.tend_networks,
        NETWORK_REQUEST: context.answer_network,
        NETWORK_MESSAGES: context.process_lease_messages,
        TEND_POOLS: context.tend_pools,
        TEND_OUTSIDE: context.tend_outside,
    }
    for name, work in tasks.items():
        app.task(_guarded(name, work, context.disk), name=name)


def _guarded(name: str, work: Callable[..., None], disk: DiskWatch) -> Callable[..., None]:
    def task(*args: object) -> None:
        try:
            work(*args)
        except Exception as error:
            if db_errors.disk_full(error):
                disk.note("the disk of the database")
                return
            log.exception("task failed", task=name, args=[str(arg)[:60] for arg in args])

    task.__name__ = name.rpartition(".")[2]
    return task
