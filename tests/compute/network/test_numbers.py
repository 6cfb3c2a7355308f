"""Ranges, IPv6 addresses, MACs and names: against what counting through all of them says."""

import re
from ipaddress import IPv4Network, IPv6Network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from climate.compute.errors import BadRequest, ComputeError, Conflict
from climate.compute.models.hostnames import hostname
from climate.compute.network import ipv6, mac_addresses, subnetting
from climate.compute.network.networks import _free as first_free

BLOCK = IPv4Network("10.9.0.0/22")
"""Small enough for all of it to be counted through."""

MACS = st.integers(0, 2**24 - 1).map(lambda low: f"02:16:3e:{low >> 16:02x}:{low >> 8 & 255:02x}:{low & 255:02x}")
PREFIXES = st.integers(0, 2**64 - 1).map(lambda high: IPv6Network((high << 64, 64)))


@st.composite
def ranges(draw: st.DrawFn) -> IPv4Network:
    """A range in the block, or around it."""
    length = draw(st.integers(18, 30))
    block = BLOCK.supernet(new_prefix=length) if length < BLOCK.prefixlen else BLOCK
    size = 1 << (32 - length)
    place = draw(st.integers(0, max(0, block.num_addresses // size - 1)))
    return IPv4Network((int(block.network_address) + place * size, length))


def counted(cidr: IPv4Network, count: int, size: int, taken: list[IPv4Network]) -> list[IPv4Network] | type[Exception]:
    """What `cut` should answer: every subnet is tried, address by address."""
    length = next(length for length in range(32, -1, -1) if 1 << (32 - length) >= size)
    if length < cidr.prefixlen or count << (32 - length) > cidr.num_addresses:
        return BadRequest
    used = {int(address) for one in taken for address in one}
    fitting = [one for one in cidr.subnets(new_prefix=length) if not used & set(range(*bounds(one)))]
    return fitting[:count] if len(fitting) >= count else Conflict


def bounds(one: IPv4Network) -> tuple[int, int]:
    return int(one.network_address), int(one.broadcast_address) + 1


@given(ranges(), st.integers(1, 6), st.integers(8, 300), st.lists(ranges(), max_size=5))
def test_the_first_subnets_that_overlap_nothing(
    cidr: IPv4Network, count: int, size: int, taken: list[IPv4Network]
) -> None:
    expected = counted(cidr, count, size, taken)
    if isinstance(expected, type):
        with pytest.raises(expected):
            subnetting.cut(cidr, count, size, taken)
        return
    assert subnetting.cut(cidr, count, size, taken) == expected


@given(st.integers(-5, 1 << 18))
def test_only_sizes_that_can_be_kept_are_taken(size: int) -> None:
    if subnetting.LEAST <= size <= subnetting.LARGEST:
        length = subnetting.prefix_length(size)
        assert 1 << (32 - length) >= size > 1 << (31 - length)
        return
    with pytest.raises(BadRequest, match="between 8 and 65536"):
        subnetting.prefix_length(size)


def test_a_full_range_is_not_counted_through() -> None:
    whole = IPv4Network("10.0.0.0/8")
    taken = list(whole.subnets(new_prefix=16))
    free = taken.pop()
    assert subnetting.cut(whole, 2, 8, taken) == list(free.subnets(new_prefix=29))[:2]


@given(st.integers(24, 29).map(lambda length: IPv4Network(f"10.0.0.0/{length}")), st.integers(0, 3), st.integers(0, 3))
def test_what_is_reserved_is_at_both_ends(cidr: IPv4Network, bottom: int, top: int) -> None:
    every = list(cidr)
    assert list(subnetting.reserved(cidr, bottom, top)) == every[:bottom] + every[len(every) - top :]


@given(st.integers(0, 2**16), st.integers(40, 68))
def test_prefixes_of_a_range_are_apart_and_inside(place: int, length: int) -> None:
    cidr = IPv6Network(("fd00::", length))
    if length > 64 or place >= 2 ** (64 - length):
        with pytest.raises(BadRequest):
            subnetting.prefix_v6(cidr, place)
        return
    made = subnetting.prefix_v6(cidr, place)
    assert made.prefixlen == 64
    assert made.subnet_of(cidr)
    assert int(made.network_address) - int(cidr.network_address) == place << 64


@given(PREFIXES, MACS, st.text(min_size=1))
def test_ipv6_addresses_lead_back_to_their_macs(prefix: IPv6Network, mac: str, project_id: str) -> None:
    plain = ipv6.of_mac(prefix, mac)
    assert plain in prefix
    assert ipv6.mac_of(plain) == mac
    account = ipv6.of_account(prefix, mac, project_id)
    assert account in prefix
    assert ipv6.mac_of_account(account) == mac


@given(PREFIXES, MACS, MACS)
def test_two_macs_have_two_addresses(prefix: IPv6Network, one: str, other: str) -> None:
    assume(one != other)
    assert ipv6.of_mac(prefix, one) != ipv6.of_mac(prefix, other)
    assert ipv6.of_account(prefix, one, "p") != ipv6.of_account(prefix, other, "p")


@given(st.text(max_size=300), st.uuids().map(str), st.booleans())
def test_every_name_is_one_that_dns_allows(name: str, server_id: str, taken: bool) -> None:
    made = hostname(name, server_id, taken)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", made), "RFC 1123"
    if taken:
        assert made.endswith(server_id[:8])


@given(st.from_regex(r"[a-z0-9]([a-z0-9]|-[a-z0-9]){0,30}", fullmatch=True), st.uuids().map(str))
def test_a_name_that_dns_allows_is_kept(name: str, server_id: str) -> None:
    assert hostname(name, server_id) == name[:63].rstrip("-")
    assert hostname(name.upper(), server_id) == name[:63].rstrip("-")


@given(st.integers(1, 30), st.integers(1, 8), st.sets(st.integers(0, 45)))
def test_the_first_numbers_in_a_row_that_are_free(start: int, count: int, taken: set[int]) -> None:
    expected = next(n for n in range(start, 100) if not taken & set(range(n, n + count)))
    assert first_free(start, count, {None, *taken}) == expected


def test_macs_are_spread() -> None:
    assert len({mac_addresses.choose() for _ in range(500)}) > 490


def test_a_range_in_use_is_named() -> None:
    taken = [IPv4Network("10.9.1.0/24"), IPv4Network("10.9.2.0/24")]
    with pytest.raises(ComputeError, match=r"10.9.0.0/22 has no room for 3 more networks: 10.9.1.0/24, 10.9.2.0/24"):
        subnetting.cut(BLOCK, 3, 256, taken)
