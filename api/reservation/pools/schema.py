"""Schemas of host pools."""

from collections.abc import Mapping
from typing import Any

from marshmallow import RAISE, Schema, fields, validate

from api.reservation.dates import DATE, Moment, out_date
from api.reservation.hosts.schema import StrictBoolean
from api.reservation.leases.schema import EntryOut, LinkOut
from api.reservation.pages import Paged
from api.reservation.unchanged_fields import Update, differing
from api.reservation.view_decorator import Strict
from climate.domain.hosts.pool_scaling import Step
from climate.domain.hosts.pools import DeadlineAction, OnEnd, OnIdle, Pool
from climate.service.host_operations import pool_moves, pools
from climate.service.hosts import reservable as opening

POOLS = [str(pool) for pool in Pool]


def _pool(**more: Any) -> fields.String:
    return fields.String(required=True, validate=validate.OneOf(POOLS), **more)


def _maybe_date() -> fields.String:
    return fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))


class _Exact(Schema):
    class Meta:
        unknown = RAISE


def _number(name: str, says: str) -> fields.Integer:
    most = validate.Range(0, pools.MOST[name])
    return fields.Integer(strict=True, allow_none=True, validate=most, metadata={"description": says})


class TermsOut(_Exact):
    target = fields.Integer(required=True)
    on_end = fields.String(required=True)
    grace_period = fields.Integer(required=True)
    recycle_deadline = fields.String(required=True)
    idle = fields.String(required=True)
    horizon = fields.Integer(required=True)
    spare = fields.Integer(required=True)
    margin = fields.Integer(required=True)
    slack = fields.Integer(required=True)
    dwell = fields.Integer(required=True)
    drain = fields.Boolean(required=True)
    move_servers = fields.Boolean(required=True)
    own = fields.List(fields.String(), required=True, metadata={"description": "Settings of the pool itself."})


class PoolOut(_Exact):
    name = _pool()
    hosts = fields.Integer(required=True)
    unregistered = fields.Integer(
        required=True,
        allow_none=True,
        metadata={"description": "Number of unregistered hosts among them; null if the cloud does not answer."},
    )
    reservable = fields.Integer(required=True)
    promised_now = fields.Integer(required=True)
    promised_next_day = fields.Integer(required=True, metadata={"description": "Allocated now or within 24 hours."})
    drifted = fields.Integer(required=True, metadata={"description": "Hosts that the cloud has in another pool."})
    terms = fields.Nested(
        TermsOut,
        required=True,
        allow_none=True,
        metadata={"description": "Only of the reservation pool; otherwise null."},
    )


class PoolTerms(Update, Strict):
    """Changes of a pool's settings; null restores the value of the settings."""

    answer_key = "pool"
    answer_schema = PoolOut

    target = fields.Integer(
        strict=True,
        allow_none=True,
        validate=validate.Range(0, pools.MOST_HOSTS),
        metadata={"description": "Hosts to which the pool is filled up with empty multi-tenant ones; 0: it is not."},
    )
    on_end = fields.String(allow_none=True, validate=validate.OneOf([str(word) for word in OnEnd]))
    grace_period = fields.Integer(
        strict=True, allow_none=True, validate=validate.Range(0, 10**9), metadata={"description": "Seconds."}
    )
    recycle_deadline = fields.String(allow_none=True, validate=validate.OneOf([str(word) for word in DeadlineAction]))
    idle = fields.String(
        allow_none=True,
        validate=validate.OneOf([str(word) for word in OnIdle]),
        metadata={"description": "Action for a lease that is still idle after two notices: end it, or keep it."},
    )
    horizon = _number("horizon", "Seconds ahead whose allocations set the size of the pool; 0: they do not.")
    spare = _number("spare", "Minimum of hosts beyond the allocated ones.")
    margin = _number("margin", "The same in percent of the allocated hosts; the greater of the two applies.")
    slack = _number("slack", "Hosts beyond the wanted size before any is released.")
    dwell = _number("dwell", "Seconds that a host is idle in the pool before it is released.")
    drain = StrictBoolean(
        allow_none=True,
        metadata={"description": "Whether hosts with servers are drained if too few are empty."},
    )
    move_servers = StrictBoolean(
        allow_none=True, metadata={"description": "Whether servers on draining hosts are moved away."}
    )

    def changes(self, given: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, object]:
        """Return the settings with another value than `shown`, whose settings are below `terms`."""
        terms = shown["terms"] or {}
        own = frozenset({*self.read_only(), "own"})
        nested = given.get("terms")
        if isinstance(nested, dict):
            given = {**nested, **{key: value for key, value in given.items() if key != "terms"}}
            shown = {key: value for key, value in shown.items() if key != "terms"}
        return differing(given, {**terms, **shown}, own)


