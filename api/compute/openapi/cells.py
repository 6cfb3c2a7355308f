"""OpenAPI descriptions of the routes of cells."""

from api.compute.cells.cell_bodies import CELL as NEIGHBOUR
from api.compute.cells.cell_bodies import CHANGED, SYNC
from api.schema.shapes import Operation, answer, flag

CELL = "/os-cells/<name>"
CAPACITIES = answer("cell")

OPERATIONS = {
    ("GET", "/os-cells"): Operation({200: answer("cells", "array")}),
    ("POST", "/os-cells"): Operation({200: answer("cell")}, NEIGHBOUR.shape(), refuses=(409,)),
    ("GET", "/os-cells/detail"): Operation({200: answer("cells", "array")}),
    ("GET", "/os-cells/info"): Operation({200: answer("cell")}),
    ("GET", "/os-cells/capacities"): Operation({200: CAPACITIES}),
    ("POST", "/os-cells/sync_instances"): Operation(
        {204: None},
        SYNC.shape(),
    ),
    ("GET", CELL): Operation({200: answer("cell")}),
    ("PUT", CELL): Operation({200: answer("cell")}, CHANGED.shape()),
    ("DELETE", CELL): Operation({204: None}, query={"force": flag()}, refuses=(409,)),
    ("GET", f"{CELL}/capacities"): Operation({200: CAPACITIES}),
}
