"""All settings of a process.  No other module reads the environment."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from climate.settings.compute import ComputeSettings
from climate.settings.hosts import HostSettings
from climate.settings.leases import LeaseSettings
from climate.settings.networks import NetworkSettings
from climate.settings.openstack import OpenStackSettings
from climate.settings.processes import ProcessSettings
from climate.settings.scheduler import SchedulerSettings
from climate.settings.setting_fields import SettingError, read
from climate.settings.zones_and_cells import CellSettings, ZoneSettings

__all__ = ["METADATA_HERE", "SettingError", "Settings", "environment"]

METADATA_HERE = "169.254.169.254:80"
"""Value of CLIMATE_METADATA_ADDRESS if `climate metadata` runs on each network host."""


@dataclass(frozen=True)
class Settings(  # a dataclass has the fields of its last base first
    CellSettings,
    ZoneSettings,
    NetworkSettings,
    OpenStackSettings,
    ComputeSettings,
    SchedulerSettings,
    LeaseSettings,
    HostSettings,
    ProcessSettings,
):
    """One field per setting; the variable is CLIMATE_ and the field's name in capitals."""

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
