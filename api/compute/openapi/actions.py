"""OpenAPI descriptions of server actions: a body with one key."""

from api.compute.openapi.networks import ADDRESSING
from api.compute.openapi.servers import DISK_CONFIG
from api.compute.openapi.shapes import (
    Operation,
    Schema,
    below,
    flag,
    name,
    number,
    one_of,
    or_null,
    text,
    texts,
    thing,
    uuid,
)

NOTHING: Schema = {"type": ["null", "object"], "maxProperties": 0}

WISHES = ("os-start", "os-stop", "pause", "unpause", "suspend", "resume", "revertResize", "confirmResize", "shelve")

CONSOLES = ("os-getVNCConsole", "os-getSPICEConsole", "os-getSerialConsole")
"""Interactive consoles, none of which is supported."""

REBUILD = thing(
    ("imageRef",),
    imageRef=uuid(),
    name=name(),
    metadata=texts(),
    description=or_null(text()),
    adminPass=text(),
    preserve_ephemeral=flag(),
    **DISK_CONFIG,
)

LIVE = thing(
    ("host", "block_migration"),
    host=or_null(name()),
    block_migration={"anyOf": [flag(), one_of("auto")]},
    disk_over_commit=flag(),
    force=flag(),
)

ACTION: Schema = {
    "anyOf": [
        *(below(wish, NOTHING) for wish in (*WISHES, "shelveOffload", "unlock", "forceDelete")),
        below("reboot", below("type", one_of("SOFT", "HARD"))),
        below("createImage", thing(("name",), name=name(), metadata=texts())),
        below("resize", below("flavorRef", name())),
        below("rebuild", REBUILD),
        below("migrate", or_null(thing(host=or_null(name())))),
        below("os-migrateLive", LIVE),
        below("evacuate", thing(host=or_null(name()), adminPass=text(), force=flag(), onSharedStorage=flag())),
        below("unshelve", or_null(thing(availability_zone=name()))),
        below("lock", or_null(thing(locked_reason=name()))),
        below("os-resetState", below("state", one_of("active", "error"))),
        below("os-getConsoleOutput", thing(length=or_null(number(-1)))),
        *ADDRESSING,
        *(below(console, thing(type=text())) for console in CONSOLES),
    ]
}

CONSOLE = below("remote_console", thing(("protocol", "type"), protocol=text(), type=text()))

OPERATIONS = {
    ("POST", "/servers/<server_id>/action"): Operation(
        {200: {"type": "object"}, 202: None, 204: None}, ACTION, refuses=(409, 422, 501)
    ),
    ("POST", "/servers/<server_id>/remote-consoles"): Operation({}, CONSOLE, refuses=(501,)),
}
