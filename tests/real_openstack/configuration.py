"""Configuration files of Keystone, Placement, Glance, Neutron and Nova."""

import shutil
from collections.abc import Mapping, Sequence
from uuid import uuid4

from tests.real_openstack.layout import HOSTS, PASSWORD, VENV, Layout

Sections = Mapping[str, Mapping[str, str]]

FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "AggregateMultiTenancyIsolation",
    "AggregateInstanceExtraSpecsFilter",
)
BINDING = "climate_nova_filter.ReservationFilter"
BLAZAR = "blazarnova.scheduler.filters.blazar_filter.BlazarFilter"


def text(sections: Sections) -> str:
    """Return sections in the form of oslo.config; an option with several lines occurs several times."""
    parts = []
    for name, options in sections.items():
        lines = [f"{key} = {line}" for key, value in options.items() for line in value.split("\n")]
        parts.append("\n".join([f"[{name}]", *lines, ""]))
    return "\n".join(parts)


def write(layout: Layout, *own: str) -> None:
    """Write the files of all services; Nova has the filters `own`, named by module and class, beside its usual ones."""
    files = {
        "keystone/keystone.conf": _keystone(layout),
        "placement/placement.conf": _placement(layout),
        "glance/glance-api.conf": _glance(layout),
        "neutron/neutron.conf": _neutron(layout),
        "nova/nova.conf": _nova(layout, "api", own),
        **{f"nova/{host}.conf": _nova(layout, host, own) for host in HOSTS},
    }
    for service in ("glance", "neutron", "nova"):
        for path in (VENV / "etc" / service).glob("*.ini"):
            shutil.copy(path, layout.etc(service))
    for name, sections in files.items():
        service, _, file = name.partition("/")
        (layout.etc(service) / file).write_text(text(sections), encoding="utf-8")
    for host in HOSTS:
        # Without it a compute service that starts for the second time takes itself for another one.
        identity = layout.folder("state", host) / "compute_id"
        if not identity.exists():
            identity.write_text(str(uuid4()), encoding="utf-8")


def _account(layout: Layout, user: str) -> dict[str, str]:
    return {
        "auth_url": layout.url("keystone", "/v3"),
        "auth_type": "password",
        "username": user,
        "password": PASSWORD,
        "project_name": "service",
        "user_domain_id": "default",
        "project_domain_id": "default",
        "region_name": "RegionOne",
    }


def _tokens(layout: Layout, user: str) -> dict[str, str]:
    return {
        "www_authenticate_uri": layout.url("keystone"),
        "service_token_roles_required": "true",
        "service_token_roles": "service",
        **_account(layout, user),
    }


def _keystone(layout: Layout) -> Sections:
    return {
        "DEFAULT": {},
        "database": {"connection": layout.database("keystone")},
        "token": {"provider": "fernet"},
        "fernet_tokens": {"key_repository": str(layout.folder("fernet"))},
        "fernet_receipts": {"key_repository": str(layout.folder("fernet"))},
        "credential": {"key_repository": str(layout.folder("credentials"))},
        "identity": {"password_hash_rounds": "4"},
        "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
    }


def _placement(layout: Layout) -> Sections:
    return {
        "placement_database": {"connection": layout.database("placement")},
        "api": {"auth_strategy": "keystone"},
        "placement": {"allocation_conflict_retry_count": "1"},  # docs/openstack.md: slots are exceeded otherwise
        "keystone_authtoken": _tokens(layout, "placement"),
    }


def _glance(layout: Layout) -> Sections:
    store, staging, tasks = (str(layout.folder("images", name)) for name in ("store", "staging", "tasks"))
    return {
        "DEFAULT": {
            "bind_host": "127.0.0.1",
            "enabled_backends": "file:file",
            "node_staging_uri": f"file://{staging}",
            "worker_self_reference_url": layout.url("glance"),
        },
        "database": {"connection": layout.database("glance")},
        "glance_store": {"default_backend": "file"},
        "file": {"filesystem_store_datadir": store},
        "os_glance_staging_store": {"filesystem_store_datadir": staging},
        "os_glance_tasks_store": {"filesystem_store_datadir": tasks},
        "paste_deploy": {"flavor": "keystone", "config_file": str(layout.etc("glance") / "glance-api-paste.ini")},
        "keystone_authtoken": _tokens(layout, "glance"),
    }


def _neutron(layout: Layout) -> Sections:
    return {
        "DEFAULT": {
            "bind_host": "127.0.0.1",
            "auth_strategy": "keystone",
            "core_plugin": "ml2",
            "service_plugins": "router",
            "transport_url": layout.broker,
            "notify_nova_on_port_status_changes": "false",
            "notify_nova_on_port_data_changes": "false",
            "state_path": str(layout.folder("state", "neutron")),
            "api_workers": "1",
            "rpc_workers": "0",
        },
        "database": {"connection": layout.database("neutron")},
        "oslo_concurrency": {"lock_path": str(layout.folder("state", "neutron", "lock"))},
        "ml2": {
            "type_drivers": "flat,local",
            "tenant_network_types": "local",
            "mechanism_drivers": "openvswitch",
            "extension_drivers": "",
        },
        "ml2_type_flat": {"flat_networks": "*"},
        "keystone_authtoken": _tokens(layout, "neutron"),
    }


def _nova(layout: Layout, name: str, own: Sequence[str]) -> Sections:
    state = layout.folder("state", name)
    filters = [*FILTERS, *(each.rpartition(".")[2] for each in own)]
    available = ["nova.scheduler.filters.all_filters", *own]
    return {
        "DEFAULT": {
            "my_ip": "127.0.0.1",
            **({} if name == "api" else {"host": name}),
            "transport_url": layout.broker,
            "state_path": str(state),
            "report_interval": "5",
            "service_down_time": "60",  # a busy machine delays reports
            "compute_driver": "fake.FakeDriverWithoutFakeNodes",
        },
        "api": {"auth_strategy": "keystone"},
        "api_database": {"connection": layout.database("nova_api")},
        "database": {"connection": layout.database("nova")},
        "oslo_concurrency": {"lock_path": str(layout.folder("state", name, "lock"))},
        "vnc": {"enabled": "false"},
        "workarounds": {"disable_rootwrap": "true"},
        "filter_scheduler": {
            "available_filters": "\n".join(available),
            "enabled_filters": ",".join(filters),
            "track_instance_changes": "false",  # a slot is free as soon as its server is deleted
        },
        **({"blazar:physical:host": {"allow_preemptibles": "true"}} if BLAZAR in own else {}),
        "scheduler": {"workers": "1", "discover_hosts_in_cells_interval": "5"},
        "conductor": {"workers": "1"},
        "glance": {**_account(layout, "nova"), "api_servers": layout.url("glance")},
        "placement": _account(layout, "placement"),
        "neutron": _account(layout, "neutron"),
        "service_user": {"send_service_user_token": "true", **_account(layout, "nova")},
        "key_manager": {"backend": "nova.keymgr.conf_key_mgr.ConfKeyManager", "fixed_key": "0" * 64},
        "keystone_authtoken": _tokens(layout, "nova"),
    }
