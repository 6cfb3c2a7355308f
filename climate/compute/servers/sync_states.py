"""Periodic reconciliation of servers with the guests that the driver of a compute service reports.

The rows change as in Nova's sync_power_states. A server whose guest ended is shut off, and a guest that runs although
its server is shut off is stopped. After a restart of the service, running guests are found and go on.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from uuid import uuid4

import structlog

from climate.compute import one_by_one
from climate.compute.context import Compute
from climate.compute.errors import NetworkError, VirtError
from climate.compute.migrations import departed_servers, live_migration
from climate.compute.models.server import (
    ACTIVE,
    ERROR,
    PAUSED,
    RESCUED,
    RESERVE,
    RESERVED,
    REWIRE,
    SHUTOFF,
    STOP,
    SUSPENDED,
    VERIFY_RESIZE,
    WISHES,
    is_id,
)
from climate.compute.servers import volume_attachments
from climate.compute.servers.interfaces import vif_plugging
from climate.compute.store.servers import migrations
from climate.compute.store.servers import sync_states as rows
from climate.compute.store.servers.sync_states import Finding, IdleServer
from climate.compute.virt import State, Wiring
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.database.connections import reading

GONE = "The host of this server is gone."
"""Fault of a server whose node is no longer reported; users must not see the name of the host."""

MARK = "cloud-id"
"""The file that names the cloud of the guests in this home."""

CHANGE, UNPLUGGED = WISHES[REWIRE].action, "an interface of it was not plugged in"
_SET = frozenset({ACTIVE, PAUSED, SUSPENDED, SHUTOFF})
"""Statuses of which each has its interfaces up or down."""
_CONNECTED = frozenset({ACTIVE, PAUSED, SUSPENDED, SHUTOFF, RESERVED, VERIFY_RESIZE, RESCUED})
"""Statuses of servers whose interfaces are on their nodes."""

_IN_MEMORY = frozenset({State.RUNNING, State.PAUSED})

_DIED, _RUNS, _ASLEEP = "it had ended by itself", "it was running", "it was stopped in its tracks from outside"
_LACKS = "it lacked what it is started with"

# (status, driver's state) -> status, task, action and reason. Any other pair needs no change.
_OTHERWISE: Mapping[tuple[str, State], tuple[str, str | None, str, str]] = {
    (ACTIVE, State.DEAD): (SHUTOFF, None, "stop", _DIED),
    (PAUSED, State.DEAD): (SHUTOFF, None, "stop", _DIED),
    (SUSPENDED, State.DEAD): (SHUTOFF, None, "stop", _DIED),
    (ACTIVE, State.PAUSED): (PAUSED, None, "pause", _ASLEEP),
    (ACTIVE, State.SUSPENDED): (SUSPENDED, None, "suspend", _ASLEEP),
    (PAUSED, State.RUNNING): (ACTIVE, None, "unpause", _RUNS),
    (SUSPENDED, State.RUNNING): (ACTIVE, None, "resume", _RUNS),
    (SHUTOFF, State.RUNNING): (SHUTOFF, STOP, "stop", _RUNS),
    (SHUTOFF, State.PAUSED): (SHUTOFF, STOP, "stop", _RUNS),
    (RESERVED, State.DEAD): (RESERVED, RESERVE, "create", _LACKS),
    (RESERVED, State.RUNNING): (RESERVED, RESERVE, "create", _RUNS),
    (RESERVED, State.PAUSED): (RESERVED, RESERVE, "create", _RUNS),
    (RESERVED, State.SUSPENDED): (RESERVED, RESERVE, "create", _RUNS),
}

DISK_LOST = "The machine of this server failed: it was made anew from its image, and what was on its disk is lost."
"""Fault of a server that was restarted without its disk; its volumes are unchanged."""

# Whether a restarted server has kept its disk -> its fault, action and reason.
_RESTARTED: Mapping[bool, tuple[str | None, str, str]] = {
    True: (None, "reboot", "its machine failed: it was restarted with its disk"),
    False: (DISK_LOST, "rebuild", "its machine failed: it was made anew from its image"),
}

_BACK = {State.RUNNING: ACTIVE, State.PAUSED: PAUSED, State.SUSPENDED: SUSPENDED, State.DEAD: SHUTOFF}
"""Driver's state -> status of a server whose node has returned."""

