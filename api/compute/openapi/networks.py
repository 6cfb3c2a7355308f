"""OpenAPI descriptions of networks, floating IPs and volume attachments."""

from api.compute.networks.network_bodies import ACTIONS, ADDED, ALLOCATED, ASSOCIATION, BULK, DROPPED, NETWORK
from api.compute.networks.security_group_bodies import GROUP, RULE
from api.compute.servers.attachment_bodies import INTERFACE, VOLUME
from api.schema.shapes import PAGE, Operation, answer, flag

FLOATING = "/os-floating-ips"
ONE_FLOATING = f"{FLOATING}/<floating_id>"
SERVER = "/servers/<server_id>"
INTERFACES = f"{SERVER}/os-interface"
VOLUMES = f"{SERVER}/os-volume_attachments"

GROUPS, GROUP_RULES = "/os-security-groups", "/os-security-group-rules"

OPERATIONS = {
    ("GET", GROUPS): Operation(
        {200: answer("security_groups", "array")}, query={**PAGE, "all_tenants": flag()}, refuses=(404,)
    ),
    ("POST", GROUPS): Operation({200: answer("security_group")}, GROUP.shape(), refuses=(404,)),
    ("GET", f"{GROUPS}/<security_group>"): Operation({200: answer("security_group")}),
    ("PUT", f"{GROUPS}/<security_group>"): Operation({200: answer("security_group")}, GROUP.shape()),
    ("DELETE", f"{GROUPS}/<security_group>"): Operation({202: None}),
    ("POST", GROUP_RULES): Operation({200: answer("security_group_rule")}, RULE.shape(), refuses=(404,)),
    ("DELETE", f"{GROUP_RULES}/<security_group_rule>"): Operation({202: None}),
    ("GET", "/servers/<server_id>/os-security-groups"): Operation({200: answer("security_groups", "array")}),
    ("GET", "/os-networks"): Operation({200: answer("networks", "array")}, refuses=(404,)),
    ("POST", "/os-networks"): Operation({200: answer("network")}, NETWORK.shape(), refuses=(404, 409)),
    ("GET", "/os-tenant-networks"): Operation({200: answer("networks", "array")}, refuses=(404,)),
    ("GET", "/os-tenant-networks/<network_id>"): Operation({200: answer("network")}),
    ("GET", "/os-networks/<network_id>"): Operation({200: answer("network")}),
    ("DELETE", "/os-networks/<network_id>"): Operation({202: None}, refuses=(409,)),
    ("POST", "/os-networks/<network_id>/action"): Operation({202: None}, ACTIONS.shape(), refuses=(409,)),
    ("POST", "/os-networks/add"): Operation({202: None}, ADDED.shape(), refuses=(404, 409)),
    ("GET", "/os-floating-ip-pools"): Operation({200: answer("floating_ip_pools", "array")}, refuses=(404,)),
    ("GET", FLOATING): Operation({200: answer("floating_ips", "array")}, refuses=(404,)),
    ("POST", FLOATING): Operation({200: answer("floating_ip")}, ALLOCATED.shape(), refuses=(404, 409)),
    ("GET", ONE_FLOATING): Operation({200: answer("floating_ip")}),
    ("DELETE", ONE_FLOATING): Operation({202: None}, refuses=(409,)),
    ("POST", f"{ONE_FLOATING}/associate"): Operation({200: answer("associated")}, ASSOCIATION.shape(), refuses=(409,)),
    ("POST", f"{ONE_FLOATING}/disassociate"): Operation({200: answer("disassociated")}, refuses=(409,)),
    ("GET", "/os-floating-ips-bulk"): Operation({200: answer("floating_ip_info", "array")}, refuses=(404,)),
    ("GET", "/os-floating-ips-bulk/<host>"): Operation({200: answer("floating_ip_info", "array")}),
    ("POST", "/os-floating-ips-bulk"): Operation(
        {200: answer("floating_ips_bulk_create")}, BULK.shape(), refuses=(404, 409)
    ),
    ("PUT", "/os-floating-ips-bulk/delete"): Operation(
        {200: answer("floating_ips_bulk_delete", "string")}, DROPPED.shape(), refuses=(404, 409)
    ),
    ("GET", f"{SERVER}/ips"): Operation({200: answer("addresses")}),
    ("GET", f"{SERVER}/ips/<label>"): Operation({200: {"type": "object"}}),
    ("GET", INTERFACES): Operation({200: answer("interfaceAttachments", "array")}),
    ("POST", INTERFACES): Operation({200: answer("interfaceAttachment")}, INTERFACE.shape(), refuses=(409,)),
    ("GET", f"{INTERFACES}/<port_id>"): Operation({200: answer("interfaceAttachment")}),
    ("DELETE", f"{INTERFACES}/<port_id>"): Operation({202: None}, refuses=(409,)),
    ("GET", VOLUMES): Operation({200: answer("volumeAttachments", "array")}),
    ("POST", VOLUMES): Operation({200: answer("volumeAttachment")}, VOLUME.shape(), refuses=(409,)),
    ("GET", f"{VOLUMES}/<volume_id>"): Operation({200: answer("volumeAttachment")}),
    ("DELETE", f"{VOLUMES}/<volume_id>"): Operation({202: None}, refuses=(409,)),
}
