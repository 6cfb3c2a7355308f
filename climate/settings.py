"""All settings of a process.  No other module reads the environment."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from climate.setting_fields import SettingError, read, secret, setting

__all__ = ["METADATA_HERE", "SettingError", "Settings", "environment"]

METADATA_HERE = "169.254.169.254:80"
"""Value of CLIMATE_METADATA_ADDRESS if `climate metadata` runs on each network host."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One field per setting; the variable is CLIMATE_ and the field's name in capitals."""

    home: Path = setting(Path("var"), "Folder of all changing data: stores, servers, logs, clouds.yaml.")
    host: str = setting("127.0.0.1", "Address on which the web process listens.")
    port: int = setting(8000, "Port that serves all APIs.", 1, 65535)
    database_url: str = setting("", "URL of PostgreSQL 15 or newer; when empty, `climate up` starts its own.")
    redis_url: str = setting("", "URL of Redis 7 or Valkey; when empty, `climate up` starts its own.")
    pg_bin: str = setting(
        "", "Folder with PostgreSQL's programs for the server that `climate up` starts; searched before all others."
    )
    public_url: str = setting("", "Base of the URLs in the service catalog; when empty, http://HOST:PORT.")
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
    limit_period_days: int = setting(30, "Days over which the host-hours of a project are added up.", 1, 3650)
    notify_url: str = setting("", "URL to which notifications are posted, as Standard Webhooks; when empty, none are.")
    notify_secret: str = secret("Key that signs notifications: whsec_ and 24 to 64 bytes in base64.")
    notify_private: bool = setting(False, "Allow CLIMATE_NOTIFY_URL to point to this machine or a private network.")
    notify_seconds: float = setting(10.0, "Timeout of posting one notification, in seconds.", 0.1, 30)
    notify_tries: int = setting(15, "Attempts to post one notification, over some hours.", 1, 100)
    smtp_url: str = secret(
        "URL of the server that sends mail: smtp://, smtp+starttls:// or smtps://, [USER:PASSWORD@]HOST[:PORT]; "
        "when empty, no mail is sent."
    )
    mail_from: str = setting("", "Address of the sender of mail; CLIMATE_SMTP_URL needs it.")
    notice_days: int = setting(90, "Days for which notifications are kept.", 1, 3650)
    archive_dir: str = setting(
        "", "Folder of the archives of leases, one for all machines; when empty, `archives` below CLIMATE_HOME."
    )
    enforcement_url: str = setting(
        "", "Approval service, which is called before a lease is created or updated, and at its end; when empty, none."
    )
    enforcement_token: str = secret("Token for CLIMATE_ENFORCEMENT_URL, sent as X-Auth-Token.")
    enforcement_seconds: float = setting(5.0, "Timeout of a call of the approval service, in seconds.", 0.1, 30)
    enforcement_open: bool = setting(False, "Grant leases if the approval service gives no usable answer.")
    minutes_before_end: int = setting(60, "Default time of before_end_lease before the end, in minutes; 0: no event.")
    resource_plugins: str = setting(
        "", "Resource types whose plugins are loaded, by commas; when empty, all installed ones."
    )
    max_lease_days: int = setting(730, "Longest lease, in days.", 1, 36500)
    series_occurrences: int = setting(52, "Maximum number of leases in a series.", 1, 1000)
    hold_seconds: int = setting(600, "Longest hold of a lease, in seconds; 0: holds are refused.", 0, 86400)
    holds_per_project: int = setting(
        10,
        "Default number of leases that a project may hold at once; -1: any number. Administrators have no limit.",
        -1,
    )
    waiting_per_project: int = setting(
        10,
        "Default number of leases of a project in the waiting list; -1: any number. Administrators have no limit.",
        -1,
    )
    waiting_patience: int = setting(
        3600,
        "Wait after which a lease of the waiting list is protected from those behind it, in seconds; -1: never.",
        -1,
        2678400,
    )
    waiting_promises: int = setting(
        1, "Leases of the waiting list that have been promised a later period at once.", 0, 1000
    )
    waiting_share_days: int = setting(
        7, "Days whose host hours decide the order of projects in the waiting list; 0: the age alone decides.", 0, 366
    )
    on_end: str = setting("create_image, delete", "Default actions at the end of a virtual:instance reservation.")
    poll_seconds: float = setting(1.0, "Longest sleep of the poller, in seconds.", 0.05, 60)
    pools_seconds: float = setting(
        5.0,
        "Longest time between two rounds over hosts that are recycled, cleaned or failed, in seconds.",
        0.05,
        60,
    )
    claims_ahead: int = setting(
        100, "Claimed events that have not started, for each queue of the workers; further events are claimed later.", 2
    )
    claim_seconds: float = setting(
        15.0, "Seconds without a heartbeat after which a worker loses its claim of an event.", 1
    )
    step_seconds: float = setting(300.0, "Timeout of one run of an event, in seconds.", 1)
    wait_seconds: float = setting(600.0, "Longest time that an event waits for the cloud, in seconds.", 1)
    policy_file: str = setting(
        "", "Policy file in YAML or JSON; a path below CLIMATE_HOME, or from /; when empty, none."
    )
    token_seconds: int = setting(3600, "Lifetime of a token, in seconds.", 1)
    compute_host: str = setting("", "Name of the compute service of this worker; when empty, the machine's name.")
    scheduler: str = setting("filter", "Scheduler that chooses nodes: a bundled one, or one of another package.")
    multi_schedulers: str = setting(
        "",
        "kind=scheduler by commas, for the scheduler multi; kinds: boot, reserve, resize, unshelve, migrate; "
        "default: filter.",
    )
    scheduler_filters: str = setting("", "Filters in their order, by commas; when empty, the default ones.")
    scheduler_core_filter: bool = setting(
        False, "Add CoreFilter to the default filters, which enforces CLIMATE_CPU_ALLOCATION_RATIO."
    )
    scheduler_weighers: str = setting("", "Weighers, by commas; when empty, all bundled ones.")
    reservation_id_format: str = setting(
        "short",
        "Form of the ids of build requests: short (r- and eight letters or digits) or uuid.",
        words=("short", "uuid"),
    )
    scheduler_notices: bool = setting(
        False, "Notify administrators at the start and the end of each selection of nodes."
    )
    scheduler_host_subset_size: int = setting(1, "Number of best nodes among which one is chosen at random.", 1)
    scheduler_max_attempts: int = setting(3, "Nodes on which a build is attempted.", 1, 100)
    ram_allocation_ratio: float = setting(1.5, "Allocatable memory of a node, as a multiple of its memory.", 0.01, 1000)
    cpu_allocation_ratio: float = setting(16.0, "Allocatable vCPUs of a node, as a multiple of its CPUs.", 0.01, 1000)
    disk_allocation_ratio: float = setting(1.0, "Allocatable disk of a node, as a multiple of its disk.", 0.01, 1000)
    reserved_host_memory_mb: int = setting(512, "Memory of a node that servers cannot get, in MB.")
    reserved_host_disk_mb: int = setting(0, "Disk of a node that servers cannot get, in MB.")
    ram_weight_multiplier: float = setting(
        1.0, "Multiplier of the free memory of a node; above zero spreads servers, below it stacks them.", -(10**6)
    )
    io_ops_weight_multiplier: float = setting(
        -1.0, "Multiplier of the running builds and moves of a node; below zero prefers nodes without any.", -(10**6)
    )
    metrics_weight_multiplier: float = setting(1.0, "Multiplier of the metrics of a node.", -(10**6))
    soft_affinity_weight_multiplier: float = setting(
        10.0, "Multiplier of the servers of a soft-affinity group on a node.", -(10**6)
    )
    soft_anti_affinity_weight_multiplier: float = setting(
        10.0, "Multiplier of the absence of servers of a soft-anti-affinity group on a node.", -(10**6)
    )
    metrics_weight_setting: str = setting("", "name=ratio of the metrics that have a weight, by commas.")
    metrics_required: bool = setting(
        True, "Treat a node that lacks one of the metrics in CLIMATE_METRICS_WEIGHT_SETTING as an error."
    )
    metrics_weight_of_unavailable: float = setting(-10000.0, "Weight of a node that lacks a metric.", -(10**9))
    max_io_ops_per_host: int = setting(8, "IoOpsFilter: maximum of servers that are being built or moved on a node.", 1)
    max_instances_per_host: int = setting(50, "NumInstancesFilter: maximum of servers on a node.", 1)
    isolated_images: str = setting("", "IsolatedHostsFilter: ids of images, by commas.")
    isolated_hosts: str = setting("", "IsolatedHostsFilter: service hosts, by commas.")
    restrict_isolated_hosts_to_isolated_images: bool = setting(True, "Isolated hosts accept isolated images only.")
    aggregate_image_properties_isolation_namespace: str = setting(
        "", "AggregateImagePropertiesIsolation: prefix of the compared keys of aggregates; when empty, all are."
    )
    aggregate_image_properties_isolation_separator: str = setting(
        ".", "Separator of that prefix and the rest of the key."
    )
    default_availability_zone: str = setting("nova", "Availability zone of nodes that set none.")
    default_schedule_zone: str = setting("", "Availability zone of new servers that name none; when empty, any.")
    scheduler_host_filters: str = setting(
        "", "Host filters that requests may name, by commas; when empty, the bundled ones."
    )
    default_host_filter: str = setting("AllHostsFilter", "Host filter of the schedulers least_cost and host_filter.")
    least_cost_functions: str = setting(
        "noop_cost_fn=1", "name=weight of the cost functions of the scheduler least_cost, by commas."
    )
    attestation_url: str = setting(
        "", "Attestation service of TrustedFilter, called by POST to its PollHosts; when empty, none."
    )
    attestation_auth_blob: str = secret("Credentials for CLIMATE_ATTESTATION_URL, sent as x-auth-blob.")
    attestation_auth_timeout: int = setting(60, "Seconds for which an attestation of a host is cached.", 1)
    attestation_seconds: float = setting(5.0, "Timeout of a call of the attestation service, in seconds.", 0.1, 30)
    pci_aliases: str = setting(
        "", "alias=vendor:product of the PCI devices that flavors can ask for, by commas: gpu=10de:20b0."
    )
    simple_max_cores: int = setting(16, "Maximum of vCPUs that the scheduler simple allocates on a node.", 1)
    service_down_seconds: int = setting(60, "Seconds without a report after which a compute service is down.", 1)
    migrate_from: str = setting(
        "",
        "Pools, by commas, whose hosts migrate their servers away: draining, recycling, maintenance; when "
        "empty, hosts wait.",
    )
    resize_confirm_window: int = setting(
        0, "Seconds after which a migration or resize of a server is confirmed; 0: only its owner confirms it."
    )
    nodes_file: str = setting("nodes.yaml", "Nodes of this compute service; a path below CLIMATE_HOME, or from /.")
    qemu_accel: str = setting(
        "auto",
        "Accelerator of virtual machines: kvm, tcg, or auto: kvm if the CPU supports it.",
        words=("auto", "kvm", "tcg"),
    )
    migration_address: str = setting(
        "", "IP address at which this compute service receives live migrations of other machines; when empty, none."
    )
    migration_ports: str = setting("49152-49215", "TCP ports for incoming live migrations; each uses two of them.")
    migration_seconds: int = setting(800, "Timeout of a live migration, in seconds.", 1)
    cloud: str = setting(
        "bundled", "Cloud whose hosts are reserved: bundled or openstack.", words=("bundled", "openstack")
    )
    openstack_cloud: str = setting("", "Entry of clouds.yaml for CLIMATE_CLOUD=openstack.")
    openstack_config: str = setting("", "Path of the clouds.yaml for CLIMATE_OPENSTACK_CLOUD.")
    identity: str = setting("bundled", "Identity service: bundled or keystone.", words=("bundled", "keystone"))
    keystone_cloud: str = setting(
        "", "Entry of clouds.yaml for CLIMATE_IDENTITY=keystone; when empty, that of CLIMATE_OPENSTACK_CLOUD."
    )
    keystone_config: str = setting("", "Path of the clouds.yaml for CLIMATE_KEYSTONE_CLOUD.")
    keystone_url: str = setting("", "Keystone's URL for clients; when empty, the auth_url of CLIMATE_KEYSTONE_CLOUD.")
    keystone_cache_seconds: float = setting(
        60.0, "Seconds for which a token that Keystone validated is cached, also after its revocation.", 0, 3600
    )
    keystone_seconds: float = setting(10.0, "Timeout of a request to Keystone, in seconds.", 0.1, 60)
    keystone_service_role: str = setting("service", "Role of users whose X-Service-Token is accepted.")
    openstack_blazar_filter: bool = setting(
        False,
        "The OpenStack cloud has blazar-nova's BlazarFilter: pools of leases get the zone and the keys that it reads.",
    )
    network_manager: str = setting(
        "flat",
        "Manager of new networks: flat allocates addresses only, flat_dhcp serves one bridge, vlan one for "
        "each project.",
        words=("flat", "flat_dhcp", "vlan"),
    )
    network_driver: str = setting(
        "recording",
        "recording: networks are recorded only; linux: networks are created on this machine.",
        words=("recording", "linux"),
    )
    network_host: str = setting("", "Name of the network service of this worker; when empty, as CLIMATE_COMPUTE_HOST.")
    network_netns: str = setting("", "Network namespace of the network service; when empty, the machine's own.")
    network_seconds: float = setting(3.0, "Time between two heartbeats of the network services, in seconds.", 0.1, 60)
    network_placement: str = setting(
        "scheduler",
        "Host that claims a network: the first to ask, the one with the fewest networks, or as the scheduler "
        "says: fewest under simple, else first.",
        words=("scheduler", "first", "fewest"),
    )
    simple_max_networks: int = setting(1000, "Maximum of networks of a host that is chosen for having the fewest.", 1)
    network_allocation: str = setting(
        "direct",
        "direct: the API allocates addresses in the database; queue: it calls the hosts of networks over queues.",
        words=("direct", "queue"),
    )
    network_allocator: str = setting(
        "bundled",
        "Allocator of addresses on a network host: bundled, or an entry point of climate.network_allocators.",
    )
    network_call_seconds: float = setting(
        10.0, "Timeout of a request for addresses to a network host, in seconds.", 0.5, 120
    )
    network_down_seconds: int = setting(
        60, "Seconds without a report after which other hosts claim the networks of a network host.", 1
    )
    network_segments: str = setting(
        "auto",
        "Transport of VLANs between hosts; auto: by the features of the kernel. All hosts must agree.",
        words=("auto", "dot1q", "bpf", "vxlan"),
    )
    network_nat: str = setting("nft", "Program for address translation.", words=("nft", "iptables"))
    network_size: int = setting(256, "Addresses of each network when one request creates several.", 8, 65536)
    network_mtu: int = setting(1500, "MTU of networks, in bytes.", 576, 9000)
    flat_network_bridge: str = setting("br100", "Bridge of flat networks that set none.")
    flat_interface: str = setting("", "Interface attached to the bridge of flat networks; when empty, none.")
    flat_network_dns: str = setting("8.8.4.4", "Name servers of flat networks that set none, by commas.")
    flat_injected: bool = setting(True, "Inject network configuration into guests of flat networks.")
    vlan_interface: str = setting("", "Interface that carries the VLANs.")
    vlan_start: int = setting(100, "First VLAN of networks that set none.", 1, 4094)
    project_vlans: str = setting(
        "", "VLANs of networks that members create, such as 2000-2999; when empty, only administrators create networks."
    )
    vpn_ip: str = setting("", "Address at which the cloudpipes of this host's networks are reached; when empty, none.")
    vpn_start: int = setting(1000, "First VPN port of networks that set none.", 1, 65535)
    vpn_clients: int = setting(0, "Addresses at the end of each network that are reserved for VPN clients.", 0, 65536)
    vpn_image_id: str = setting("", "Image of cloudpipe servers, which get the VPN address of their network.")
    vpn_flavor: str = setting("m1.tiny", "Flavor of cloudpipe servers, by name or id.")
    fixed_range: str = setting("10.0.0.0/8", "Range of all fixed IPs; traffic that leaves it is translated.")
    dmz_cidr: str = setting("", "Destinations to which servers connect without address translation; when empty, none.")
    public_interface: str = setting("", "Interface to the outside; when empty, none.")
    routing_source_ip: str = setting(
        "", "Source address of servers outside; when empty, that of CLIMATE_PUBLIC_INTERFACE."
    )
    metadata_address: str = setting(
        "",
        "ADDRESS:PORT to which 169.254.169.254:80 is redirected; itself: to `climate metadata`; when empty, nowhere.",
    )
    dhcp_domain: str = setting("novalocal", "DNS domain of servers.")
    dhcp_lease_time: int = setting(120, "Lifetime of a DHCP lease, in seconds.", 120)
    dns_server: str = setting("", "Upstream name servers, by commas; when empty, none.")
    fixed_ip_timeout: int = setting(600, "Seconds after which a deallocated fixed IP without DHCP release is free.")
    force_dhcp_release: bool = setting(True, "Release the DHCP leases of deleted servers.")
    use_ipv6: bool = setting(False, "Give new networks IPv6 prefixes.")
    fixed_range_v6: str = setting("fd00::/48", "IPv6 range from which prefixes of networks are allocated.")
    ipv6_backend: str = setting(
        "rfc2462", "Method that derives IPv6 addresses from MAC addresses.", words=("rfc2462", "account_identifier")
    )
    floating_range: str = setting("", "Floating IPs that a new cloud gets; when empty, none.")
    floating_cidr: str = setting("", "CIDR of the network of CLIMATE_FLOATING_RANGE; when empty, the same range.")
    floating_pool: str = setting("public", "Pool of CLIMATE_FLOATING_RANGE, and default pool for allocations.")
    auto_assign_floating_ip: bool = setting(False, "Associate a floating IP with each server at boot.")
    route_between_projects: bool = setting(False, "Route between networks of different projects on network hosts.")
    zone_name: str = setting("nova", "Name of this deployment as a zone.")
    zone_capabilities: str = setting(
        "hypervisor=process;container;qemu, os=linux",
        "Static capabilities of this deployment as a zone, as key=value;value, key=value.",
    )
    allow_admin_api: bool = setting(True, "Serve the /zones API for administrators; when false, it answers 404.")
    enable_zone_routing: bool = setting(
        True, "Forward requests about servers that are not in this zone to child zones."
    )
    zone_poll_seconds: float = setting(30.0, "Time between two polls of each child zone, in seconds.", 0.2, 86400)
    zone_timeout_seconds: float = setting(5.0, "Timeout of a request to a child zone, in seconds.", 0.1, 300)
    zone_failures_to_offline: int = setting(3, "Failed polls in a row after which a child zone is inactive.", 1, 1000)
    build_plan_encryption_key: str = secret(
        "Keys of this zone's build plans, by commas: the first encrypts, all decrypt; when empty, it makes "
        "no estimates."
    )
    blob_seconds: float = setting(600.0, "Lifetime of an offer to a parent zone, in seconds.", 1, 86400)
    cells_enable: bool = setting(False, "Make this deployment a cell of a tree; needs `climate cells`.")
    cell_name: str = setting("nova", "Short name of this cell: letters, digits, '-' and '_'.")
    cell_type: str = setting(
        "",
        "api: the top cell, with the API and without nodes; compute: any other; when empty, by "
        "CLIMATE_COMPUTE_API_CLASS.",
        words=("", "api", "compute"),
    )
    compute_api_class: str = setting(
        "nova.compute.API",
        "nova.compute.cells_api.ComputeCellsAPI makes a cell without CLIMATE_CELL_TYPE an API cell.",
        words=("nova.compute.API", "nova.compute.cells_api.ComputeCellsAPI"),
    )
    cells_capabilities: str = setting(
        "hypervisor=xenserver;kvm, os=linux;windows",
        "Capabilities of this cell, as key=value;value by commas.",
    )
    cells_transport: str = setting(
        "broker",
        "Transport of messages to other cells: broker, or an entry point of the group climate.cell_transports.",
    )
    cells_call_timeout: float = setting(60.0, "Timeout of a call to another cell, in seconds.", 0.1, 3600)
    cells_max_hop_count: int = setting(10, "Maximum of cells that a message passes through.", 1, 100)
    cells_scheduler_retries: int = setting(10, "Further attempts of a build if no cell has room.", 0, 1000)
    cells_scheduler_retry_delay: float = setting(2.0, "Seconds between two attempts of a build; at least 1.", 0, 3600)
    cells_reserve_percent: float = setting(
        10.0, "Percent of each node that do not count as free in reported capacities.", 0, 100
    )
    cells_instance_updated_at_threshold: float = setting(
        3600.0,
        "Servers updated within so many seconds are reported to the top cell again from time to time; 0: all.",
    )
    cells_instance_update_num_instances: int = setting(
        1, "Servers that are reported again each minute, in case a report was lost.", 1, 1000
    )
    cells_mute_child_interval: float = setting(300.0, "Seconds without a report after which a cell is mute.", 1)
    cells_ram_weight_multiplier: float = setting(
        10.0,
        "Multiplier of the room for servers of a cell; above zero prefers emptier cells, below it fuller ones.",
        -(10**6),
    )
    cells_offset_weight_multiplier: float = setting(1.0, "Multiplier of the weight_offset of cells.", -(10**6))
    cells_mute_weight_multiplier: float = setting(
        -10.0, "Multiplier of CLIMATE_CELLS_MUTE_WEIGHT_VALUE; below zero mute cells come last.", -(10**6)
    )
    cells_mute_weight_value: float = setting(1000.0, "Weight of a mute cell before its multiplier.")
    max_image_mb: int = setting(1024, "Maximum size of an uploaded image, in MB.", 1)
    images_per_project: int = setting(500, "Maximum of images of a project; -1: no limit.", -1)
    image_mb_per_project: int = setting(102400, "Maximum size of all images of a project, in MB; -1: no limit.", -1)
    image_disk_free_mb: int = setting(1024, "Disk space that images leave free, in MB.", 0)
    volume_gb_per_project: int = setting(0, "GB of a project's volumes without a lease; 0: none; -1: no limit.", -1)
    web_processes: int = setting(2, "Processes of the web server.", 1, 1000)
    web_threads: int = setting(8, "Threads of each process of the web server.", 1, 1000)
    ready_needs: str = setting(
        "database, migrations, clock, broker, poller, events, workers, cells, disk",
        "Checks, by commas, whose failure makes /readyz answer 503; other failures are only reported.",
    )
    trusted_proxies: int = setting(
        0,
        "Reverse proxies before the web process that add to X-Forwarded-For; 0: the header is ignored.",
        0,
        10,
    )
    requests_per_second: float = setting(
        200.0, "Requests per second of a user to each web process; 0: no limit. Administrators have no limit."
    )
    worker_processes: int = setting(3, "Processes of the worker; rounds over hosts can occupy two of them.", 1, 1000)
    worker_queues: str = setting(
        "", "Queues of this worker, by commas: events, compute and resource types; when empty, all."
    )
    log_format: str = setting("console", "Format of log lines: console or json.", words=("console", "json"))
    log_level: str = setting(
        "INFO", "Lowest level of log lines: DEBUG, INFO, WARNING or ERROR.", words=("DEBUG", "INFO", "WARNING", "ERROR")
    )

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Return settings from CLIMATE_* variables; SettingError names the first invalid one."""
        given = {
            f: environ[f"CLIMATE_{f.name.upper()}"] for f in fields(cls) if environ.get(f"CLIMATE_{f.name.upper()}")
        }
        return cls(**{f.name: read(f, text) for f, text in given.items()})

    @property
    def base_url(self) -> str:
        return self.public_url.rstrip("/") or f"http://{self.host}:{self.port}"

    @property
    def service_host(self) -> str:
        return self.compute_host or socket.gethostname()


def environment() -> Mapping[str, str]:
    """Return the environment of the process, for its entry point."""
    return dict(os.environ)
