"""Networks: created, listed, claimed by hosts, assigned to projects."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from sqlalchemy import Connection, RowMapping, Text, cast, exists, func, insert, or_, select, text, update
from sqlalchemy import delete as delete_from

from climate.compute.network.models import FLAT, FLAT_DHCP, Draft, Network
from climate.compute.store.clock import NOW
from climate.compute.store.columns import in_array, in_parameter
from climate.compute.store.tables.networks import addresses, networks
from climate.database.advisory_locks import Subject

_COLUMNS = """
    n.id::text, n.subnet_id::text, n.label, n.manager, n.cidr::text, n.cidr_v6::text, host(n.gateway) AS gateway,
    host(n.gateway_v6) AS gateway_v6, host(n.dhcp_start) AS dhcp_start, n.dns::text[] AS dns, n.bridge,
    n.bridge_interface, n.vlan, host(n.vpn_private_address) AS vpn_private_address,
    host(n.vpn_public_address) AS vpn_public_address, n.vpn_public_port, n.injected, n.project_id, n.host, n.created_at,
    n.by_project, n.subnet_name, n.routed, n.ranges, n.routes
"""

_LIST = text(f"""
    SELECT {_COLUMNS} FROM compute_networks n
    WHERE (CAST(:ids AS text[]) IS NULL OR n.id::text = ANY(CAST(:ids AS text[])))
      AND (CAST(:project_id AS text) IS NULL OR n.project_id IS NULL AND n.vlan IS NULL OR n.project_id = :project_id)
    ORDER BY n.created_at, n.vlan, n.cidr
""")

# The lock prevents a network from changing its project while a server gets an interface in it.
_SHARED = text(f"""
    SELECT {_COLUMNS} FROM compute_networks n
    WHERE n.host IS NOT NULL AND n.project_id IS NULL AND n.manager IN ('{FLAT}', '{FLAT_DHCP}')
    ORDER BY n.created_at, n.cidr
    FOR SHARE
""")

_OF_PROJECT = text(f"""
    SELECT {_COLUMNS} FROM compute_networks n
    WHERE n.host IS NOT NULL AND n.project_id = :project_id ORDER BY n.vlan, n.cidr FOR SHARE
