"""OpenAPI descriptions of cloudpipes and their certificates."""

from collections.abc import Mapping

from api.compute.projects.project_bodies import CERTIFICATE, CLOUDPIPE, CLOUDPIPE_ADDRESS
from api.schema.shapes import Operation, answer, flag

PIPES = "/os-cloudpipe"
ONE = f"{PIPES}/<project_id>"
CERTIFICATES = f"{ONE}/certificates"

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", PIPES): Operation({200: answer("cloudpipes", "array")}),
    ("POST", PIPES): Operation(
        {200: answer("instance_id", "string")},
        CLOUDPIPE.shape(),
        refuses=(409,),
    ),
    ("PUT", f"{PIPES}/configure-project"): Operation({202: None}, CLOUDPIPE_ADDRESS.shape(), refuses=(409,)),
    ("DELETE", ONE): Operation({202: None}, query={"authority": flag()}, refuses=(409,)),
    ("GET", CERTIFICATES): Operation({200: answer("certificates", "array")}),
    ("POST", CERTIFICATES): Operation({201: answer("certificate")}, CERTIFICATE.shape(), refuses=(409,)),
    ("DELETE", f"{CERTIFICATES}/<serial>"): Operation({202: None}, refuses=(409,)),
}
