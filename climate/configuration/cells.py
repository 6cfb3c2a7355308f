"""Settings of cells."""

from collections.abc import Callable

from climate.compute.cells.messaging import paths
from climate.compute.cells.messaging.broker import BrokerTransport
from climate.compute.cells.messaging.transport import CellTransport
from climate.compute.cells.options import API, CellOptions, CellType, read_capabilities
from climate.compute.errors import BadRequest
from climate.entry_points import installed
from climate.sealed_secrets import Vault
from climate.settings import SettingError, Settings

TRANSPORTS = "climate.cell_transports"
"""Group of the entry points of other transports."""

CELLS_API = "nova.compute.cells_api.ComputeCellsAPI"
"""Value of CLIMATE_COMPUTE_API_CLASS that marks an API cell."""


def options(settings: Settings, vault: Vault | None = None) -> CellOptions:
    """Return this deployment as a cell; SettingError names the invalid setting."""
    return CellOptions(
        enabled=settings.cells_enable,
        name=_name(settings),
        type=_type(settings),
        capabilities=_capabilities(settings),
        call_timeout=settings.cells_call_timeout,
        max_hop_count=settings.cells_max_hop_count,
        scheduler_retries=settings.cells_scheduler_retries,
        scheduler_retry_delay=settings.cells_scheduler_retry_delay,
        reserve_percent=settings.cells_reserve_percent,
        mute_seconds=settings.cells_mute_child_interval,
        ram_multiplier=settings.cells_ram_weight_multiplier,
        offset_multiplier=settings.cells_offset_weight_multiplier,
        mute_multiplier=settings.cells_mute_weight_multiplier,
        mute_value=settings.cells_mute_weight_value,
        vault=vault,
    )


def transport(settings: Settings) -> Callable[[], CellTransport]:
    """Return the class of the transport; SettingError if there is none of this name."""
    if settings.cells_transport == "broker":
        return BrokerTransport
    result = {one.name: one for one in installed(TRANSPORTS)}
    if settings.cells_transport not in result:
        known = ", ".join(sorted({"broker", *result}))
        raise SettingError(f"CLIMATE_CELLS_TRANSPORT={settings.cells_transport!r} must be one of {known}")
    loaded: Callable[[], CellTransport] = result[settings.cells_transport].load()
    return loaded


def check(settings: Settings) -> None:
    """Raise SettingError for invalid settings of cells, and for a compute service in an API cell."""
    transport(settings)
    queues = [word.strip() for word in settings.worker_queues.split(",")]
    if options(settings).is_api and "compute" in queues:
        raise SettingError(
            f"CLIMATE_WORKER_QUEUES={settings.worker_queues!r}: an API cell has no compute service; "
            "run it in a child cell, or set CLIMATE_CELL_TYPE=compute"
        )


def _name(settings: Settings) -> str:
    try:
        return paths.check_name(settings.cell_name)
    except BadRequest as error:
        raise SettingError(f"CLIMATE_CELL_NAME={settings.cell_name!r}: {error}") from None


def _type(settings: Settings) -> CellType:
    if settings.cell_type:
        return "api" if settings.cell_type == API else "compute"
    return "api" if settings.compute_api_class == CELLS_API else "compute"


def _capabilities(settings: Settings) -> dict[str, tuple[str, ...]]:
    try:
        return read_capabilities(settings.cells_capabilities)
    except ValueError as error:
        raise SettingError(f"CLIMATE_CELLS_CAPABILITIES={settings.cells_capabilities!r}: {error}") from None
