"""Extensions of Compute: parts of the API that clients of old releases look up by their aliases."""

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from climate.domain.errors import NotFound

Body = dict[str, object]

blueprint = compute_blueprint("extensions")

UPDATED = "2014-12-03T00:00:00Z"
NAMESPACE = "http://docs.openstack.org/compute/ext/fake_xml"
"""Time and XML namespace that every extension of Compute has had since version 2.1."""

EXTENSIONS = {
    "flavors": "Flavors",
    "images": "Images",
    "limits": "Limits",
    "os-aggregates": "Aggregates",
    "os-attach-interfaces": "AttachInterfaces",
    "os-availability-zone": "AvailabilityZone",
    "os-console-output": "ConsoleOutput",
    "os-consoles": "Consoles",
    "os-create-backup": "CreateBackup",
    "os-evacuate": "Evacuate",
    "os-flavor-access": "FlavorAccess",
    "os-flavor-extra-specs": "FlavorExtraSpecs",
    "os-flavor-manage": "FlavorManage",
    "os-floating-ip-pools": "FloatingIpPools",
    "os-floating-ips": "FloatingIps",
    "os-hosts": "Hosts",
    "os-hypervisors": "Hypervisors",
    "os-instance-actions": "InstanceActions",
    "os-instance-usage-audit-log": "OSInstanceUsageAuditLog",
    "os-keypairs": "Keypairs",
    "os-lock-server": "LockServer",
    "os-migrate-server": "MigrateServer",
    "os-migrations": "Migrations",
    "os-multinic": "Multinic",
    "os-networks": "Networks",
    "os-pause-server": "PauseServer",
    "os-quota-class-sets": "QuotaClasses",
    "os-quota-sets": "Quotas",
    "os-remote-consoles": "Consoles",
    "os-rescue": "Rescue",
    "os-security-groups": "SecurityGroups",
    "os-server-diagnostics": "ServerDiagnostics",
    "os-server-external-events": "ServerExternalEvents",
    "os-server-groups": "ServerGroups",
    "os-server-password": "ServerPassword",
    "os-services": "Services",
    "os-shelve": "Shelve",
    "os-simple-tenant-usage": "SimpleTenantUsage",
    "os-suspend-server": "SuspendServer",
    "os-tenant-networks": "OSTenantNetworks",
    "server-metadata": "ServerMetadata",
    "servers": "Servers",
}
"""Names of the extensions that are here, by alias."""


@blueprint.get("/extensions")
def listing() -> Body:
    """List the extensions."""
    validation.may_read()
    return {"extensions": [_view(alias) for alias in EXTENSIONS]}


@blueprint.get("/extensions/<alias>")
def show(alias: str) -> Body:
    """Show one extension."""
    validation.may_read()
    if alias not in EXTENSIONS:
        raise NotFound(f"Extension {alias[:80]} could not be found.")
    return {"extension": _view(alias)}


def _view(alias: str) -> Body:
    return {
        "alias": alias,
        "name": EXTENSIONS[alias],
        "description": "",
        "links": [],
        "namespace": NAMESPACE,
        "updated": UPDATED,
    }
