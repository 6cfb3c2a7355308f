"""Text of tempest.conf for a running climate."""

from collections.abc import Mapping
from configparser import RawConfigParser
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

Sections = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Cloud:
    """Properties of a deployment that the tests use."""

    url: str
    password: str
    """Password of the administrator."""
    images: tuple[str, str]
    flavors: tuple[str, str]
    network: str
    """Name of the network of new servers."""
    external_network: tuple[str, str]
    """Id and name of the network whose addresses are floating IPs."""
    extensions: tuple[str, ...]
    """Aliases of the extensions that Network lists."""
    newest: str
    """Newest microversion of Compute."""
    machine: Path | None = None
    """Disk of a virtual machine that accepts SSH, as all servers then do; None: no server has a network."""
    hosts: tuple[str, ...] = ()
    """Names of two compute services between which servers migrate, and of their nodes; none if there is one service."""


ABSENT = {
    "identity-feature-enabled": {"trust": False, "access_rules": False, "api_extensions": ""},
    "compute-feature-enabled": {
        "cold_migration": False,
        "live_migration": False,
        "attach_encrypted_volume": False,
    },
    "image-feature-enabled": {"image_format_enforcement": False},
}
"""Features of OpenStack that climate does not have; Tempest skips their tests."""


def sections(cloud: Cloud, folder: Path) -> dict[str, dict[str, object]]:
    """Return the options by section; `folder` is where Tempest writes locks and logs."""
    found: dict[str, dict[str, object]] = {
        "DEFAULT": {"log_dir": folder, "log_file": "tempest.log", "debug": True},
        "oslo_concurrency": {"lock_path": folder / "locks"},
        "auth": {
            "use_dynamic_credentials": True,
            "create_isolated_networks": False,
            "tempest_roles": "member",
            "admin_username": "admin",
            "admin_project_name": "admin",
            "admin_password": cloud.password,
        },
        "identity": {"uri_v3": f"{cloud.url}/identity/v3", "auth_version": "v3", "region": "RegionOne"},
        "compute": {
            "image_ref": cloud.images[0],
            "image_ref_alt": cloud.images[1],
            "flavor_ref": cloud.flavors[0],
            "flavor_ref_alt": cloud.flavors[1],
            "fixed_network_name": cloud.network,
            "max_microversion": cloud.newest,
            "min_compute_nodes": 1,
        },
        "compute-feature-enabled": {"resize": True},
        "image-feature-enabled": {"import_image": True},
        "network": {
            "public_network_id": cloud.external_network[0],
            "floating_network_name": cloud.external_network[1],
            "shared_physical_network": True,
        },
        "network-feature-enabled": {"api_extensions": ",".join(cloud.extensions)},
        "service_available": {"cinder": False, "swift": False, "horizon": False},
        # Servers of the demo driver are processes without SSH: scenarios that sign in to one fail soon.
        "validation": {"run_validation": False, "connect_timeout": 5, "ssh_timeout": 5, "ping_timeout": 5},
        "resource_reservation": {"lease_interval": 1},
    }
    for more in (ABSENT, {} if cloud.machine is None else _reachable(cloud.machine, cloud.hosts)):
        for section, options in more.items():
            found.setdefault(section, {}).update(options)
    return found


def _reachable(machine: Path, hosts: tuple[str, ...]) -> Sections:
    """Return the options of a deployment whose servers accept SSH by their floating IPs."""
    scenario = {
        "img_file": machine,
        "img_disk_format": "raw",
        "img_properties": "hypervisor_type:qemu",
        "target_dir": "/root",  # a container keeps nothing in /tmp
    }
    return {
        "validation": {"run_validation": True, "connect_timeout": 30, "ssh_timeout": 300, "ping_timeout": 120},
        "scenario": scenario,
        "compute-feature-enabled": {
            "config_drive": False,  # a container has it as a folder, and Tempest mounts a disk
            "console_output": False,  # the web process reads those of its own service only
            "cold_migration": True,
            "shelve_migrate": True,
        },
        "compute": {
            "min_compute_nodes": len(hosts),
            "migration_source_host": hosts[0],
            "migration_dest_host": hosts[1],
        },
        "service_available": {"cinder": True},
        "volume": {"catalog_type": "volumev3"},
        "volume-feature-enabled": {"backup": False, "snapshot": False, "clone": False, "extend_attached_volume": False},
    }


def text(options: Sections) -> str:
    """Return the options as the text of tempest.conf."""
    parser = RawConfigParser()
    for section, values in options.items():
        target = section if section == "DEFAULT" else (parser.add_section(section) or section)
        for name, value in values.items():
            parser.set(target, name, str(value))
    out = StringIO()
    parser.write(out)
    return out.getvalue()
