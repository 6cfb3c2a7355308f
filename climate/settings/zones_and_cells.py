"""Settings of zones and cells."""

from dataclasses import dataclass

from climate.settings.setting_fields import secret, setting


@dataclass(frozen=True)
class ZoneSettings:
    """This deployment as a zone, and its child zones."""

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


@dataclass(frozen=True)
class CellSettings:
    """This deployment as a cell of a tree."""

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
