"""Rules of security groups for the interfaces of servers, and their renewal after a change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_network

from sqlalchemy import Connection

from climate.compute.models.security_group import SecurityRule, default_id
from climate.compute.network import ipv6
from climate.compute.network.models import Vif
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.render.port_filter import FilterRule, allows_all
from climate.compute.store.networks import fixed_ips, security_groups

Remotes = Mapping[str, Sequence[str]]
"""Id of a security group -> addresses of its servers."""


def of_vifs(conn: Connection, options: NetworkOptions, vifs: Sequence[Vif]) -> dict[str, tuple[FilterRule, ...] | None]:
    """Return the allowed traffic of each of these interfaces; None: all."""
    ids = sorted({group_id for vif in vifs for group_id in vif.security_groups or ()})
    known = (
        {group.id: group.rules for group in security_groups.listed(conn, security_groups.of_ids(ids))} if ids else {}
    )
    remotes = _remotes(conn, options, [rule for rules in known.values() for rule in rules])
    return {vif.id: _of_vif(vif, known, remotes) for vif in vifs}


def _of_vif(vif: Vif, known: Mapping[str, Sequence[SecurityRule]], remotes: Remotes) -> tuple[FilterRule, ...] | None:
    if not vif.admin_up:
        return ()
    groups = vif.security_groups
    # The group `default` has no row before its first change, and allows all traffic.
    if groups is None or (default_id(vif.project_id) in groups and default_id(vif.project_id) not in known):
        return None
    rules = tuple(_filter(rule, remotes) for group_id in groups for rule in known.get(group_id, ()))
    return None if allows_all(rules) else rules


def _filter(rule: SecurityRule, remotes: Remotes) -> FilterRule:
    made = FilterRule(rule.direction, rule.version, rule.number, rule.first, rule.last)
    if rule.remote_group_id is not None:
        addresses = [ip_network(address) for address in remotes.get(rule.remote_group_id, ())]
        return replace(made, remotes=tuple(one for one in addresses if one.version == rule.version))
    if rule.remote_cidr is not None and ip_network(rule.remote_cidr).prefixlen:
        return replace(made, remotes=(ip_network(rule.remote_cidr),))
    return made


def _remotes(conn: Connection, options: NetworkOptions, rules: Sequence[SecurityRule]) -> Remotes:
    groups = sorted({rule.remote_group_id for rule in rules if rule.remote_group_id is not None})
    if not groups:
        return {}
    members = security_groups.members(conn, groups)
    vifs = fixed_ips.vifs_of(conn, sorted({server_id for _, server_id, _ in members}))
    result: dict[str, list[str]] = {}
    for vif in vifs:
        for group_id in set(groups).intersection(vif.security_groups or ()):
            result.setdefault(group_id, []).extend(_addresses(options, vif))
    return result


def _addresses(options: NetworkOptions, vif: Vif) -> list[str]:
    own = [str(address) for address in vif.addresses]
    if vif.network.cidr_v6 is None:
        return own
    made = ipv6.address(options.ipv6_backend, vif.network.cidr_v6, vif.mac, vif.project_id)
    return own if made is None else [*own, str(made)]
