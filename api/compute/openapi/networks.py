"""OpenAPI descriptions of networks, floating IPs and volume attachments."""

from api.compute.openapi.shapes import (
    Operation,
    Schema,
    answer,
    below,
    listing,
    name,
    number,
    one_of,
    or_null,
    text,
    thing,
    uuid,
)

ADDRESS: Schema = {"type": "string", "format": "ipv4"}
ADDRESS_V6: Schema = {"type": "string", "format": "ipv6"}
RANGE = text(64, pattern=r"^[0-9]{1,3}([.][0-9]{1,3}){3}/[0-9]{1,2}$")
RANGE_V6 = text(64, pattern=r"^[0-9a-fA-F:]+/[0-9]{1,3}$")
STRETCH = text(64, pattern=r"^[0-9]{1,3}([.][0-9]{1,3}){3}([/-][0-9.]+)?$")
INTERFACE = text(15, pattern=r"^[A-Za-z0-9_.:-]+$") | {"minLength": 1}

NETWORK = thing(
    ("label", "cidr"),
    label=name(),
    cidr=RANGE,
    num_networks=number(1, 1024),
    network_size=number(8, 1 << 16),
    cidr_v6=or_null(RANGE_V6),
    gateway_v6=or_null(ADDRESS_V6),
    bridge=or_null(INTERFACE),
    bridge_interface=or_null(INTERFACE),
    vlan=or_null(number(1, 4094)),
    vlan_start=or_null(number(1, 4094)),
    vpn_start=or_null(number(1, 65535)),
    project_id=or_null(name()),
    dns1=or_null(ADDRESS),
    dns2=or_null(ADDRESS),
    manager=or_null(one_of("flat", "flat_dhcp", "vlan")),
)
WHOSE: Schema = {
    "anyOf": [below("associate", below("project_id", name())), below("disassociate", {"type": "null"})],
}
BULK = thing(
    ("ip_range",),
    ip_range=STRETCH,
    pool=or_null(name()),
    interface=or_null(INTERFACE),
    cidr=or_null(RANGE),
    gateway=or_null(ADDRESS),
)
ATTACHMENT = thing(
    ("net_id",),
    net_id=uuid(),
    fixed_ips=listing(thing(("ip_address",), ip_address=ADDRESS), 1) | {"minItems": 1},
    tag=text(60),
)

VOLUME = thing(
    ("volumeId",),
    volumeId=uuid(),
    device=or_null(name()),
    tag=or_null(name()),
    delete_on_termination={"type": "boolean", "enum": [False]},
)

FLOATING = "/os-floating-ips"
ONE_FLOATING = f"{FLOATING}/<floating_id>"
SERVER = "/servers/<server_id>"
INTERFACES = f"{SERVER}/os-interface"
VOLUMES = f"{SERVER}/os-volume_attachments"

OPERATIONS = {
    ("GET", "/os-networks"): Operation({200: answer("networks", "array")}, refuses=(404,)),
    ("POST", "/os-networks"): Operation({200: answer("network")}, below("network", NETWORK), refuses=(404, 409)),
    ("GET", "/os-networks/<network_id>"): Operation({200: answer("network")}),
    ("DELETE", "/os-networks/<network_id>"): Operation({202: None}, refuses=(409,)),
    ("POST", "/os-networks/<network_id>/action"): Operation({202: None}, WHOSE, refuses=(409,)),
    ("POST", "/os-networks/add"): Operation(
        {202: None}, thing(("id",), id=or_null(uuid()), project_id=or_null(name())), refuses=(404, 409)
    ),
    ("GET", "/os-floating-ip-pools"): Operation({200: answer("floating_ip_pools", "array")}, refuses=(404,)),
    ("GET", FLOATING): Operation({200: answer("floating_ips", "array")}, refuses=(404,)),
    ("POST", FLOATING): Operation({200: answer("floating_ip")}, thing(pool=or_null(name())), refuses=(404, 409)),
    ("GET", ONE_FLOATING): Operation({200: answer("floating_ip")}),
    ("DELETE", ONE_FLOATING): Operation({202: answer("released")}, refuses=(409,)),
    ("POST", f"{ONE_FLOATING}/associate"): Operation(
        {200: answer("associated")}, below("associate_address", below("fixed_ip", ADDRESS)), refuses=(409,)
    ),
    ("POST", f"{ONE_FLOATING}/disassociate"): Operation({200: answer("disassociated")}, refuses=(409,)),
    ("GET", "/os-floating-ips-bulk"): Operation({200: answer("floating_ip_info", "array")}, refuses=(404,)),
    ("GET", "/os-floating-ips-bulk/<host>"): Operation({200: answer("floating_ip_info", "array")}),
    ("POST", "/os-floating-ips-bulk"): Operation(
        {200: answer("floating_ips_bulk_create")}, below("floating_ips_bulk_create", BULK), refuses=(404, 409)
    ),
    ("PUT", "/os-floating-ips-bulk/delete"): Operation(
        {200: answer("floating_ips_bulk_delete", "string")}, below("ip_range", STRETCH), refuses=(404, 409)
    ),
    ("GET", f"{SERVER}/ips"): Operation({200: answer("addresses")}),
    ("GET", f"{SERVER}/ips/<label>"): Operation({200: {"type": "object"}}),
    ("GET", INTERFACES): Operation({200: answer("interfaceAttachments", "array")}),
    ("POST", INTERFACES): Operation(
        {200: answer("interfaceAttachment")}, below("interfaceAttachment", ATTACHMENT), refuses=(409,)
    ),
    ("GET", f"{INTERFACES}/<port_id>"): Operation({200: answer("interfaceAttachment")}),
    ("DELETE", f"{INTERFACES}/<port_id>"): Operation({202: None}, refuses=(409,)),
    ("GET", VOLUMES): Operation({200: answer("volumeAttachments", "array")}),
    ("POST", VOLUMES): Operation({200: answer("volumeAttachment")}, below("volumeAttachment", VOLUME), refuses=(409,)),
    ("GET", f"{VOLUMES}/<volume_id>"): Operation({200: answer("volumeAttachment")}),
    ("DELETE", f"{VOLUMES}/<volume_id>"): Operation({202: None}, refuses=(409,)),
}

ADDRESSING: tuple[Schema, ...] = (
    below("addFixedIp", below("networkId", uuid())),
    below("removeFixedIp", below("address", name())),
    below("addFloatingIp", thing(("address",), address=ADDRESS, fixed_address=or_null(ADDRESS))),
    below("removeFloatingIp", below("address", ADDRESS)),
)
"""Actions on the addresses of a server."""
