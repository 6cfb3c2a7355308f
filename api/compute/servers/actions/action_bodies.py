"""Bodies of server actions: the single key names the action, and its value has a schema of its own."""

from collections.abc import Mapping, Sequence

from werkzeug.exceptions import UnprocessableEntity

from api.compute import common_body_keys as keys
from api.compute import validation
from api.compute.projects.keypair_bodies import public_key
from api.compute.servers.server_bodies import USER_DATA, disk_config_key, flavor_ref, password, user_data
from api.schema import shapes
from api.schema.body import ABSENT, Body, Ignored, Key, Values, as_given
from climate.compute.migrations.live_migration_requests import AUTO
from climate.compute.models import keypair
from climate.compute.models.server import ACTIVE, ERROR, REBOOT, REBOOT_HARD
from climate.domain.errors import InvalidInput

NOTHING: shapes.Schema = {"type": ["null", "object"], "maxProperties": 0}
"""Content of an action without parameters; whatever a client sends there has no effect."""

WITHOUT_PARAMETERS = (
    *("os-start", "os-stop", "pause", "unpause", "suspend", "resume", "revertResize", "confirmResize", "shelve"),
    *("shelveOffload", "unlock", "forceDelete", "restore", "unrescue"),
    *("injectNetworkInfo", "resetNetwork"),
)
CONSOLES = ("os-getVNCConsole", "os-getSPICEConsole", "os-getSerialConsole")
"""Interactive consoles, none of which is supported."""

REBOOTS = {"SOFT": REBOOT, "HARD": REBOOT_HARD}
STATES = {"active": ACTIVE, "error": ERROR}


def _reboot(value: object, field: str) -> str:
    if not isinstance(value, str) or value.upper() not in REBOOTS:
        raise InvalidInput("reboot: type must be SOFT or HARD")
    return REBOOTS[value.upper()]


def _length(value: object, field: str) -> int | None:
    return None if value in (-1, "-1") else validation.count(value, field)


def _block(value: object, field: str) -> bool | str:
    return AUTO if value == AUTO else validation.flag(value, field)


def _null(value: object, field: str) -> None:
    if value is not None:
        raise InvalidInput(f'The body must be {{"{field}": null}}')


class Reboot(Body):
    """Kind of a reboot."""

    UNKNOWN = "reboot: {first!r} cannot be set; known are {sorted}"

    type = Key(_reboot, shapes.one_of(*REBOOTS), required=True)

    def read_value(self, value: object, field: str) -> Values:
        """Return the kind; whatever is no object is refused as one without a type."""
        return self.read(value if isinstance(value, dict) else {})


class NewImage(Body):
    """Image of a server."""

    UNKNOWN = "createImage: {first!r} cannot be set; known are {sorted}"
    PREFIX = "createImage."

    name = keys.name(required=True)
    metadata = keys.metadata_or_empty()


class Backup(Body):
    """Backup of a server, and how many of its type the server keeps."""

    UNKNOWN = "createBackup: {first!r} cannot be set; known are {sorted}"
    PREFIX = "createBackup."

    name = keys.name(required=True)
    backup_type = keys.name(required=True)
    rotation = keys.count(required=True)
    metadata = keys.metadata_or_empty()


class Resize(Body):
    """Flavor that a server gets."""

    UNKNOWN = "resize: {first!r} cannot be set; known are {sorted}"

    flavor_ref = flavor_ref()
    disk_config = disk_config_key(default=ABSENT)


class Rebuild(Body):
    """Image of a server from now on, and what changes with it."""

    UNKNOWN = "rebuild: {unknown} cannot be set"
    PREFIX = "rebuild."

    image_ref = Key(as_given, shapes.uuid(), key="imageRef", required=True)
    name = keys.name(default=ABSENT)
    metadata = keys.metadata(default=ABSENT)
    description = keys.description(named="description")
    password = Key(password, shapes.text(), key="adminPass", default="")
    preserve_ephemeral = Ignored(shapes.flag())
    disk_config = disk_config_key(default=ABSENT)
    key_name = keys.name(default=ABSENT).or_null()
    user_data = Key(user_data, USER_DATA, default=ABSENT).or_null()
    public_key = Key(public_key, shapes.text(keypair.LONGEST), default=ABSENT)
    """Key of the user's key pair in the parent zone; only parent zones send it."""


