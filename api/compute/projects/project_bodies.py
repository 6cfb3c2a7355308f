"""Bodies of quotas, server groups and cloudpipes."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.schema import shapes
from api.schema.body import ABSENT, Below, Body, Ignored, Key
from climate.compute.placement import server_groups
from climate.domain.errors import InvalidInput

STRICT = (server_groups.AFFINITY, server_groups.ANTI_AFFINITY)


class Quota(Body):
    """Limits of a project; -1: no limit."""

    UNKNOWN = "quota_set: {first!r} cannot be set; there are {known}"
    PREFIX = "quota_set: "

    instances = keys.limit(default=ABSENT)
    cores = keys.limit(default=ABSENT)
    ram_mb = keys.limit(key="ram", default=ABSENT)
    key_pairs = keys.limit(default=ABSENT)
    server_groups = keys.limit(default=ABSENT)
    server_group_members = keys.limit(default=ABSENT)
    fixed_ips = keys.limit(default=ABSENT)
    floating_ips = keys.limit(default=ABSENT)
    security_groups = keys.limit(default=ABSENT)
    security_group_rules = keys.limit(default=ABSENT)
    metadata_items = keys.limit(default=ABSENT)
    injected_files = keys.limit(default=ABSENT)
    injected_file_content_bytes = keys.limit(default=ABSENT)
    injected_file_path_bytes = keys.limit(default=ABSENT)
    force = keys.flag(named="force", default=False)
    tenant_id = Ignored(shapes.text())


class QuotaClass(Quota):
    """Limits of a quota class; -1: no limit."""

    UNKNOWN = "quota_class_set: {first!r} cannot be set; there are {known}"
    PREFIX = "quota_class_set: "


class Rules(Body):
    """Rules of an anti-affinity group."""

    UNKNOWN = f"rules must be empty, or an object with {server_groups.MOST_ON_NODE} alone"
    PREFIX = "rules."

    most = keys.count(1, key=server_groups.MOST_ON_NODE, default=ABSENT)


RULES = Rules()


def _most(value: object, field: str) -> int | None:
    if not isinstance(value, dict):
        raise InvalidInput(Rules.UNKNOWN)
    return RULES.read(value).get("most")


def _policy(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be one of {', '.join(server_groups.KEPT_BY)}")
    return value


def _one_policy(known: tuple[str, ...]) -> Key:
    """Return the key of a list of exactly one policy."""

    def read(value: object, field: str) -> str:
        if not isinstance(value, list) or len(value) != 1 or value[0] not in known:
            raise InvalidInput(f"{field} must be a list of exactly one of {', '.join(known)}")
        return str(value[0])

    shape = shapes.listing(shapes.one_of(*known), 1) | {"minItems": 1}
    return Key(read, shape, key="policies", required=True)


class Group(Body):
    """Server group since 2.64."""

    UNKNOWN = "server_group has no {first!r}; it may have {known}"

    policy = Key(_policy, shapes.one_of(*server_groups.KEPT_BY), required=True)
    most = Key(_most, RULES.shape(), key="rules").or_null()
    name = keys.name(required=True)


class GroupTo63(Body):
    """Server group before 2.64."""

    UNKNOWN = "server_group has no {first!r}; it may have {known}"

    policy = _one_policy(tuple(server_groups.KEPT_BY))
    name = keys.name(required=True)


class GroupTo14(GroupTo63):
    """Server group before 2.15, whose policy is strict."""

    policy = _one_policy(STRICT)


class NewCloudpipe(Body):
    """Project of a cloudpipe."""

    UNKNOWN = "{unknown} cannot be set, only {sorted}"

    project_id = keys.name(required=True)


class CloudpipeAddress(Body):
    """Address at which a cloudpipe is reached; without a project, that of the caller."""

    UNKNOWN = "{unknown} cannot be set, only {sorted}"

    project_id = Key(lambda value, field: validation.name(value, field) if value else None, shapes.name())
    vpn_port = keys.count(1, 65535, required=True)
    vpn_ip = keys.address(required=True)


class NewCertificate(Body):
    """Name of a certificate."""

    UNKNOWN = "{unknown} cannot be set, only {sorted}"

    name = keys.name(required=True)


OF_NETWORKS = ("fixed_ips", "floating_ips", "security_groups", "security_group_rules")
OF_GROUPS = ("server_groups", "server_group_members")
OF_FILES = ("injected_files", "injected_file_content_bytes", "injected_file_path_bytes")

QUOTA = Below("quota_set", Quota())
QUOTA_36_TO_56 = Below("quota_set", Quota(exclude=OF_NETWORKS))
"""Since 2.36 the Network API sets the limits of networks."""
QUOTA_57 = Below("quota_set", Quota(exclude=(*OF_NETWORKS, *OF_FILES)))

QUOTA_CLASS = Below("quota_class_set", QuotaClass(exclude=("force", "tenant_id", *OF_GROUPS)))
QUOTA_CLASS_50_TO_56 = Below("quota_class_set", QuotaClass(exclude=("force", "tenant_id", *OF_NETWORKS)))
QUOTA_CLASS_57 = Below("quota_class_set", QuotaClass(exclude=("force", "tenant_id", *OF_NETWORKS, *OF_FILES)))

GROUP, GROUP_TO_63, GROUP_TO_14 = (Below("server_group", form) for form in (Group(), GroupTo63(), GroupTo14()))
CLOUDPIPE, CLOUDPIPE_ADDRESS = Below("cloudpipe", NewCloudpipe()), Below("configure_project", CloudpipeAddress())
CERTIFICATE = Below("certificate", NewCertificate())
