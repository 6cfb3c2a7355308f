"""Values of security group rules, which Compute and Network read alike."""

from ipaddress import ip_network

from climate.compute.models.security_group import PROTOCOLS, SecurityRule
from climate.compute.network.render.port_filter import ICMP, ICMPV6, WITH_PORTS
from climate.domain.errors import InvalidInput
from climate.whole_numbers import whole_number


def protocol(value: object, field: str) -> str | None:
    """Return the name or the number of an IP protocol, as given; None for any."""
    text = str(value).lower()
    if value is None or text in ("any", "-1", "0"):
        return None
    number = whole_number(text)
    if isinstance(value, bool) or not (text in PROTOCOLS or (number is not None and number < 256)):
        names = ", ".join(PROTOCOLS)
        raise InvalidInput(f"{field} must be a number from 0 to 255 or one of {names}, not {text[:40]!r}")
    return text


def cidr(value: object, field: str) -> str | None:
    """Return a range of addresses, of either version; None for any."""
    if value in (None, ""):
        return None
    try:
        return str(ip_network(value if isinstance(value, str) else "", strict=False))
    except ValueError:
        raise InvalidInput(f"{field} must be a range like 203.0.113.0/24, not {str(value)[:60]!r}") from None


def checked(made: SecurityRule) -> SecurityRule:
    """Return the rule; InvalidInput for values that do not fit together."""
    if made.remote_cidr is not None and made.remote_group_id is not None:
        raise InvalidInput("Only remote_ip_prefix or remote_group_id may be provided.")
    if made.remote_cidr is not None and ip_network(made.remote_cidr).version != made.version:
        raise InvalidInput(f"Conflicting value ethertype: {made.remote_cidr} is no range of IPv{made.version}")
    _check_ports(made)
    return made


def _check_ports(made: SecurityRule) -> None:
    first, last = made.first, made.last
    if first is None and last is None:
        return
    if made.number in (ICMP, ICMPV6):
        if first is None:
            raise InvalidInput("ICMP code (port-range-max) is provided but ICMP type (port-range-min) is missing.")
        _check_icmp("type (port-range-min)", first)
        _check_icmp("code (port-range-max)", last)
        return
    if made.number not in WITH_PORTS:
        raise InvalidInput("Ports need a protocol that has ports: tcp, udp, sctp, dccp or udplite")
    if first is None or last is None or not 1 <= first <= last:
        raise InvalidInput("For TCP/UDP protocols, port_range_min must be <= port_range_max, both from 1 to 65535.")


def _check_icmp(part: str, number: int | None) -> None:
    if number is not None and not 0 <= number <= 255:
        raise InvalidInput(f"Invalid value for ICMP {part}: {number} is not from 0 to 255")