class Rescue(Body):
    """Image that a server is rescued with; None: its own."""

    UNKNOWN = "rescue: {first!r} cannot be set; known are {sorted}"
    PREFIX = "rescue."
    IS_NULLABLE = True

    password = Key(password, shapes.text(), key="adminPass", default="")
    image_ref = Key(as_given, shapes.uuid(), key="rescue_image_ref").or_null()


class Migrate(Body):
    """Destination of a cold migration."""

    UNKNOWN = 'migrate must be null or like {{"host": "node-2"}}'
    PREFIX = "migrate."
    IS_NULLABLE = True

    host = keys.name().or_null()


class MigrateLive(Body):
    """Destination of a live migration."""

    UNKNOWN = "os-migrateLive: {first!r} cannot be set; known are {sorted}"
    MISSING = "os-migrateLive: {first} must be given"
    PREFIX = "os-migrateLive."

    host = keys.name(required=True).or_null()
    block_migration = Key(_block, {"anyOf": [shapes.flag(), shapes.one_of(AUTO)]}, required=True)
    force = keys.flag(default=ABSENT)


class MigrateLiveWithDisk(MigrateLive):
    """The form before 2.25, in which the client says whether disks are copied."""

    block_migration = keys.flag(required=True)
    disk_over_commit = keys.flag(required=True)


class Evacuate(Body):
    """Destination of a server whose host is down."""

    UNKNOWN = "evacuate: {first!r} cannot be set; known are {sorted}"
    PREFIX = "evacuate."

    host = keys.name().or_null()
    password = keys.name(key="adminPass", default=ABSENT)
    force = keys.flag(default=ABSENT)
    on_shared_storage = keys.flag(key="onSharedStorage", default=ABSENT)


class Unshelve(Body):
    """Availability zone in which a shelved server starts."""

    UNKNOWN = 'unshelve must be null or like {{"availability_zone": "nova"}}'
    IS_NULLABLE = True

    zone = Key(validation.zone_name, shapes.name(), key="availability_zone").or_null()


class Lock(Body):
    """Reason of a lock."""

    UNKNOWN = 'lock must be null or like {{"locked_reason": "why"}}'
    PREFIX = "lock."
    IS_NULLABLE = True

    reason = keys.name(key="locked_reason").or_null()


class State(Body):
    """State that an administrator gives to a server."""

    UNKNOWN = "os-resetState: {first!r} cannot be set; known are {sorted}"

    state = keys.word(STATES, f"os-resetState: state must be {' or '.join(STATES)}", required=True)


class ConsoleOutput(Body):
    """Number of the last lines of a console log; -1 and null: all."""

    UNKNOWN = "os-getConsoleOutput: {first!r} cannot be set; known are {sorted}"
    IS_NULLABLE = True

    length = Key(_length, shapes.number(-1)).or_null()


class ForceComplete(Body):
    """Order to complete a live migration."""

    UNKNOWN = MISSING = 'The body must be {{"force_complete": null}}'

    force_complete = Key(_null, {"type": "null"}, required=True)


class AddressBody(Body):
    """Body of an address action; without its required key the answer is 422, as in Nova."""

    def read_value(self, value: object, field: str) -> Values:
        """Return the values; UnprocessableEntity if the required key is absent."""
        needed = [name for name, key in self.keys().items() if key.is_required]
        lacking = next((name for name in needed if not isinstance(value, dict) or name not in value), None)
        if lacking is not None:
            raise UnprocessableEntity(f"{field}: {lacking} is missing")
        return super().read_value(value, field)


