"""The conformance tests of the cloud interface, on a real OpenStack.

All that need nothing but a scene are run: those with a further fixture look into a cloud of climate.
"""

import inspect
from types import ModuleType

import pytest

from tests.conformance import test_host_moves, test_host_pools, test_planned_pools, test_servers, test_shared_capacity

MODULES = (test_host_pools, test_host_moves, test_planned_pools, test_servers, test_shared_capacity)
OTHERS = {"fake", "bundled", "openstack", "request", "place", "there"}

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),  # of the SDK
]


def _chosen(module: ModuleType) -> dict[str, object]:
    """Return the tests of a module, with its name in theirs, since some are named alike."""
    found = {}
    for name, test in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(test):
            wanted = set(inspect.signature(test).parameters)
            if wanted & {"scene", "slotted"} and not wanted & OTHERS:
                found[f"{module.__name__.rpartition('.')[2]}_{name.removeprefix('test_')}"] = test
    return found


for _module in MODULES:
    globals().update(_chosen(_module))
