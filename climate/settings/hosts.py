"""Settings of reserved hosts."""

from dataclasses import dataclass

from climate.settings.setting_fields import setting


@dataclass(frozen=True)
class HostSettings:
    """Cleaning, recycling, pools, power and failures of hosts."""

    cleaning_time: int = setting(0, "Seconds that a host stays free after each lease, for cleaning.")
    cleaning_hook: str = setting("", "Command that cleans a host after a lease; its last argument is the host's name.")
    cleaning_hook_seconds: int = setting(
        600, "Timeout of a run of CLIMATE_CLEANING_HOOK, in seconds; the host fails after three failed runs.", 1
    )
    host_on_end: str = setting(
        "terminate",
        "Default action for servers on reserved hosts when a lease ends, if neither lease nor pool sets one.",
        words=("terminate", "recycle", "release"),
    )
    host_on_end_choices: str = setting("terminate, recycle, release", "End actions that owners may choose, by commas.")
    lease_hosts: str = setting(
        "properties",
        "Knowledge of owners about the hosts of their leases: names, names with public properties, or nothing.",
        words=("names", "properties", "nothing"),
    )
    randomize_host_selection: bool = setting(
        False, "Choose hosts of physical:host at random; when false, those with the best fitting free time."
    )
    max_grace_period: int = setting(86400, "Longest grace period of a lease, in seconds.")
    grace_period: int = setting(
        0, "Default grace period in seconds: servers on reserved hosts keep running so long after the end."
    )
    recycle_deadline: str = setting(
        "terminate",
        "Action for servers on a recycling host whose next lease starts: terminate them, or move them to other hosts.",
        words=("terminate", "move"),
    )
    recycle_lead: int = setting(
        120, "Seconds before the next lease of a recycling host at which its servers are deleted or moved."
    )
    preemption_notice: int = setting(
        120,
        "Seconds between a warning and the time at which hosts are taken from a preemptible lease or for a sub-lease.",
        0,
        86400,
    )
    pool_target: int = setting(0, "Hosts to which the reservation pool is filled up after a release; 0: it is not.")
    pool_horizon: int = setting(
        0,
        "Seconds ahead whose allocations set the size of the reservation pool; 0: allocations do not change it.",
        0,
        31622400,
    )
    pool_spare: int = setting(
        2, "Minimum of hosts in the reservation pool beyond those allocated within CLIMATE_POOL_HORIZON.", 0, 100_000
    )
    pool_margin: int = setting(
        25,
        "The same minimum in percent of the allocated hosts; the greater of CLIMATE_POOL_SPARE and this applies.",
        0,
        1000,
    )
    pool_slack: int = setting(
        2, "Hosts beyond the wanted size of the reservation pool before any is released.", 0, 100_000
    )
    pool_dwell: int = setting(
        3600, "Seconds that a host is idle in the reservation pool before it is released.", 0, 31622400
    )
    idle_warning: int = setting(
        0, "Seconds without a running server on the hosts of a lease before each notice to its owner; 0: none.", 0
    )
    pool_idle: str = setting(
        "keep",
        "Action for a lease that is idle after two notices: keep it, or release it.",
        words=("keep", "release"),
    )
    pool_drain: bool = setting(True, "Drain hosts with servers for the reservation pool if too few hosts are empty.")
    pool_move_servers: bool = setting(False, "Move servers away from draining hosts instead of waiting for their end.")
    idle_off_after: int = setting(
        0, "Seconds after which idle hosts of the reservation pool are powered off; 0: never."
    )
    power_on_lead: int = setting(
        900,
        "Seconds before its lease at which a host is powered on; what exceeds CLIMATE_POWER_TIMEOUT is time "
        "for healing.",
    )
    warm_hosts: int = setting(1, "Idle hosts that stay powered on for leases that start at once.")
    least_on: int = setting(600, "Minimum time that a host stays on, in seconds.")
    least_off: int = setting(900, "Minimum time that a host stays off, in seconds.")
    power_timeout: int = setting(600, "Seconds in which a host must be up after power on; otherwise it has failed.", 1)
    healing_seconds: int = setting(
        3600, "Leases that start within so many seconds get another host when theirs fails; 0: all leases."
    )
    failed_after: int = setting(
        60, "Seconds for which a host must be unhealthy before it fails, and healthy before it is used again."
    )
    evacuate_failed_hosts: bool = setting(False, "Power off failed hosts, and rebuild their servers on other hosts.")
    evacuate_after: int = setting(300, "Seconds between the failure of a host and its evacuation.")
