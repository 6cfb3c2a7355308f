"""The bundled cloud with many nodes, all of them registered as hosts that can be reserved."""

from sqlalchemy import text

from climate.bootstrap import Deployment
from climate.cloud import FREEPOOL
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import nodes_file, services

_ENROL = text("UPDATE compute_nodes SET pool = :freepool")

_HOSTS = text("""
    INSERT INTO hosts (hypervisor_hostname, service_name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
                       hypervisor_version, reservable, extra, created_at)
    SELECT name, 'bench', 8, 32768, 200, '{}', 'fake', 1000000, true, '{}', now() FROM compute_nodes ORDER BY id
""")


def furnish(deployment: Deployment, count: int) -> None:
    """Nodes that exist in the cloud's books only; what `climate host register` does for each, done for all at once."""
    nodes_file.write(deployment.settings.home, [NodeSpec(f"node-{n}", 8, 32768, 200) for n in range(1, count + 1)])
    services.furnish(deployment.compute)
    services.refresh(deployment.compute)
    with deployment.climate.engine.begin() as conn:
        conn.execute(_ENROL, {"freepool": FREEPOOL})
        conn.execute(_HOSTS)
