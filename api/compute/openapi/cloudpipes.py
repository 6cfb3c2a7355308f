"""OpenAPI descriptions of cloudpipes and their certificates."""

from collections.abc import Mapping

from api.compute.openapi.networks import ADDRESS
from api.compute.openapi.shapes import Operation, answer, below, flag, name, number, thing

PIPES = "/os-cloudpipe"
ONE = f"{PIPES}/<project_id>"
CERTIFICATES = f"{ONE}/certificates"

CONFIGURED = thing(("vpn_ip", "vpn_port"), vpn_ip=ADDRESS, vpn_port=number(1, 65535), project_id=name())

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", PIPES): Operation({200: answer("cloudpipes", "array")}),
    ("POST", PIPES): Operation(
        {200: answer("instance_id", "string")},
        below("cloudpipe", thing(("project_id",), project_id=name())),
        refuses=(409,),
    ),
    ("PUT", f"{PIPES}/configure-project"): Operation(
        {202: None}, below("configure_project", CONFIGURED), refuses=(409,)
    ),
    ("DELETE", ONE): Operation({202: None}, query={"authority": flag()}, refuses=(409,)),
    ("GET", CERTIFICATES): Operation({200: answer("certificates", "array")}),
    ("POST", CERTIFICATES): Operation(
        {201: answer("certificate")}, below("certificate", thing(("name",), name=name())), refuses=(409,)
    ),
    ("DELETE", f"{CERTIFICATES}/<serial>"): Operation({202: None}, refuses=(409,)),
}