""")

# Serialize by project first: the second of two concurrent boots finds the network assigned by the first.
_QUEUE = text(Subject.PROJECT_NETWORK.lock("project_id"))

_GIVE = text(f"""
    UPDATE compute_networks n SET project_id = :project_id
    WHERE n.id = (SELECT id FROM compute_networks
                  WHERE project_id IS NULL AND host IS NOT NULL AND manager = 'vlan'
                  ORDER BY vlan LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING {_COLUMNS}
""")

_KEEP = (
    select(networks.c.id)
    .where(in_parameter(cast(networks.c.id, Text), "ids"))
    .order_by(networks.c.id)
    .with_for_update(read=True)
)

_ALONE = text("LOCK TABLE compute_networks IN SHARE ROW EXCLUSIVE MODE")

_FILL = text("""
    INSERT INTO compute_addresses (network_id, address, reserved)
    SELECT CAST(:network_id AS uuid), e.address, e.address = ANY(CAST(:reserved AS inet[]))
    FROM (SELECT CAST(:first AS inet) + i AS address FROM generate_series(0, CAST(:count AS int) - 1) AS i) AS e
""")

# Each claim sets its host's address: a network whose port there leads to another one keeps its own.
_CHANGE = text("""
    UPDATE compute_networks n
    SET injected = coalesce(r.injected, n.injected), gateway_v6 = coalesce(r.gateway_v6, n.gateway_v6),
        vpn_public_address = CASE WHEN EXISTS (SELECT FROM compute_networks o
                                               WHERE o.id <> n.id AND o.vpn_public_address = r.vpn_public_address
                                                 AND o.vpn_public_port = n.vpn_public_port)
                                  THEN n.vpn_public_address
                                  ELSE coalesce(r.vpn_public_address, n.vpn_public_address) END
    FROM jsonb_to_record(CAST(:changes AS jsonb)) AS r(injected boolean, gateway_v6 inet, vpn_public_address inet)
    WHERE n.id = CAST(:id AS uuid)
""")

# Both hosts are called: the new one to serve the network, the old one to stop when it returns. The live hosts are
# read again for a row that another host has claimed while this one waited for it: a join before would be outdated.
UNSERVED = f"""
    (w.host IS NULL
     OR w.host <> :host
        AND NOT EXISTS (SELECT FROM compute_network_hosts h
                        WHERE h.host = w.host AND h.beat_at >= {NOW} - make_interval(secs => :down)))
"""
"""Condition of a network `w` that :host may claim, because no live host serves it."""

_CLAIM = text(f"""
    WITH free AS (SELECT w.id, w.host FROM compute_networks w
                  WHERE {UNSERVED}
                  ORDER BY w.created_at, w.vlan, w.cidr LIMIT 1 FOR NO KEY UPDATE OF w SKIP LOCKED),
    called AS (INSERT INTO compute_network_calls (host)
               SELECT c.host FROM free, unnest(ARRAY[free.host, :host]) AS c(host) WHERE c.host IS NOT NULL)
    UPDATE compute_networks n SET host = :host FROM free WHERE n.id = free.id
    RETURNING {_COLUMNS}
""")

_OWN = text(f"SELECT {_COLUMNS} FROM compute_networks n WHERE n.host = :host ORDER BY n.created_at, n.vlan, n.cidr")


def listed(conn: Connection, project_id: str | None = None) -> list[Network]:
    """Return all networks, oldest first; with a project those that are shared and its own."""
    return _many(conn, _LIST, {"ids": None, "project_id": project_id})


def by_ids(conn: Connection, ids: Sequence[str], project_id: str | None = None) -> dict[str, Network]:
    """Return the existing networks of these ids that the project may use."""
    return {network.id: network for network in _many(conn, _LIST, {"ids": list(ids), "project_id": project_id})}


def shared(conn: Connection) -> list[Network]:
    """Return the flat shared networks that have a host, protected from changes."""
    return _many(conn, _SHARED, {})


def of_project(conn: Connection, project_id: str) -> list[Network]:
    """Return the networks that belong to a project alone and have a host, protected from changes."""
    return _many(conn, _OF_PROJECT, {"project_id": project_id})


def has_any(conn: Connection, project_id: str) -> bool:
    """Return whether a network belongs to a project alone, served or not."""
    query = select(networks.c.id).where(networks.c.project_id == project_id).limit(1)
    return conn.execute(query).first() is not None


def lock(conn: Connection, network_id: str) -> None:
    """Lock a network against concurrent allocation of interfaces."""
    conn.execute(select(networks.c.id).where(cast(networks.c.id, Text) == network_id).with_for_update())


def lock_shared(conn: Connection, ids: Sequence[str]) -> None:
    """Protect networks from changes during the allocation of interfaces."""
    conn.execute(_KEEP, {"ids": list(ids)})


def assign_vlan(conn: Connection, project_id: str, *, more: bool = False) -> Network | None:
    """Assign the lowest VLAN that has a host and no project; None if there is none.

    A project that was assigned a network meanwhile keeps that one, unless it is to have `more`.
    """
    conn.execute(_QUEUE, {"project_id": project_id})
    own = [] if more else of_project(conn, project_id)
    row = None if own else conn.execute(_GIVE, {"project_id": project_id}).mappings().one_or_none()
    return own[0] if own else network_of(row) if row else None


def taken(conn: Connection) -> list[str]:
    """Return the ranges of all networks, and serialize the creation of networks until the transaction ends."""
    conn.execute(_ALONE)
    return list(conn.scalars(select(cast(networks.c.cidr, Text))))


def create(conn: Connection, draft: Draft) -> str:
    """Create a network and its pool of addresses; return its id."""
    row = {
        "label": draft.label,
        "manager": draft.manager,
        "cidr": str(draft.cidr),
        "cidr_v6": _text(draft.cidr_v6),
        "gateway": str(draft.gateway),
        "gateway_v6": _text(draft.gateway_v6),
        "dhcp_start": str(draft.dhcp_start),
        "dns": [str(server) for server in draft.dns],
        "bridge": draft.bridge,
        "bridge_interface": draft.bridge_interface,
        "vlan": draft.vlan,
        "vpn_private_address": _text(draft.vpn_private_address),
        "vpn_public_port": draft.vpn_public_port,
        "project_id": draft.project_id,
        "by_project": draft.by_project,
        "subnet_name": draft.subnet_name,
        "routed": draft.routed,
        "ranges": pairs(draft.ranges),
        "routes": pairs(draft.routes),
    }
    if draft.network_id is not None:
        row["id"] = draft.network_id
    if draft.subnet_id is not None:
        row["subnet_id"] = draft.subnet_id
    network_id = str(conn.execute(insert(networks).values(row).returning(networks.c.id)).scalar_one())
    pool = {"first": str(draft.cidr[0]), "count": draft.cidr.num_addresses}
    conn.execute(_FILL, {"network_id": network_id, "reserved": [str(one) for one in draft.reserved], **pool})
    return network_id


def remake(conn: Connection, network_id: str, draft: Draft) -> None:
    """Change the gateway of a network and the addresses that its pool assigns; no port may have an address."""
    values = {"gateway": str(draft.gateway), "dhcp_start": str(draft.dhcp_start), "ranges": pairs(draft.ranges)}
    set_columns(conn, network_id, values)
    is_reserved = in_array(addresses.c.address, [str(one) for one in draft.reserved])
    conn.execute(update(addresses).where(addresses.c.network_id == network_id).values(reserved=is_reserved))


def change(conn: Connection, network_id: str, changes: str) -> None:
    """Update the keys of a JSON object: injected, gateway_v6, vpn_public_address."""
    conn.execute(_CHANGE, {"id": network_id, "changes": changes})


def set_columns(conn: Connection, network_id: str, changes: Mapping[str, object]) -> None:
    """Update the label, or what DHCP offers: subnet_name, dns, routed, routes."""
    conn.execute(update(networks).where(networks.c.id == network_id).values(**changes))


def pairs(given: Sequence[tuple[object, object]]) -> list[list[str]]:
    """Return pairs of addresses or ranges as they are stored."""
    return [[str(first), str(second)] for first, second in given]


def count(conn: Connection, project_id: str) -> int:
    """Return the number of networks that a project created."""
    query = select(func.count()).where(networks.c.project_id == project_id, networks.c.by_project)
    return conn.execute(query).scalar_one()


def held(conn: Connection, network_id: str) -> int:
    """Return the number of its addresses that ports have, or will have."""
    row = addresses.c
    query = select(func.count()).where(
        row.network_id == network_id, or_(row.vif_id.is_not(None), row.grant_id.is_not(None))
    )
    return conn.execute(query).scalar_one()


def claim(conn: Connection, host: str, now: object, down_seconds: float) -> Network | None:
    """Claim the first network without a live host; None if there is none or others claim it."""
    given = {"host": host, "now": now, "down": down_seconds}
    row = conn.execute(_CLAIM, given).mappings().one_or_none()
    return network_of(row) if row else None


def unclaimed(conn: Connection) -> bool:
    """Return whether there is a network without a host."""
    return bool(conn.scalar(select(exists().where(networks.c.host.is_(None)))))


def own(conn: Connection, host: str) -> list[Network]:
    """Return the networks that a host serves."""
    return _many(conn, _OWN, {"host": host})


def associate(conn: Connection, network_id: str, project_id: str | None, *, unhost: bool = False) -> None:
    """Assign a network to a project or to none; `unhost`: another host may claim it."""
    owner = update(networks).where(networks.c.id == network_id).values(project_id=project_id, by_project=False)
    conn.execute(owner.values(host=None) if unhost else owner)


def in_use(conn: Connection, network_id: str) -> int:
    """Return the number of its addresses that are allocated, or still leased."""
    query = select(func.count()).where(addresses.c.network_id == network_id, addresses.c.server_id.is_not(None))
    return conn.execute(query).scalar_one()


def delete(conn: Connection, network_id: str) -> None:
    """Delete a network and its addresses."""
    conn.execute(delete_from(networks).where(networks.c.id == network_id))


def network_of(row: RowMapping) -> Network:
    """Return the network of a row's columns."""
    given = {name: row[name] for name in Network.__slots__}
    addresses = ("gateway", "gateway_v6", "dhcp_start", "vpn_private_address", "vpn_public_address")
    given |= {name: ip_address(given[name]) for name in addresses if given[name] is not None}
    given |= {name: ip_network(given[name]) for name in ("cidr", "cidr_v6") if given[name] is not None}
    given["ranges"] = tuple((ip_address(first), ip_address(last)) for first, last in given["ranges"])
    given["routes"] = tuple((ip_network(to), ip_address(hop)) for to, hop in given["routes"])
    return Network(**given | {"dns": tuple(ip_address(server.partition("/")[0]) for server in given["dns"])})


def columns() -> str:
    """Return the columns of `n`, a row of networks, as `network_of` reads them."""
    return _COLUMNS


def _many(conn: Connection, query: Any, given: Mapping[str, object]) -> list[Network]:
    return [network_of(row) for row in conn.execute(query, given).mappings()]


def _text(value: object) -> str | None:
    return None if value is None else str(value)