class AddFixed(AddressBody):
    """Network of one more fixed IP."""

    UNKNOWN = "addFixedIp: {first!r} cannot be set; known are {sorted}"

    network_id = keys.uuid(key="networkId", required=True)


class RemoveFixed(AddressBody):
    """Fixed IP that a server loses."""

    UNKNOWN = "removeFixedIp: {first!r} cannot be set; known are {sorted}"

    address = keys.name(required=True)


class AddFloating(Body):
    """Floating IP, and the fixed IP to which it leads; the default is the first of the server."""

    UNKNOWN = "addFloatingIp: {first!r} cannot be set; known are {sorted}"

    address = keys.address(required=True)
    fixed_address = keys.address().or_null()


class RemoveFloating(Body):
    """Floating IP that a server loses."""

    UNKNOWN = "removeFloatingIp: {first!r} cannot be set; known are {sorted}"

    address = keys.address(required=True)


class GroupName(Body):
    """Name or id of a security group."""

    UNKNOWN = "{first!r} is unknown; there is {sorted}"

    name = keys.name(required=True)


FORCE_COMPLETE, GROUP_NAME = ForceComplete(), GroupName()
REBOOT_BODY, CREATE_IMAGE, BACKUP, RESIZE, REBUILD_FORWARDED = Reboot(), NewImage(), Backup(), Resize(), Rebuild()
REBUILD = Rebuild(exclude=("public_key",))
REBUILD_TO_53 = Rebuild(exclude=("key_name", "user_data", "public_key"))
REBUILD_54_TO_56 = Rebuild(exclude=("user_data", "public_key"))
RESCUE, MIGRATE, UNSHELVE, LOCK = Rescue(), Migrate(), Unshelve(), Lock()
RESET_STATE, CONSOLE_OUTPUT = State(), ConsoleOutput()
ADD_FIXED, REMOVE_FIXED, ADD_FLOATING, REMOVE_FLOATING = AddFixed(), RemoveFixed(), AddFloating(), RemoveFloating()

LIVE_TO_24 = MigrateLiveWithDisk(exclude=("force",))
LIVE, LIVE_TO_67 = MigrateLive(exclude=("force",)), MigrateLive()
EVACUATE_TO_13 = Evacuate(exclude=("force",))
EVACUATE, EVACUATE_29_TO_67 = Evacuate(exclude=("force", "on_shared_storage")), Evacuate(exclude=("on_shared_storage",))

FORMS: Mapping[str, Sequence[Body]] = {
    "reboot": (REBOOT_BODY,),
    "createImage": (CREATE_IMAGE,),
    "createBackup": (BACKUP,),
    "resize": (RESIZE,),
    "rebuild": (REBUILD_TO_53, REBUILD),
    "rescue": (RESCUE,),
    "migrate": (MIGRATE,),
    "os-migrateLive": (LIVE_TO_24, LIVE_TO_67),
    "evacuate": (EVACUATE_TO_13, EVACUATE_29_TO_67),
    "unshelve": (UNSHELVE,),
    "lock": (LOCK,),
    "os-resetState": (RESET_STATE,),
    "os-getConsoleOutput": (CONSOLE_OUTPUT,),
    "addFixedIp": (ADD_FIXED,),
    "removeFixedIp": (REMOVE_FIXED,),
    "addFloatingIp": (ADD_FLOATING,),
    "removeFloatingIp": (REMOVE_FLOATING,),
    "addSecurityGroup": (GROUP_NAME,),
    "removeSecurityGroup": (GROUP_NAME,),
}
"""Action -> the forms of its content over all microversions."""


def shape() -> shapes.Schema:
    """Return the JSON schema of all actions."""
    forms = [shapes.below(action, form.shape()) for action, bodies in FORMS.items() for form in bodies]
    nothing = [shapes.below(action, NOTHING) for action in WITHOUT_PARAMETERS]
    consoles = [shapes.below(console, shapes.thing(type=shapes.text())) for console in CONSOLES]
    return {"anyOf": [*nothing, *forms, *consoles]}
