"""Settings of the schedulers of the bundled cloud."""

from dataclasses import dataclass

from climate.settings.setting_fields import secret, setting


@dataclass(frozen=True)
class SchedulerSettings:
    """Schedulers, filters, weighers and their numbers."""

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
