"""Cells, described."""

from api.compute.openapi.shapes import (
    Operation,
    Schema,
    answer,
    below,
    flag,
    name,
    number,
    one_of,
    or_null,
    text,
    thing,
)

LINE = or_null(text(1024, pattern=r"^[\x20-\x7e]*$"))
WEIGHT: Schema = {"type": "number", "minimum": -1e12, "maximum": 1e12}

LINK = {
    "type": one_of("parent", "child"),
    "username": LINE,
    "password": LINE,
    "rpc_host": or_null(text(255, pattern="^[A-Za-z0-9_.:-]*$")),
    "rpc_port": or_null(number(1, 65535)),
    "rpc_virtual_host": or_null(text(5, pattern="^[0-9]*$")),
    "transport_url": or_null(text(1000, pattern=r"^((redis|rediss|unix)://[\x21-\x7e]+)?$")),
    "secret": or_null({"type": "string", "minLength": 16, "maxLength": 1024, "pattern": r"^[\x20-\x7e]*$"}),
    "weight_offset": WEIGHT,
    "weight_scale": WEIGHT,
}
NAME = text(64, pattern="^[A-Za-z0-9_-]+$")

CELL = "/os-cells/<name>"
CAPACITIES = answer("cell")

OPERATIONS = {
    ("GET", "/os-cells"): Operation({200: answer("cells", "array")}),
    ("POST", "/os-cells"): Operation(
        {200: answer("cell")}, below("cell", thing(("name",), name=NAME, **LINK)), refuses=(409,)
    ),
    ("GET", "/os-cells/detail"): Operation({200: answer("cells", "array")}),
    ("GET", "/os-cells/info"): Operation({200: answer("cell")}),
    ("GET", "/os-cells/capacities"): Operation({200: CAPACITIES}),
    ("POST", "/os-cells/sync_instances"): Operation(
        {204: None},
        thing(project_id=name(), updated_since={"type": "string", "format": "date-time"}, deleted=flag()),
    ),
    ("GET", CELL): Operation({200: answer("cell")}),
    ("PUT", CELL): Operation({200: answer("cell")}, below("cell", thing(**LINK))),
    ("DELETE", CELL): Operation({204: None}, query={"force": flag()}, refuses=(409,)),
    ("GET", f"{CELL}/capacities"): Operation({200: CAPACITIES}),
}
