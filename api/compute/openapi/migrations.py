"""OpenAPI descriptions of migrations."""

from api.compute.servers.actions.action_bodies import FORCE_COMPLETE
from api.schema.shapes import PAGE, Operation, answer, text, uuid

LIST = {
    **PAGE,
    "instance_uuid": uuid(),
    "host": text(),
    "source_compute": text(),
    "status": text(),
    "migration_type": text(),
    "changes-since": text(40),
    "changes-before": text(40),
}

OF_SERVER = "/servers/<server_id>/migrations"

OPERATIONS = {
    ("GET", "/os-migrations"): Operation({200: answer("migrations", "array")}, query=LIST),
    ("GET", "/os-hosts/<name>/moves"): Operation({200: answer("moves", "array")}),
    ("GET", OF_SERVER): Operation({200: answer("migrations", "array")}),
    ("GET", f"{OF_SERVER}/<migration_id>"): Operation({200: answer("migration")}),
    ("DELETE", f"{OF_SERVER}/<migration_id>"): Operation({202: None}, refuses=(409,)),
    ("POST", f"{OF_SERVER}/<migration_id>/action"): Operation({202: None}, FORCE_COMPLETE.shape(), refuses=(409,)),
}
