"""Log lines of scheduler decisions, in Nova's format. They cost nothing at log levels that drop them."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts

log = logging.getLogger("climate.compute.scheduler")

Stage = tuple[str, int, int, Sequence[tuple[str, str]]]
"""(name of a filter, hosts before it, hosts after it, the first of these at debug level)"""

SHOWN = 100
"""Maximum number of hosts in one line."""


def debugging() -> bool:
    return log.isEnabledFor(logging.DEBUG)


def host(hosts: Hosts, index: int) -> str:
    """Return a host in the format of Nova's HostState. Sizes: MB."""
    names = f"({hosts.service_hosts[index]}, {hosts.names[index]})"
    free = f"ram:{_whole(hosts.free_ram_mb[index])} disk:{_whole(hosts.free_disk_mb[index])}"
    return f"{names} {free} io_ops:{_whole(hosts.io_ops[index])} instances:{_whole(hosts.servers[index])}"


def _whole(value: float) -> str:
    return f"{value:.0f}"


def weighed(hosts: Hosts, index: int, weight: float) -> str:
    return f"WeighedHost [host: {host(hosts, index)}, weight: {weight}]"


def _some(texts: Sequence[str], count: int) -> str:
    more = [f"and {count - len(texts)} more"] if count > len(texts) else []
    return f"[{', '.join([*texts, *more])}]"


def starting(count: int) -> None:
    log.debug("Starting with %d host(s)", count)


def took_out(hosts: Hosts, index: int, why: str) -> None:
    if debugging():
        log.debug("%s %s", host(hosts, index), why)


def remaining(hosts: Hosts, among: NDArray[Any]) -> list[tuple[str, str]]:
    """Return the first (host, node) pairs of those rows, or under that mask, at debug level."""
    if not debugging():
        return []
    return list(zip(hosts.service_hosts[among][:SHOWN], hosts.names[among][:SHOWN], strict=True))


def returned(name: str, count: int) -> None:
    if count:
        log.debug("Filter %s returned %d host(s)", name, count)
    else:
        log.info("Filter %s returned 0 hosts", name)


def all_removed(spec: Spec, number: int, stages: Sequence[Stage]) -> None:
    """Log how many hosts each filter removed for server `number` of a build, and at debug level which remained."""
    _removed(log.info, spec, number, [f"{name}: (start: {start}, end: {end})" for name, start, end, _ in stages])
    if debugging():
        _removed(log.debug, spec, number, [(name, list(left) or None) for name, _, _, left in stages])


def _removed(say: Callable[..., None], spec: Spec, number: int, results: Sequence[object]) -> None:
    server = spec.server_ids[number] if number < len(spec.server_ids) else ""
    say(
        "Filtering removed all hosts for the request with reservation ID '%s' and instance ID '%s'. Filter results: %s",
        spec.build_id,
        server,
        results,
    )


def too_few(number: int, count: int) -> None:
    log.debug("There are %d hosts available but %d instances requested to build.", number, count)


def filtered(hosts: Hosts, first: Sequence[int], count: int) -> None:
    """Log the first hosts of the `count` that passed."""
    if debugging():
        log.debug("Filtered %s", _some([host(hosts, index) for index in first], count))


def weighed_all(hosts: Hosts, best: Sequence[tuple[int, float]], count: int) -> None:
    """Log the best hosts of `count`, best first."""
    if debugging():
        log.debug("Weighed %s", _some([weighed(hosts, index, weight) for index, weight in best], count))


def selected(hosts: Hosts, index: int, weight: float) -> None:
    if debugging():
        log.debug("Selected host: %s", weighed(hosts, index, weight))


def ignoring(names: Sequence[str]) -> None:
    if names:
        log.info("Host filter ignoring hosts: %s", ", ".join(names))


def forcing(kind: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Log the hosts that a request forces; `kind`: hosts or nodes."""
    available = ", ".join(dict.fromkeys(known))
    if names and available:
        log.info("Host filter forcing available %s to %s", kind, available)
    elif names:
        log.info("No hosts matched due to not matching 'force_%s' value of '%s'", kind, ", ".join(names))
