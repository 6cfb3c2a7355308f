"""Configurations of OpenVPN: the script that a cloudpipe runs at each start, and the file of a client.

The VPN is routed. Clients have addresses of the project's network, and the cloudpipe answers ARP for them there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, summarize_address_range

from climate.compute.vpn.authority import Pair

PORT = 1194
"""UDP port of a cloudpipe, as in Nova."""

_FOLDER, _DEVICE = "/etc/cloudpipe", "cloudpipe"
_CIPHERS = "AES-256-GCM:AES-128-GCM:CHACHA20-POLY1305"


@dataclass(frozen=True, slots=True)
class Clients:
    """The addresses of a network that are kept for clients of its VPN."""

    first: IPv4Address
    last: IPv4Address

    @property
    def ranges(self) -> Sequence[IPv4Network]:
        """Return the same addresses as networks with prefixes."""
        return tuple(summarize_address_range(self.first, self.last))


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a cloudpipe: its network, its address and MAC there, and the addresses of its clients."""

    network: IPv4Network
    address: IPv4Address
    mac: str
    clients: Clients


def server_script(place: Place, authority: str, server: Pair, revoked: str) -> str:
    """Return the user data of a cloudpipe: a shell script that cloud-init runs at each start, not only at the first.

    `authority` and `revoked`: its certificate and its revocation list, in PEM.
    """
    files = {
        "ca.crt": authority,
        "server.crt": server.certificate,
        "server.key": server.key,
        "crl.pem": revoked,
        "server.conf": _server_conf(place),
    }
    written = "".join(f"cat >{_FOLDER}/{name} <<'END'\n{text.strip()}\nEND\n" for name, text in files.items())
    routes = "".join(f"ip route replace {one} dev {_DEVICE}\n" for one in place.clients.ranges)
    return f"""#cloud-boothook
#!/bin/sh
# The cloudpipe of a project: an OpenVPN server whose clients are in the project's network.
umask 077
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p {_FOLDER} /dev/net
{written}
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
modprobe tun 2>/dev/null
echo 1 >/proc/sys/net/ipv4/ip_forward
for card in /sys/class/net/*; do
    [ "$(cat "$card/address")" = {place.mac} ] && echo 1 >"/proc/sys/net/ipv4/conf/${{card##*/}}/proxy_arp"
done
[ -e /sys/class/net/{_DEVICE} ] || openvpn --mktun --dev {_DEVICE} --dev-type tun
ip link set dev {_DEVICE} up
{routes}openvpn --config {_FOLDER}/server.conf --daemon --log-append /dev/console
"""


def client_file(authority: str, client: Pair, public: tuple[str, int]) -> str:
    """Return the complete configuration of a client; `public`: address and port of the cloudpipe."""
    address, port = public
    within = {"ca": authority, "cert": client.certificate, "key": client.key}
    parts = "".join(f"<{name}>\n{text.strip()}\n</{name}>\n" for name, text in within.items())
    return f"""# Start it with: openvpn --config THIS-FILE
client
dev tun
proto udp
remote {address} {port}
nobind
persist-key
persist-tun
remote-cert-tls server
tls-version-min 1.2
data-ciphers {_CIPHERS}
auth SHA256
verb 3
{parts}"""


def _server_conf(place: Place) -> str:
    clients, network = place.clients, place.network
    return f"""mode server
tls-server
proto udp
port {PORT}
dev {_DEVICE}
dev-type tun
persist-tun
persist-key
topology subnet
ifconfig {place.address} {network.netmask}
ifconfig-noexec
ifconfig-pool {clients.first} {clients.last} {network.netmask}
push "topology subnet"
push "route-gateway {place.address}"
keepalive 5 30
ca {_FOLDER}/ca.crt
cert {_FOLDER}/server.crt
key {_FOLDER}/server.key
crl-verify {_FOLDER}/crl.pem
dh none
verify-client-cert require
remote-cert-tls client
tls-version-min 1.2
data-ciphers {_CIPHERS}
auth SHA256
verb 3
"""