log = structlog.get_logger(__name__)


def reconcile(compute: Compute) -> None:
    """Reconcile the rows of this service's servers with the guests of its driver, at its start and periodically.

    Guests of no server are removed. Nothing changes while the driver cannot list its guests.
    """
    # Read the rows first: a server that is settled there had its guest before the driver is asked.
    with reading(compute.engine) as conn:
        settled = rows.settled(conn, compute.service_host, GONE)
    try:
        names = {spec.name for spec in compute.driver.nodes()}
        details = {node: compute.driver.knows_guests(node) for node in {server.node for server in settled} & names}
        # First, because a cluster restarts the guests of a failed member before they are listed.
        compute.driver.clean_up()
        result = compute.driver.states()
    except VirtError as error:
        log.error("servers not reconciled", host=compute.service_host, reason=str(error))
        return
    steps: dict[str, Callable[[], object]] = {
        "restarts": partial(_report_restarts, compute, settled),
        "states": lambda: _write(compute, _findings(compute, settled, details, result)),
        "strays": partial(_clear_strays, compute, [server_id for server_id in result if is_id(server_id)]),
        "departed servers": partial(departed_servers.clear, compute),
        "waiting guests": partial(live_migration.drop_strays, compute),
        "mounts": lambda: _unmount_strays(
            compute, {server_id for server_id, state in result.items() if state in _IN_MEMORY}
        ),
        "interfaces": partial(_reconcile_interfaces, compute, settled),
    }
    one_by_one.steps("reconciliation of servers", steps.items())


def _findings(
    compute: Compute, settled: Sequence[IdleServer], known_nodes: Mapping[str, bool], states: Mapping[str, State]
) -> list[Finding]:
    """Return the changes of the servers that differ from their guests, as `_judge` says."""
    wired = {node for node in known_nodes if compute.driver.wiring(node) is not Wiring.NONE}
    judged = [(server, finding) for server in settled if (finding := _judge(server, known_nodes, states))]
    return [_with_interfaces_set(finding) if server.node in wired else finding for server, finding in judged]


def _reconcile_interfaces(compute: Compute, settled: Sequence[IdleServer]) -> None:
    steps: dict[str, Callable[[], object]] = {
        "unneeded interfaces": partial(vif_plugging.sweep, compute),
        "missing interfaces": partial(_request_missing_interfaces, compute, settled),
        "security groups": partial(vif_plugging.renew_filters, compute),
    }
    one_by_one.steps(
        "reconciliation of interfaces", ((name, partial(_tried, compute, step)) for name, step in steps.items())
    )


def _tried(compute: Compute, step: Callable[[], object]) -> None:
    try:
        step()
    except (NetworkError, VirtError) as error:
        log.error("interfaces of servers not reconciled", host=compute.service_host, reason=str(error))


def _report_restarts(compute: Compute, settled: Sequence[IdleServer]) -> None:
    """Record whether servers that a cluster has restarted still have their disks; others are left for later."""
    driver = compute.driver
    if not isinstance(driver, MultiNodeDriver) or not (restarts := driver.restarts()):
        return
    result = {
        server.id: Finding(server.id, server.seen, server.status, None, *_RESTARTED[restarts[server.id]])
        for server in settled
        if server.id in restarts
    }
    driver.reported(_write(compute, list(result.values())))