class PoolAnswer(Schema):
    pool = fields.Nested(PoolOut, required=True)


class PoolsAnswer(Schema):
    pools = fields.List(fields.Nested(PoolOut), required=True)


class ResidentQuery(Paged):
    servers = fields.Boolean(
        metadata={"description": "Include the servers of each host; recycling and draining hosts always have theirs."}
    )


class PromiseOut(_Exact):
    """A period in which a host is allocated."""

    kind = fields.String(required=True, validate=validate.OneOf(["lease", "maintenance", "cleaning", "hold"]))
    state = fields.String(required=True)
    start = out_date()
    end = fields.String(
        required=True,
        allow_none=True,
        validate=validate.Regexp(DATE),
        metadata={"description": "Includes grace and cleaning time; null if it is unknown."},
    )
    slots = fields.Integer(required=True, metadata={"description": "Number of servers; 0: the whole host."})
    lease_id = fields.UUID(required=True, allow_none=True)
    lease_name = fields.String(required=True, allow_none=True)
    project_id = fields.String(required=True, allow_none=True)
    reservation_id = fields.UUID(required=True, allow_none=True)
    start_date = _maybe_date()
    end_date = _maybe_date()
    maintenance_id = fields.UUID(required=True, allow_none=True)
    reason = fields.String(required=True, allow_none=True)


class ServerThere(_Exact):
    id = fields.String(required=True)
    name = fields.String(required=True)
    project_id = fields.String(required=True)
    status = fields.String(required=True)


def _server_count() -> fields.Integer:
    return fields.Integer(
        required=True, allow_none=True, metadata={"description": "Servers on it; null if they are unknown."}
    )


def _servers() -> object:
    return fields.List(
        fields.Nested(ServerThere),
        required=True,
        allow_none=True,
        metadata={"description": "null: not requested, or the cloud does not answer."},
    )


class PlaceOut(_Exact):
    """The pool membership of a host."""

    id = fields.String(required=True, validate=validate.Regexp("^[0-9]+$"))
    name = fields.String(required=True)
    pool = _pool()
    since = out_date()
    reason = fields.String(required=True)
    until = _maybe_date()
    home = _pool()
    reservable = fields.Boolean(required=True)
    on = fields.Boolean(required=True)
    reservation_id = fields.UUID(required=True, allow_none=True)
    version = fields.Integer(required=True)


class ResidentOut(PlaceOut):
    """A host with its pool membership."""

    lease_id = fields.UUID(required=True, allow_none=True)
    project_id = fields.String(required=True, allow_none=True)
    next = fields.Nested(PromiseOut, required=True, allow_none=True)
    drift = fields.String(required=True, metadata={"description": "Reason why the cloud has it in another pool."})
    server_count = _server_count()
    servers = _servers()
    deadline = _maybe_date()
    at_deadline = fields.String(
        required=True,
        allow_none=True,
        validate=validate.OneOf([str(word) for word in DeadlineAction]),
        metadata={"description": "Action for the servers of a recycling host; null: they may stay."},
    )


class StrangerOut(_Exact):
    """A host of the cloud that is not registered."""

    name = fields.String(required=True)
    service_name = fields.String(required=True)
    vcpus = fields.Integer(required=True)
    memory_mb = fields.Integer(required=True)
    local_gb = fields.Integer(required=True)
    availability_zone = fields.String(required=True, allow_none=True)
    server_count = _server_count()
    servers = _servers()


class ResidentsAnswer(Schema):
    hosts = fields.List(fields.Nested(ResidentOut), required=True)
    unregistered = fields.List(
        fields.Nested(StrangerOut),
        allow_none=True,
        metadata={"description": "Only on the first page of the multi-tenant pool; null if the cloud does not answer."},
    )
    hosts_links = fields.List(fields.Nested(LinkOut))


