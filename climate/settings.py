"""All settings of a process.  No other module reads the environment."""

import os
import socket
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Self


class SettingError(Exception):
    """Raised for an invalid value of a setting."""


FLAG = ("true", "false")


def _setting(default: Any, says: str, least: float = 0, most: float = 10**9, words: tuple[str, ...] = ()) -> Any:
    """Return a field; numbers lie between `least` and `most`, texts are one of `words` if there are any."""
    words = FLAG if isinstance(default, bool) else words
    return field(default=default, metadata={"says": says, "least": least, "most": most, "words": words})


def _secret(says: str) -> Any:
    """Return the field of a secret, which is hidden in the text form."""
    return field(default="", repr=False, metadata={"says": says, "least": 0, "most": 0, "words": ()})


@dataclass(frozen=True, slots=True)
class Settings:
    """One field per setting; the variable is CLIMATE_ and the field's name in capitals."""

    home: Path = _setting(Path("var"), "Where everything that changes is kept: stores, servers, logs, clouds.yaml.")
    host: str = _setting("127.0.0.1", "Address the web process listens on.")
    port: int = _setting(8000, "Port that serves all APIs.", 1, 65535)
    database_url: str = _setting("", "PostgreSQL 15 or newer; when empty, `climate up` starts an own one.")
    redis_url: str = _setting("", "Redis 7 or Valkey; when empty, `climate up` starts an own one.")
    pg_bin: str = _setting("", "Folder with the programs of PostgreSQL for the own one, before all other places.")
    public_url: str = _setting("", "Base of the URLs in the service catalog; when empty, http://HOST:PORT.")
    cleaning_time: int = _setting(0, "Seconds that a host is kept free and cleaned after each lease.")
    cleaning_hook: str = _setting("", "Command that cleans a host after a lease; the host's name is added to it.")
    cleaning_hook_seconds: int = _setting(
        600, "Seconds after which a run of that command is given up; the host has failed after three.", 1
    )
    host_on_end: str = _setting(
        "terminate",
        "What becomes of servers on lent hosts at the end, where neither lease nor pool say.",
        words=("terminate", "recycle", "release"),
    )
    host_on_end_choices: str = _setting(
        "terminate, recycle, release", "What of these the owners of leases may choose themselves, by commas."
    )
    randomize_host_selection: bool = _setting(
        False, "Choose hosts of physical:host by chance; else those whose free time fits best."
    )
    max_grace_period: int = _setting(86400, "Longest grace period that a lease may ask for, in seconds.")
    grace_period: int = _setting(0, "Seconds that servers on lent hosts go on after the end, where nobody says.")
    recycle_deadline: str = _setting(
        "terminate",
        "Recycling hosts whose next lease starts: terminate their servers, or move them to other hosts.",
        words=("terminate", "move"),
    )
    recycle_lead: int = _setting(
        120, "Seconds before its next lease at which servers on a recycling host are deleted or moved away."
    )
    pool_target: int = _setting(0, "Hosts that the reservation pool is topped up to after a release; 0: it is not.")
    pool_horizon: int = _setting(
        0, "Seconds ahead for which the reservation pool follows what is promised of it; 0: it does not.", 0, 31622400
    )
    pool_spare: int = _setting(2, "Least hosts that it has then beyond what is promised.", 0, 100_000)
    pool_margin: int = _setting(25, "The same in percent of what is promised; the greater of the two holds.", 0, 1000)
    pool_slack: int = _setting(2, "Hosts that it may have beyond that before any is given back.", 0, 100_000)
    pool_dwell: int = _setting(3600, "Seconds that a host is idle in it before it is given back.", 0, 31622400)
    pool_drain: bool = _setting(True, "Whether hosts with servers are drained for it where too few are empty.")
    pool_move_servers: bool = _setting(False, "Whether servers on draining hosts are moved away, not waited for.")
    idle_off_after: int = _setting(
        0, "Seconds after which idle hosts of the reservation pool are switched off; 0: they never are."
    )
    power_on_lead: int = _setting(
        900, "Seconds before its lease at which a host is switched on; beyond CLIMATE_POWER_TIMEOUT, time to heal it."
    )
    warm_hosts: int = _setting(1, "Idle hosts that are kept on for leases that start at once.")
    least_on: int = _setting(600, "Least seconds that a host stays on.")
    least_off: int = _setting(900, "Least seconds that a host stays off.")
    power_timeout: int = _setting(600, "Seconds in which a host must be up, or it has failed.", 1)
    healing_seconds: int = _setting(
        3600, "Leases that start within so many seconds get another host when theirs fails; 0: all leases."
    )
    failed_after: int = _setting(
        60, "Seconds for which a host must be unwell before it has failed, and well before it is used again."
    )
    evacuate_failed_hosts: bool = _setting(
        False, "Whether failed hosts are switched off, and their servers made anew on other hosts."
    )
    evacuate_after: int = _setting(300, "Seconds for which a host has failed before that.")
    limit_period_days: int = _setting(30, "Days over which the host-hours of a project are summed up.", 1, 3650)
    notify_url: str = _setting("", "Where notices are posted to, as Standard Webhooks; when empty, nowhere.")
    notify_secret: str = _secret("What they are signed with: whsec_ and 24 to 64 bytes in base64.")
    notify_private: bool = _setting(False, "Whether that may be this machine or a private network.")
    notify_seconds: float = _setting(10.0, "Longest time that posting one may take, in seconds.", 0.1, 30)
    notify_tries: int = _setting(15, "How often posting one is tried, over some hours.", 1, 100)
    notice_days: int = _setting(90, "Days for which notices are kept.", 1, 3650)
    archive_dir: str = _setting(
        "", "Folder of the archives of leases, one for all machines; when empty, `archives` below CLIMATE_HOME."
    )
    enforcement_url: str = _setting(
        "", "Service that is asked before a lease is made or changed, and told of its end; when empty, none."
    )
    enforcement_token: str = _secret("Sent to it as X-Auth-Token.")
    enforcement_seconds: float = _setting(5.0, "Longest time that its answer may take, in seconds.", 0.1, 30)
    enforcement_open: bool = _setting(False, "Whether leases are granted when it gives no usable answer.")
    minutes_before_end: int = _setting(
        60, "Default distance of before_end_lease from the end, in minutes; 0: no event."
    )
    resource_plugins: str = _setting(
        "", "Resource types whose plugins are loaded, separated by commas; when empty, all that are installed."
    )
    max_lease_days: int = _setting(730, "Longest lease, in days.", 1, 36500)
    hold_seconds: int = _setting(
        600, "Longest time that a lease can be held for, in seconds; 0: holds are refused.", 0, 86400
    )
    holds_per_project: int = _setting(
        10,
        "Leases that a project may hold at once, where its limits do not say; -1: any number. Admins are free of it.",
        -1,
    )
    on_end: str = _setting("create_image, delete", "Default actions at the end of a virtual:instance reservation.")
    poll_seconds: float = _setting(1.0, "Longest sleep of the poller, in seconds.", 0.05, 60)
    pools_seconds: float = _setting(
        5.0,
        "Longest time between two rounds after hosts that recycle, are cleaned or failed, in seconds.",
        0.05,
        60,
    )
    claims_ahead: int = _setting(
        100, "Events that are claimed and not begun, for each queue of the workers; the others wait for their turns.", 2
    )
    claim_seconds: float = _setting(
        15.0, "A worker that has not been heard of for so long has lost its event, in seconds.", 1
    )
    step_seconds: float = _setting(300.0, "Longest time that one run of an event may take, in seconds.", 1)
    wait_seconds: float = _setting(600.0, "Longest time that an event waits for the cloud, in seconds.", 1)
    policy_file: str = _setting(
        "", "File of rules of who may do what, in YAML or JSON; a path below CLIMATE_HOME, or from /; when empty, none."
    )
    token_seconds: int = _setting(3600, "Life of a token, in seconds.", 1)
    compute_host: str = _setting("", "Name of the compute service that this worker is; when empty, the machine's name.")
    scheduler: str = _setting("filter", "Scheduler that chooses nodes: a bundled one or that of another package.")
    multi_schedulers: str = _setting(
        "",
        "kind=scheduler by commas for multi; kinds: boot, reserve, resize, unshelve, migrate. Else: filter.",
    )
    scheduler_filters: str = _setting(
        "", "Filters in the order in which they run, by commas; when empty, the default ones."
    )
    scheduler_core_filter: bool = _setting(
        False, "Add CoreFilter to the default filters: CLIMATE_CPU_ALLOCATION_RATIO is held then."
    )
    scheduler_weighers: str = _setting("", "Weighers, by commas; when empty, all of the bundled ones.")
    reservation_id_format: str = _setting(
        "short",
        "Ids of requests for servers: short, r- and eight letters or digits, or uuid.",
        words=("short", "uuid"),
    )
    scheduler_notices: bool = _setting(
        False, "Give administrators a notice at the start and the end of each selection of nodes."
    )
    scheduler_host_subset_size: int = _setting(1, "A server goes to one of so many best nodes, by chance.", 1)
    scheduler_max_attempts: int = _setting(3, "Nodes on which making a server is tried.", 1, 100)
    ram_allocation_ratio: float = _setting(1.5, "How often a node's memory may be promised.", 0.01, 1000)
    cpu_allocation_ratio: float = _setting(16.0, "How often a node's CPUs may be promised.", 0.01, 1000)
    disk_allocation_ratio: float = _setting(1.0, "How often a node's disk may be promised.", 0.01, 1000)
    reserved_host_memory_mb: int = _setting(512, "Memory that a node keeps for itself, in MB.")
    reserved_host_disk_mb: int = _setting(0, "Disk that a node keeps for itself, in MB.")
    ram_weight_multiplier: float = _setting(
        1.0, "Above zero spreads servers by memory, below it stacks them.", -(10**6)
    )
    io_ops_weight_multiplier: float = _setting(-1.0, "Below zero prefers nodes that are not at work.", -(10**6))
    metrics_weight_multiplier: float = _setting(1.0, "Weight of the metrics.", -(10**6))
    soft_affinity_weight_multiplier: float = _setting(
        10.0, "Weight of the servers of a soft-affinity group that are on a node already.", -(10**6)
    )
    soft_anti_affinity_weight_multiplier: float = _setting(
        10.0, "Weight of their absence, for a soft-anti-affinity group.", -(10**6)
    )
    metrics_weight_setting: str = _setting("", "name=ratio of the metrics that count, by commas.")
    metrics_required: bool = _setting(True, "Whether a node without one of these metrics is an error.")
    metrics_weight_of_unavailable: float = _setting(-10000.0, "Weight of a node that lacks a metric.", -(10**9))
    max_io_ops_per_host: int = _setting(8, "IoOpsFilter: servers being built or moved on one node.", 1)
    max_instances_per_host: int = _setting(50, "NumInstancesFilter: servers on one node.", 1)
    isolated_images: str = _setting("", "IsolatedHostsFilter: ids of images, by commas.")
    isolated_hosts: str = _setting("", "IsolatedHostsFilter: service hosts, by commas.")
    restrict_isolated_hosts_to_isolated_images: bool = _setting(
        True, "Whether isolated hosts take isolated images only."
    )
    aggregate_image_properties_isolation_namespace: str = _setting(
        "", "AggregateImagePropertiesIsolation: only keys of aggregates with this prefix count; when empty, all."
    )
    aggregate_image_properties_isolation_separator: str = _setting(".", "What stands between that prefix and the key.")
    default_availability_zone: str = _setting("nova", "Zone of the nodes that name none.")
    default_schedule_zone: str = _setting("", "Zone of new servers that are asked for without one; when empty, any.")
    scheduler_host_filters: str = _setting(
        "", "Host filters that requests may name, by commas; when empty, the bundled ones."
    )
    default_host_filter: str = _setting("AllHostsFilter", "Host filter of the schedulers least_cost and host_filter.")
    least_cost_functions: str = _setting(
        "noop_cost_fn=1", "name=weight of the cost functions of the scheduler least_cost, by commas."
    )
    attestation_url: str = _setting(
        "", "Attestation service of TrustedFilter, which is asked by POST to its PollHosts; when empty, none."
    )
    attestation_auth_blob: str = _secret("Sent to it as x-auth-blob.")
    attestation_auth_timeout: int = _setting(60, "Seconds for which what it says of a host is kept.", 1)
    attestation_seconds: float = _setting(5.0, "Longest time that its answer may take, in seconds.", 0.1, 30)
    pci_aliases: str = _setting(
        "", "alias=vendor:product of the PCI devices that flavors can ask for, by commas: gpu=10de:20b0."
    )
    simple_max_cores: int = _setting(16, "Cores that the scheduler simple puts on a node.", 1)
    service_down_seconds: int = _setting(60, "A compute service that was not heard of for so long is down.", 1)
    migrate_from: str = _setting(
        "", "Pools, by commas, whose hosts move their servers away: draining, recycling, maintenance. Empty: they wait."
    )
    resize_confirm_window: int = _setting(
        0, "A server that was migrated or resized is confirmed after so many seconds; 0: when its owner does it."
    )
    nodes_file: str = _setting("nodes.yaml", "Nodes of this compute service; a path below CLIMATE_HOME, or from /.")
    qemu_accel: str = _setting(
        "auto",
        "What runs virtual machines: kvm, tcg, or auto: kvm where the CPU offers it.",
        words=("auto", "kvm", "tcg"),
    )
    migration_address: str = _setting(
        "", "IP address at which this compute service takes running servers of other machines; empty: it takes none."
    )
    migration_ports: str = _setting("49152-49215", "TCP ports for that; each server that arrives takes two of them.")
    migration_seconds: int = _setting(800, "Seconds after which a live migration is given up.", 1)
    cloud: str = _setting(
        "bundled", "The cloud whose hosts are lent: bundled or openstack.", words=("bundled", "openstack")
    )
    openstack_cloud: str = _setting("", "Entry of clouds.yaml for CLIMATE_CLOUD=openstack.")
    openstack_config: str = _setting("", "Path of that clouds.yaml.")
    openstack_blazar_filter: bool = _setting(
        False, "Whether that cloud has blazar-nova's BlazarFilter: lent pools get the zone and the keys that it reads."
    )
    network_manager: str = _setting(
        "flat",
        "Of new networks: flat keeps books only, flat_dhcp serves one bridge, vlan one for each project.",
        words=("flat", "flat_dhcp", "vlan"),
    )
    network_driver: str = _setting(
        "recording",
        "recording: networks are written down only; linux: they are made on this machine.",
        words=("recording", "linux"),
    )
    network_host: str = _setting("", "Name of the network service that this worker is; when empty, as compute.")
    network_netns: str = _setting("", "Network namespace in which that one serves; when empty, the machine's own.")
    network_seconds: float = _setting(3.0, "Time between two beats of the network services, in seconds.", 0.1, 60)
    network_placement: str = _setting(
        "scheduler",
        "Host that claims a network: the first to ask, one with the fewest networks, or as the scheduler has it: "
        "fewest under simple, else first.",
        words=("scheduler", "first", "fewest"),
    )
    simple_max_networks: int = _setting(
        1000, "Networks that a host claims when they are placed on the host with the fewest.", 1
    )
    network_allocation: str = _setting(
        "direct",
        "direct: the API takes addresses from the database; queue: it asks the hosts of networks by their queues.",
        words=("direct", "queue"),
    )
    network_allocator: str = _setting(
        "bundled",
        "What a network host answers with: bundled, or an entry point of climate.network_allocators.",
    )
    network_call_seconds: float = _setting(
        10.0, "Longest time that a request for addresses waits for a network host, in seconds.", 0.5, 120
    )
    network_down_seconds: int = _setting(60, "Networks of a host not heard of for so long are claimed by others.", 1)
    network_segments: str = _setting(
        "auto",
        "How VLANs are carried between hosts; auto: by what the kernel can do. All hosts must agree.",
        words=("auto", "dot1q", "bpf", "vxlan"),
    )
    network_nat: str = _setting("nft", "What translates addresses.", words=("nft", "iptables"))
    network_size: int = _setting(256, "Addresses of a network, where several are made at once.", 8, 65536)
    network_mtu: int = _setting(1500, "Largest packet in networks, in bytes.", 576, 9000)
    flat_network_bridge: str = _setting("br100", "Bridge of flat networks that name none.")
    flat_interface: str = _setting("", "Interface that this bridge is attached to; when empty, none.")
    flat_network_dns: str = _setting("8.8.4.4", "Name servers of flat networks that name none, by commas.")
    flat_injected: bool = _setting(True, "Whether guests of flat networks are injected theirs.")
    vlan_interface: str = _setting("", "Interface on which the VLANs are.")
    vlan_start: int = _setting(100, "First VLAN of networks that name none.", 1, 4094)
    vpn_ip: str = _setting("", "Address at which the cloudpipes of this host's networks are reached; when empty, none.")
    vpn_start: int = _setting(1000, "First port of theirs, for networks that name none.", 1, 65535)
    vpn_clients: int = _setting(0, "Addresses at the end of each network that are kept for VPN clients.", 0, 65536)
    vpn_image_id: str = _setting("", "Image of cloudpipe servers, which have an address of their own.")
    vpn_flavor: str = _setting("m1.tiny", "Flavor of cloudpipe servers, by name or id.")
    fixed_range: str = _setting("10.0.0.0/8", "All fixed addresses; what leaves it is translated.")
    dmz_cidr: str = _setting("", "Where servers are seen with their fixed addresses; when empty, nowhere.")
    public_interface: str = _setting("", "Interface that leads outside; when empty, nothing does.")
    routing_source_ip: str = _setting("", "What servers look like from outside; when empty, that interface's address.")
    metadata_address: str = _setting("", "ADDRESS:PORT to which 169.254.169.254:80 leads; when empty, nowhere.")
    dhcp_domain: str = _setting("novalocal", "Domain of servers' names.")
    dhcp_lease_time: int = _setting(120, "Life of a DHCP lease, in seconds.", 120)
    dns_server: str = _setting("", "Name servers asked about other names, by commas; when empty, none.")
    fixed_ip_timeout: int = _setting(600, "Seconds after which an address that was given up and not released is free.")
    force_dhcp_release: bool = _setting(True, "Whether leases of servers that are gone are released for them.")
    use_ipv6: bool = _setting(False, "Whether new networks have IPv6 prefixes.")
    fixed_range_v6: str = _setting("fd00::/48", "Of which they are.")
    ipv6_backend: str = _setting("rfc2462", "How addresses follow from MACs.", words=("rfc2462", "account_identifier"))
    floating_range: str = _setting("", "Floating addresses that a fresh cloud is furnished with; when empty, none.")
    floating_cidr: str = _setting("", "Network that they are of; when empty, the same.")
    floating_pool: str = _setting("public", "Pool that they are in, and that is taken where none is named.")
    auto_assign_floating_ip: bool = _setting(False, "Whether each server gets a floating address at its boot.")
    route_between_projects: bool = _setting(
        False, "Whether network hosts route between networks of different projects."
    )
    zone_name: str = _setting("nova", "Name that this deployment reports as a zone.")
    zone_capabilities: str = _setting(
        "hypervisor=process;container;qemu, os=linux",
        "Static capabilities that it reports, as key=value;value, key=value.",
    )
    allow_admin_api: bool = _setting(True, "Serve the /zones API for administrators; when false, it is not found.")
    enable_zone_routing: bool = _setting(True, "Look for servers that are not found here in the child zones.")
    zone_poll_seconds: float = _setting(30.0, "Time between two polls of each child zone, in seconds.", 0.2, 86400)
    zone_timeout_seconds: float = _setting(
        5.0, "Longest time that a request to a child zone may take, in seconds.", 0.1, 300
    )
    zone_failures_to_offline: int = _setting(3, "Failed polls in a row after which a child zone is inactive.", 1, 1000)
    build_plan_encryption_key: str = _secret(
        "Keys of this zone's build plans, by commas: the first seals, all open; when empty, it makes no estimates."
    )
    blob_seconds: float = _setting(600.0, "Life of an offer that was made to a parent zone, in seconds.", 1, 86400)
    cells_enable: bool = _setting(False, "Make this deployment a cell in a tree of several; needs `climate cells`.")
    cell_name: str = _setting("nova", "Short name of this cell: letters, digits, '-' and '_'.")
    cell_type: str = _setting(
        "",
        "api: the top cell, with the API and no nodes; compute: any other; when empty, by CLIMATE_COMPUTE_API_CLASS.",
        words=("", "api", "compute"),
    )
    compute_api_class: str = _setting(
        "nova.compute.API",
        "nova.compute.cells_api.ComputeCellsAPI makes a cell without CLIMATE_CELL_TYPE an API cell.",
        words=("nova.compute.API", "nova.compute.cells_api.ComputeCellsAPI"),
    )
    cells_capabilities: str = _setting(
        "hypervisor=xenserver;kvm, os=linux;windows",
        "Capabilities that this cell reports, as key=value;value by commas.",
    )
    cells_transport: str = _setting(
        "broker", "How messages reach other cells: broker, or an entry point of the group climate.cell_transports."
    )
    cells_call_timeout: float = _setting(60.0, "Seconds that a call to another cell waits for its response.", 0.1, 3600)
    cells_max_hop_count: int = _setting(10, "Cells that a message may pass through.", 1, 100)
    cells_scheduler_retries: int = _setting(10, "Further attempts of a build for which there is no cell.", 0, 1000)
    cells_scheduler_retry_delay: float = _setting(2.0, "Seconds between two of these attempts; at least 1.", 0, 3600)
    cells_reserve_percent: float = _setting(
        10.0, "Percent of each node that are not counted as free when capacities of cells are reported.", 0, 100
    )
    cells_instance_updated_at_threshold: float = _setting(
        3600.0,
        "Servers that changed within so many seconds are reported to the top cell again now and then; 0: all.",
    )
    cells_instance_update_num_instances: int = _setting(
        1, "Servers that are reported again each minute, in case a report was lost.", 1, 1000
    )
    cells_mute_child_interval: float = _setting(300.0, "Seconds after which a cell that does not report is mute.", 1)
    cells_ram_weight_multiplier: float = _setting(
        10.0, "Above zero prefers cells with room for more servers, below it fuller ones.", -(10**6)
    )
    cells_offset_weight_multiplier: float = _setting(1.0, "Weight of the weight_offset of cells.", -(10**6))
    cells_mute_weight_multiplier: float = _setting(-10.0, "Weight of mute cells; below zero they come last.", -(10**6))
    cells_mute_weight_value: float = _setting(1000.0, "Value of a mute cell, which that weight is multiplied with.")
    max_image_mb: int = _setting(1024, "Largest content of an image that is uploaded, in MB.", 1)
    images_per_project: int = _setting(500, "Images that a project may have; -1: any number.", -1)
    image_mb_per_project: int = _setting(102400, "MB of images that a project may have; -1: any number.", -1)
    image_disk_free_mb: int = _setting(1024, "MB that images leave free on their disk.", 0)
    web_processes: int = _setting(2, "Processes of the web server.", 1, 1000)
    web_threads: int = _setting(8, "Threads of each of them.", 1, 1000)
    ready_needs: str = _setting(
        "database, migrations, clock, broker, poller, events, workers, cells, disk",
        "Checks of /readyz without which it answers 503, by commas; the others are only told.",
    )
    trusted_proxies: int = _setting(
        0,
        "Reverse proxies before the web process, each of which adds to X-Forwarded-For; 0: it is not believed.",
        0,
        10,
    )
    requests_per_second: float = _setting(
        200.0, "Requests that a user who is no admin may make in a second of each web process; 0: any number."
    )
    worker_processes: int = _setting(3, "Processes of the worker; two may be busy with the rounds of hosts.", 1, 1000)
    worker_queues: str = _setting(
        "", "What this worker does, of events, compute and the resource types, by commas; when empty, everything."
    )
    log_format: str = _setting("console", "console or json.", words=("console", "json"))
    log_level: str = _setting("INFO", "DEBUG, INFO, WARNING or ERROR.", words=("DEBUG", "INFO", "WARNING", "ERROR"))

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Return settings from CLIMATE_* variables; SettingError names the first invalid one."""
        given = {
            f: environ[f"CLIMATE_{f.name.upper()}"] for f in fields(cls) if environ.get(f"CLIMATE_{f.name.upper()}")
        }
        return cls(**{f.name: _read(f, text) for f, text in given.items()})

    @property
    def base_url(self) -> str:
        return self.public_url.rstrip("/") or f"http://{self.host}:{self.port}"

    @property
    def service_host(self) -> str:
        return self.compute_host or socket.gethostname()


def _kind(setting: "Field[Any]") -> Any:
    return type(setting.default)


def _read(setting: "Field[Any]", text: str) -> Any:
    name, kind = f"CLIMATE_{setting.name.upper()}", _kind(setting)
    if issubclass(kind, Path):
        return Path(text)
    try:
        value = text if kind is bool else kind(text)
    except ValueError:
        raise SettingError(f"{name}={text!r} is not a number") from None
    bounds, words = setting.metadata, setting.metadata["words"]
    if kind not in (str, bool) and not bounds["least"] <= value <= bounds["most"]:
        raise SettingError(f"{name}={text!r} must lie between {bounds['least']} and {bounds['most']}")
    if words and value not in words:
        raise SettingError(f"{name}={text!r} must be one of {', '.join(words)}")
    return value == "true" if kind is bool else value


def environment() -> Mapping[str, str]:
    """Return the environment of the process, for its entry point."""
    return dict(os.environ)
