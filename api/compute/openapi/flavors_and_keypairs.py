"""OpenAPI descriptions of flavors and keypairs."""

from api.compute.projects.flavor_bodies import ACCESS, DESCRIBED, EXTRA_SPECS, NEW
from api.compute.projects.flavor_bodies import SPECS as SPEC_VALUES
from api.compute.projects.flavor_query import SORTS
from api.compute.projects.keypair_bodies import NEW as KEYPAIR
from api.schema.shapes import PAGE, Operation, answer, number, one_of, text, texts

LIST = {
    **PAGE,
    "is_public": one_of("true", "false", "none", "None", "True", "False", "1", "0"),
    "minRam": number(),
    "minDisk": number(),
    "sort_key": one_of(*SORTS),
    "sort_dir": one_of("asc", "desc"),
}

ONE = "/flavors/<flavor_id>"
SPECS = f"{ONE}/os-extra_specs"

OPERATIONS = {
    ("GET", "/flavors"): Operation({200: answer("flavors", "array")}, query=LIST),
    ("GET", "/flavors/detail"): Operation({200: answer("flavors", "array")}, query=LIST),
    ("POST", "/flavors"): Operation({200: answer("flavor")}, NEW.shape(), refuses=(409,)),
    ("GET", ONE): Operation({200: answer("flavor")}),
    ("PUT", ONE): Operation({200: answer("flavor")}, DESCRIBED.shape(), refuses=(409,)),
    ("DELETE", ONE): Operation({202: None}, refuses=(409,)),
    ("GET", SPECS): Operation({200: answer("extra_specs")}),
    ("POST", SPECS): Operation({200: answer("extra_specs")}, EXTRA_SPECS.shape(), refuses=(409,)),
    ("GET", f"{SPECS}/<key>"): Operation({200: texts()}),
    ("PUT", f"{SPECS}/<key>"): Operation({200: texts()}, SPEC_VALUES | {"maxProperties": 1}, refuses=(409,)),
    ("DELETE", f"{SPECS}/<key>"): Operation({200: None}, refuses=(409,)),
    ("GET", f"{ONE}/os-flavor-access"): Operation({200: answer("flavor_access", "array")}),
    ("POST", f"{ONE}/action"): Operation({200: answer("flavor_access", "array")}, ACCESS.shape(), refuses=(409,)),
}

WHOSE = {"user_id": text()}
KEYPAIRS = {
    ("GET", "/os-keypairs"): Operation({200: answer("keypairs", "array")}, query={**PAGE, **WHOSE}),
    ("POST", "/os-keypairs"): Operation(
        {200: answer("keypair"), 201: answer("keypair")}, KEYPAIR.shape(), refuses=(409,)
    ),
    ("GET", "/os-keypairs/<name>"): Operation({200: answer("keypair")}, query=WHOSE),
    ("DELETE", "/os-keypairs/<name>"): Operation({202: None, 204: None}, query=WHOSE),
}