def _judge(server: IdleServer, known_nodes: Mapping[str, bool], states: Mapping[str, State]) -> Finding | None:
    """Return the change for a server; None if it needs none. `known_nodes`: node -> whether its guests are known."""
    state = states.get(server.id, State.DEAD)
    if state is State.PREPARED and server.status != RESERVED:
        state = State.DEAD  # the driver has no process for it
    if server.node not in known_nodes:
        return _finding(server, ERROR, None, "stop", GONE) if server.status in (ACTIVE, PAUSED) else None
    if not known_nodes[server.node]:
        return None
    if server.lost:
        return _finding(server, _BACK[state], None, "start", "its host has come back") if state in _BACK else None
    if (server.status, state) not in _OTHERWISE:
        return None
    return _finding(server, *_OTHERWISE[server.status, state])


def _finding(server: IdleServer, status: str, task: str | None, action: str, message: str) -> Finding:
    return Finding(server.id, server.seen, status, task, GONE if status == ERROR else None, action, message)


def _with_interfaces_set(finding: Finding) -> Finding:
    """Return the finding, with the interfaces set up or down as the new status demands."""
    return replace(finding, task=REWIRE) if finding.task is None and finding.status in _SET else finding


def _request_missing_interfaces(compute: Compute, settled: Sequence[IdleServer]) -> None:
    """Request the missing interfaces to be plugged in, for example after a reboot of the host."""
    lacking = vif_plugging.lacking(compute)
    servers = [server for server in settled if server.id in lacking and server.status in _CONNECTED]
    _write(compute, [_finding(server, server.status, REWIRE, CHANGE, UNPLUGGED) for server in servers])


def _write(compute: Compute, findings: Sequence[Finding]) -> set[str]:
    """Write findings, and wake the service for the requested tasks; return the servers whose findings were written."""
    if not findings:
        return set()
    by = {"request_id": f"req-{uuid4()}", "user_id": "climate"}
    with compute.engine.begin() as conn:
        changed = rows.settle(conn, findings, by, compute.now(conn))
    for finding in findings:
        if finding.id not in changed:
            continue
        log.warning("server state corrected", server=finding.id, why=finding.message, status=finding.status)
        if finding.task is not None:
            compute.cast(compute.service_host, finding.id)
    return changed


def _clear_strays(compute: Compute, guests: Sequence[str]) -> None:
    # Read the rows after the guests: a guest is created after its row, so one without a row is an orphan.
    with reading(compute.engine) as conn:
        known = migrations.whereabouts(conn, guests)
        cloud = rows.cloud(conn)
    strays = sorted(set(guests) - {one.server_id for one in known})
    # Guests of members offered to a cluster of another service are managed by that service.
    here = compute.service_host
    away = [one for one in known if one.host != here and here not in one.member_hosts]
    if cloud is None or not (strays or away):
        return
    if not is_ours(compute, cloud):
        log.error("guests of another cloud ignored", home=str(compute.home), guests=len(strays), file=MARK)
        return
    one_by_one.each("deletion of remains", strays, lambda server_id: _delete(compute, server_id))
    departed_servers.end_strays(compute, away)


def _delete(compute: Compute, server_id: str) -> None:
    with contextlib.suppress(VirtError):
        compute.driver.delete(server_id)
        log.info("remains of a server deleted", server=server_id)


def _unmount_strays(compute: Compute, guests: Set[str]) -> None:
    with reading(compute.engine) as conn:
        cloud = rows.cloud(conn)
    if cloud is None or not is_ours(compute, cloud):
        return
    try:
        volume_attachments.sweep(compute, guests)
    except OSError as error:
        log.error("mounts of volumes not reconciled", host=compute.service_host, reason=str(error))


def is_ours(compute: Compute, cloud: str) -> bool:
    """Return whether the guests of this home belong to the cloud in this database, and not to an earlier one."""
    mark = compute.home / MARK
    with contextlib.suppress(FileNotFoundError):
        return mark.read_text(encoding="ascii").strip() == cloud
    mark.write_text(f"{cloud}\n", encoding="ascii")
    return True
