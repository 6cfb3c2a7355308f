"""climate pool: host pools, their allocations, and their default end actions of leases."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.session import current
from climate.cli.dates import DECISIONS, Moment, MomentType, SpanType, decisions, read, wire
from climate.cli.options import dry, dry_run, listed, output_options

if TYPE_CHECKING:
    from climate.cli.connection.client import Client
    from climate.cli.connection.http_protocols import Sent
    from climate.cli.response_types.leases import Decision
    from climate.cli.response_types.pools import Backlog, MovedHost, Pool, PoolPlan, Resident, Stranger

POOLS = ("name", "hosts", "unregistered", "reservable", "promised_now", "promised_next_day", "drifted")
HOSTS = (
    "id", "name", "since", "reason", "until", "lease_id", "next_start",
    "server_count", "servers", "reservable", "drift",
)  # fmt: skip
BACKLOG = ("id", "name", "pool", "kind", "start", "end", "lease_id", "lease_name", "project_id", "reason")
PLAN = ("id", "name", "pool", "step", "reason")
TERMS = (
    "target", "on_end", "grace_period", "recycle_deadline", "idle", "horizon", "spare", "margin", "slack", "dwell",
    "drain", "move_servers",
)  # fmt: skip

UNREGISTERED = "not registered"

MOVES = ("id", "name", "from", "pool", "moved", "leases")

F = TypeVar("F", bound=Callable[..., object])


@click.group("pool")
def group() -> None:
    """Host pools and their allocations."""


@group.command("list")
@listed
def list_() -> None:
    """List the pools with the number of their hosts, and of those that are allocated."""
    session = current()
    session.show_all(session.client.json("reservation", "GET", "/pools")["pools"], POOLS)


@group.command("show")
@click.argument("pool")
@click.option("--at", type=MomentType(), help="Show the settings at this time, with present figures.")
@output_options
def show(pool: str, at: Moment | None) -> None:
    """Show a pool with its settings, which apply to leases without their own."""
    session = current()
    query = {"at": wire(at.when(session.client.now()))} if at else {}
    session.show(session.client.json("reservation", "GET", f"/pools/{lookup.part(pool)}", params=query)["pool"])


@group.command("history")
@click.argument("pool", default="reservation")
@listed
def history(pool: str) -> None:
    """List the changes of a pool's settings with their authors."""
    session = current()
    lines: list[Decision] = session.client.json("reservation", "GET", f"/pools/{lookup.part(pool)}/history")["history"]
    session.show_all(decisions(lines, "terms"), DECISIONS)


@group.command("hosts")
@click.argument("pool")
@click.option("--servers", is_flag=True, help="Include their servers; those of recycling hosts are always shown.")
@listed
def hosts(pool: str, servers: bool) -> None:
    """List the hosts of a pool with the time and reason of their move, and their next allocation.

    Unregistered hosts of the multi-tenant pool have no id.
    """
    session = current()
    query = {"servers": "true"} if servers else {}
    path = f"/pools/{lookup.part(pool)}/hosts"
    residents: list[Resident] = list(session.client.pages("reservation", path, "hosts", query))
    strangers: list[Stranger] = []
    if pool == "multi-tenant":
        answer = session.client.json("reservation", "GET", path, params={**query, "limit": 1})
        strangers = answer["unregistered"] or []
    plain = session.form in ("json", "yaml")
    rows = [*(residents if plain else map(_flat, residents)), *(_stranger(stranger, plain) for stranger in strangers)]
    session.show_all(rows, HOSTS)


def _flat(row: "Resident") -> dict[str, object]:
    """Return a row with the next allocation and the servers in one cell each."""
    ahead = row.get("next")
    return {**row, "next_start": ahead["start"] if ahead else None, "servers": _servers(row)}


def _stranger(row: "Stranger", plain: bool) -> dict[str, object]:
    """Return a row of a host that is not registered, unless `plain` with the servers in one cell."""
    whole: dict[str, object] = {"id": None, "reason": UNREGISTERED, **row}
    return whole if plain else {**whole, "next_start": None, "servers": _servers(row)}


def _servers(row: "Resident | Stranger") -> str | None:
    servers = row["servers"]
    return None if servers is None else " ".join(f"{server['name']}({server['status']})" for server in servers)


@group.command("set")
@click.argument("pool", default="reservation")
@click.option("--target", type=click.IntRange(0), help="Hosts to which the pool is filled up; 0: it is not.")
@click.option(
    "--horizon", type=SpanType(), help="Time ahead whose allocations set the size of the pool: 2d; 0s: they do not."
)
@click.option("--spare", type=click.IntRange(0), help="Minimum of hosts beyond the allocated ones.")
@click.option("--margin", type=click.IntRange(0, 1000), help="The same in percent; the greater of the two applies.")
@click.option("--slack", type=click.IntRange(0), help="Hosts beyond the wanted size before any is released.")
@click.option("--dwell", type=SpanType(), help="Idle time of a host before it is released: 1h.")
@click.option("--drain/--no-drain", default=None, help="Drain hosts with servers if too few are empty.")
@click.option("--move-servers/--no-move-servers", default=None, help="Move servers away from draining hosts.")
@click.option(
    "--on-end",
    type=click.Choice(["terminate", "recycle", "release"]),
    help="Default action for servers at the end of a lease.",
)
@click.option("--grace", "grace_period", type=SpanType(), help="Default grace period after the end: 30m.")
@click.option(
    "--recycle-deadline",
    type=click.Choice(["terminate", "move"]),
    help="Action for servers on recycling hosts whose next lease starts.",
)
@click.option(
    "--idle", type=click.Choice(["keep", "release"]), help="Action for a lease that is still idle after two notices."
)
@click.option(
    "--unset", type=click.Choice(TERMS), multiple=True,
    help="Restore the value of the settings; repeatable.",
)  # fmt: skip
@dry_run
@output_options
def set_(pool: str, unset: tuple[str, ...], dry_run: bool, **given: str | int | timedelta | None) -> None:
    """Set the target of the reservation pool, and the settings of leases without their own."""
    session = current()
    body = {name: _plain(value) for name, value in given.items() if value is not None} | dict.fromkeys(unset)
    if not body:
        raise click.UsageError("nothing to set")
    path = f"/pools/{lookup.part(pool)}"
    session.show(session.client.json("reservation", "PUT", path, json=body, params=dry(dry_run))["pool"])


