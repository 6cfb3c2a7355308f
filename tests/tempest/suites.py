"""Suites of tests: names that `make test-tempest` accepts, and the tests that each has."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

FIXTURE = re.compile(r"^(setUpClass|tearDownClass) \((.*)\)$")
"""Name under which testtools reports the failure of a whole class."""
ATTRIBUTES = re.compile(r"\[.*\]$")


@dataclass(frozen=True)
class Suite:
    """Tests of a module path, of which each starts with one of the prefixes."""

    prefixes: tuple[str, ...]
    without: tuple[str, ...] = ()
    """Prefixes of tests that need a feature which climate does not have, and for which Tempest has no option."""
    is_serial: bool = False
    """True if the tests share a host or ranges of addresses, so that two at once disturb each other."""
    needs_networks: bool = False
    """True if the tests sign in to servers, which needs real networks."""

    @property
    def regex(self) -> str:
        """Return the regular expression that selects the tests in stestr."""
        without = "".join(f"(?!{re.escape(prefix)})" for prefix in self.without)
        return "|".join(f"^{without}{re.escape(prefix)}" for prefix in self.prefixes)

    def has(self, test: str) -> bool:
        """Return whether a test, or the class of a failed fixture, belongs to the suite."""
        name = plain(test)
        return name.startswith(self.prefixes) and not name.startswith(self.without)


OF_IPV6_SUBNETS = (
    "tempest.api.network.admin.test_ports.PortsAdminExtendedAttrsIpV6TestJSON",
    "tempest.api.network.test_dhcp_ipv6.",
    "tempest.api.network.test_networks.BulkNetworkOpsIpV6Test",
    "tempest.api.network.test_networks.NetworksIpV6Test",
    "tempest.api.network.test_ports.PortsIpV6TestJSON",
)
"""Tests of subnets with IPv6 ranges. Tempest's option for these would skip those of IPv6 rules of groups too."""

SUITES = {
    "blazar": Suite(("blazar_tempest_plugin.",), is_serial=True),
    "identity": Suite(("tempest.api.identity.",)),
    "compute": Suite(("tempest.api.compute.",)),
    "image": Suite(("tempest.api.image.",)),
    "network": Suite(("tempest.api.network.",), OF_IPV6_SUBNETS, is_serial=True),
    "scenario": Suite(("tempest.scenario.", "tempest.serial_tests.scenario."), is_serial=True, needs_networks=True),
}
"""Suites in the order in which they run."""


def plain(test: str) -> str:
    """Return the path of a test without its attributes, or of the class whose fixture failed."""
    fixture = FIXTURE.match(test)
    return fixture[2] if fixture else ATTRIBUTES.sub("", test)


def chosen(names: Sequence[str]) -> dict[str, Suite]:
    """Return the named suites, or all; raise ValueError for a name that is not a suite."""
    if unknown := sorted(set(names) - SUITES.keys()):
        raise ValueError(f"unknown suite {', '.join(unknown)}: use {', '.join(SUITES)}")
    return {name: suite for name, suite in SUITES.items() if not names or name in names}