class BacklogQuery(Paged):
    start = Moment(data_key="from")
    end = Moment(data_key="to")


class PlanOut(_Exact):
    id = fields.String(required=True, validate=validate.Regexp("^[0-9]+$"))
    name = fields.String(required=True)
    promises = fields.List(fields.Nested(PromiseOut), required=True)


class BacklogAnswer(Schema):
    start = out_date(data_key="from")
    end = out_date(data_key="to")
    backlog = fields.List(fields.Nested(PlanOut), required=True)
    backlog_links = fields.List(fields.Nested(LinkOut))


class StepOut(_Exact):
    """A host with the action of the next round, or the reason why the round leaves it."""

    id = fields.String(required=True, validate=validate.Regexp("^[0-9]+$"))
    name = fields.String(required=True)
    pool = _pool()
    step = fields.String(required=True, validate=validate.OneOf([str(step) for step in Step]))
    reason = fields.String(required=True)


class LevelOut(_Exact):
    """The number of hosts that are allocated at once from this time on."""

    at = out_date()
    hosts = fields.Integer(required=True)


class FillingOut(_Exact):
    """The target size of the reservation pool with its explanation."""

    at = out_date()
    until = out_date()
    managed = fields.Boolean(
        required=True,
        metadata={"description": "Whether allocations set the size of the pool; otherwise its target does."},
    )
    hosts = fields.Integer(required=True, metadata={"description": "Hosts of the pool without failed ones."})
    draining = fields.Integer(required=True, metadata={"description": "Hosts that join the pool when they are empty."})
    promised = fields.Integer(required=True, metadata={"description": "Maximum of hosts allocated at once until then."})
    promised_at = _maybe_date()
    spare = fields.Integer(required=True, metadata={"description": "Wanted hosts beyond the allocated ones."})
    target = fields.Integer(required=True, metadata={"description": "Minimum of wanted hosts."})
    wanted = fields.Integer(required=True)
    most = fields.Integer(required=True, metadata={"description": "Hosts beyond this number are released."})
    lacking = fields.Integer(required=True, metadata={"description": "Wanted hosts for which no candidate is left."})
    moves = fields.List(fields.Nested(StepOut), required=True)
    kept = fields.List(
        fields.Nested(StepOut),
        required=True,
        metadata={"description": "If too few hosts can be released: the others with the reason of each."},
    )
    backlog = fields.List(fields.Nested(LevelOut), required=True)


class PlanAnswer(Schema):
    plan = fields.Nested(FillingOut, required=True)


def _reason(longest: int) -> fields.String:
    return fields.String(load_default="", validate=validate.Length(max=longest))


class MoveOrder(Strict):
    """Hosts to move to the pool, all of them or none."""

    hosts = fields.List(
        fields.String(validate=validate.Length(1, 255)),
        required=True,
        validate=validate.Length(1, pool_moves.MOST_HOSTS),
        metadata={"description": "Ids or names."},
    )
    reason = _reason(pool_moves.LONGEST_REASON)
    force = StrictBoolean(
        load_default=False,
        metadata={"description": "Also hosts of leases, which get other hosts if any are free."},
    )
    source = fields.String(
        data_key="from",
        load_default=None,
        allow_none=True,
        validate=validate.OneOf(POOLS),
        metadata={"description": "Move only if all of them are in this pool."},
    )


class MoveOut(_Exact):
    host = fields.Nested(PlaceOut, required=True, metadata={"description": "The host after the move."})
    moved = fields.Boolean(required=True, metadata={"description": "False: it was in the pool already."})
    source = _pool(data_key="from")
    leases = fields.List(
        fields.Nested(PromiseOut),
        required=True,
        metadata={"description": "Allocations of leases that were lost."},
    )


class MovesAnswer(Schema):
    moves = fields.List(fields.Nested(MoveOut), required=True)


class Opening(Strict):
    """Switch that lets a host get new allocations."""

    reservable = StrictBoolean(required=True)
    reason = _reason(opening.LONGEST_REASON)


class PlaceAnswer(Schema):
    host = fields.Nested(PlaceOut, required=True)


class HostHistoryAnswer(Schema):
    history = fields.List(fields.Nested(EntryOut), required=True)
