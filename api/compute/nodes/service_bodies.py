"""Bodies of changes of compute services and of their hosts."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.schema import shapes
from api.schema.body import ABSENT, Body, Key, Values
from climate.domain.errors import InvalidInput

STATUS = "{field} must be enabled or disabled, not {value!r}"
MODES = {"enable": True, "disable": False}


class ServiceBody(Body):
    """Change of a service since 2.53."""

    UNKNOWN = "there is no key {first!r}; there are disabled_reason, forced_down, status"


class ForcedDown(ServiceBody):
    """Service that an administrator declares down, or not any more."""

    MISSING = "No updates were requested. Fields 'status' or 'forced_down' should be specified."

    forced_down = keys.flag(required=True)


class Enabled(ServiceBody):
    """Service that may get servers."""

    enabled = keys.word({"enabled": True}, STATUS, key="status", required=True)
    forced_down = keys.flag(default=ABSENT)


class Disabled(ServiceBody):
    """Service that gets no servers."""

    enabled = keys.word({"disabled": False}, STATUS, key="status", required=True)
    forced_down = keys.flag(default=ABSENT)
    reason = keys.name(key="disabled_reason").or_null()


class NamedService(Body):
    """Host and binary of a service, which name it before 2.53."""

    UNKNOWN = "there is no key {first!r}; there are {sorted}"

    host = keys.name(required=True)
    binary = Key(validation.name, shapes.one_of("nova-compute"), required=True)


class DisabledService(NamedService):
    """Service that is disabled, with the reason."""

    disabled_reason = keys.name(required=True)


class DownService(NamedService):
    """Service that is down, or not any more."""

    forced_down = keys.flag(required=True)


def _mode(value: object, field: str) -> bool:
    word = str(value).strip().lower()
    if word not in MODES:
        raise InvalidInput(f"{field} must be enable or disable, not {word[:40]!r}")
    return MODES[word]


class HostStatus(Body):
    """Status of a service host."""

    UNKNOWN = MISSING = "give status or maintenance_mode, each enable or disable, and with the latter a reason"

    status = Key(_mode, shapes.one_of(*MODES), required=True)


class MaintenanceBegin(HostStatus):
    """Maintenance of a node with its reason, and perhaps the status of a service host."""

    status = Key(_mode, shapes.one_of(*MODES), default=ABSENT)
    maintenance_mode = Key(_mode, shapes.one_of("enable"), required=True)
    reason = keys.name(default=ABSENT)


class MaintenanceEnd(HostStatus):
    """End of the maintenance of a node, and perhaps the status of a service host."""

    status = Key(_mode, shapes.one_of(*MODES), default=ABSENT)
    maintenance_mode = Key(_mode, shapes.one_of("disable"), required=True)


FORCED_DOWN, ENABLED, DISABLED = ForcedDown(), Enabled(), Disabled()
NAMED_SERVICE, DISABLED_SERVICE, DOWN_SERVICE = NamedService(), DisabledService(), DownService()
HOST_STATUS, MAINTENANCE_BEGIN, MAINTENANCE_END = HostStatus(), MaintenanceBegin(), MaintenanceEnd()
SERVICE_FORMS = (FORCED_DOWN, ENABLED, DISABLED, NAMED_SERVICE, DISABLED_SERVICE, DOWN_SERVICE)
HOST_FORMS = (HOST_STATUS, MAINTENANCE_BEGIN, MAINTENANCE_END)


def service(body: Values) -> Values:
    """Return the change of a service since 2.53."""
    given = {key: value for key, value in body.items() if value is not None or key == "forced_down"}
    if "disabled_reason" in given and given.get("status") != "disabled":
        raise InvalidInput("Specifying disabled_reason requires that status is 'disabled'.")
    form = FORCED_DOWN if "status" not in given else DISABLED if given["status"] == "disabled" else ENABLED
    return {"enabled": None, "reason": None, "forced_down": None} | form.read(given)


def host(body: Values) -> Values:
    """Return the change of a host, with at least one of status and maintenance_mode."""
    if "maintenance_mode" not in body:
        return HOST_STATUS.read(body)
    begins = _mode(body["maintenance_mode"], "maintenance_mode")
    if "reason" in body and not begins:
        raise InvalidInput("reason belongs to maintenance_mode: enable")
    return (MAINTENANCE_BEGIN if begins else MAINTENANCE_END).read(body)
