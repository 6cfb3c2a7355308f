"""Log of usage audits, which no compute service of climate runs."""

from datetime import UTC, datetime, timedelta

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.request_context import compute
from climate.compute.cells.state import inventory
from climate.domain.errors import InvalidInput

Body = dict[str, object]

FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")

blueprint = compute_blueprint("usage_audit")


@blueprint.get("/os-instance_usage_audit_log")
def last() -> Body:
    """Show the usage audits of the last full month: none."""
    validation.may_administer()
    return {"instance_usage_audit_logs": _log(datetime.now(UTC))}


@blueprint.get("/os-instance_usage_audit_log/<before>")
def before(before: str) -> Body:
    """Show the usage audits of the last full month before a time: none."""
    validation.may_administer()
    return {"instance_usage_audit_log": _log(_time(before))}


def _time(text: str) -> datetime:
    for form in FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise InvalidInput(f"Invalid timestamp {text[:40]!r}: use a form like 2026-11-23 21:00:00")


def _log(before: datetime) -> Body:
    """Return the log of the last full month before a time; as in a Nova without audits, no service has run one."""
    ending = before.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if ending <= datetime.min.replace(tzinfo=UTC):
        raise InvalidInput("The time must be later than the first month of the calendar")
    hosts = sorted({service.host for service in inventory.services_of(compute(), None).items})
    return {
        "period_beginning": _shown((ending - timedelta(days=1)).replace(day=1)),
        "period_ending": _shown(ending),
        "num_hosts": len(hosts),
        "num_hosts_done": 0,
        "num_hosts_running": 0,
        "num_hosts_not_run": len(hosts),
        "hosts_not_run": hosts,
        "total_instances": 0,
        "total_errors": 0,
        "overall_status": f"0 of {len(hosts)} hosts done. 0 errors.",
        "log": {},
    }


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
