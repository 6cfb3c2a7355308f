"""Settings of the networks of the bundled cloud."""

from dataclasses import dataclass

from climate.settings.setting_fields import setting


@dataclass(frozen=True)
class NetworkSettings:
    """Network services, managers, addresses and their translation."""

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
