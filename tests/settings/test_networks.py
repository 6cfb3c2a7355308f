"""Settings of networks: their limits and words."""

import pytest

from climate.settings import SettingError, Settings


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("USE_IPV6", "yes", "one of true, false"),
        ("NETWORK_MANAGER", "bridge", "one of flat, flat_dhcp, vlan"),
        ("VLAN_START", "4095", "between 1 and 4094"),
        ("DHCP_LEASE_TIME", "119", "between 120"),
    ],
)
def test_values_out_of_their_limits_are_refused(variable: str, text: str, says: str) -> None:
    with pytest.raises(SettingError, match=f"CLIMATE_{variable}='{text}' .*{says}"):
        Settings.from_env({f"CLIMATE_{variable}": text})
