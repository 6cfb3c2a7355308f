"""The lab of a test module: hosts, a switch and a world outside, new for it, and nothing left of it afterwards."""

from collections.abc import Iterator

import pytest

from climate.sandbox import topology
from climate.sandbox.topology import Lab
from tests.netlab import leftovers
from tests.netlab.bridge_bench import until
from tests.netlab.sites import make_site

__all__ = ["lab", "make_site"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """The usual lab.  The module has to put everything back that it adds to it; what it leaves fails its last test."""
    lab = topology.described()
    topology.up(lab)
    for host in lab.hosts:
        until(lambda host=host: leftovers.at_rest(host), f"rest on {host}")  # type: ignore[misc]
    before = leftovers.seen()
    yield lab
    left = leftovers.left_since(before)
    leftovers.end_processes(left)
    topology.down(lab)
    assert not left, f"the module has left behind: {', '.join(map(str, sorted(left)))}"