def _plain(value: object) -> object:
    return int(value.total_seconds()) if isinstance(value, timedelta) else value


@group.command("backlog")
@click.argument("pool", default="reservation")
@click.option("--all", "all_", is_flag=True, help="Allocations of all pools, also of hosts that are lent now.")
@click.option("--from", "start", type=MomentType(), help="Start of the period; by default now.")
@click.option("--to", "end", type=MomentType(), help="End of the period; by default a week later.")
@listed
def backlog(pool: str, all_: bool, start: Moment | None, end: Moment | None) -> None:
    """List the allocations of a pool's hosts over time: leases, maintenance windows and cleaning."""
    session = current()
    client = session.client
    between = {"from": start, "to": end}
    query = {name: wire(moment.when(client.now())) for name, moment in between.items() if moment}
    names = [pool]
    if all_:
        pools: list[Pool] = client.json("reservation", "GET", "/pools")["pools"]
        names = [one["name"] for one in pools]
    flat = [
        {"id": row["id"], "name": row["name"], "pool": name, **promise}
        for name in names
        for row in _backlog(client, name, query)
        for promise in row["promises"]
    ]
    session.show_all(flat, BACKLOG)


def _backlog(client: "Client", pool: str, query: dict[str, str]) -> "Iterator[Backlog]":
    return client.pages("reservation", f"/pools/{lookup.part(pool)}/backlog", "backlog", query)


@group.command("plan")
@listed
def plan() -> None:
    """Explain the target size of the reservation pool, and the hosts that the next round adds, drains or releases."""
    session = current()
    result: PoolPlan = session.client.json("reservation", "GET", "/pools/reservation/plan")["plan"]
    if session.form in ("json", "yaml"):
        session.show(result)
        return
    click.echo(_plan_text(result), err=True)
    kept = [{**one, "step": f"not to {one['step']}"} for one in result["kept"]]
    session.show_all([*result["moves"], *kept], PLAN)


def _plan_text(plan: "PoolPlan") -> str:
    """Return the plan in two sentences."""
    if not plan["managed"]:
        return f"The pool has {plan['hosts']} hosts and does not follow its backlog; its target is {plan['target']}."
    when = f" at {wire(read(plan['promised_at']))}" if plan["promised_at"] else ""
    least = f", at least {plan['target']}" if plan["target"] else ""
    lacking = f" {plan['lacking']} are lacking." if plan["lacking"] else ""
    return (
        f"Until {wire(read(plan['until']))} at most {plan['promised']} hosts are promised at once{when}. "
        f"With {plan['spare']} spare {plan['wanted']} are wanted{least}, and more than {plan['most']} are too many; "
        f"the pool has {plan['hosts']}, and {plan['draining']} are draining.{lacking}"
    )


class MoveOptions(TypedDict):
    """Options of `moving`, and `dry_run`."""

    reason: str
    force: bool
    source: str | None
    dry_run: bool


def moving(command: F) -> F:
    """Add the options of a move to a command."""
    for option in (
        click.option("--reason", default="", help="Reason, kept in the history of the hosts."),
        click.option("--force", is_flag=True, help="Also hosts of leases, which get other hosts if any are free."),
        click.option("--from", "source", metavar="POOL", help="Move only if all of them are in this pool."),
    ):
        command = option(command)
    return command


def move(hosts: tuple[str, ...], pool: str, options: MoveOptions) -> None:
    """Request a move, and show the pools of the hosts afterwards."""
    session = current()
    body: dict[str, object] = {"hosts": list(hosts), "reason": options["reason"], "force": options["force"]}
    body |= {"from": options["source"]} if options["source"] else {}
    sent: Sent = {"json": body, "params": dry(options["dry_run"])}
    rows: list[MovedHost] = session.client.json("reservation", "POST", f"/pools/{lookup.part(pool)}/moves", **sent)[
        "moves"
    ]
    plain = session.form in ("json", "yaml")
    session.show_all(rows if plain else map(_moved, rows), MOVES)


def _moved(row: "MovedHost") -> dict[str, object]:
    """Return a host that was moved, with its leases in one cell."""
    return {**row["host"], **row, "leases": " ".join(str(one["lease_id"]) for one in row["leases"])}


@group.command("move")
@click.argument("pool")
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@moving
@dry_run
@listed
def move_(pool: str, hosts: tuple[str, ...], **given: Unpack[MoveOptions]) -> None:
    """Move hosts to a pool, all of them or none; --dry-run --force shows the leases that would lose one."""
    move(hosts, pool, given)
