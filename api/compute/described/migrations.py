"""Migrations of servers, described."""

from api.compute.described.shapes import PAGE, Operation, answer, text, uuid

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
    ("GET", OF_SERVER): Operation({200: answer("migrations", "array")}),
    ("GET", f"{OF_SERVER}/<migration_id>"): Operation({200: answer("migration")}),
}
