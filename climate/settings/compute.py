"""Settings of compute services and images of the bundled cloud."""

from dataclasses import dataclass

from climate.settings.setting_fields import setting


@dataclass(frozen=True)
class ComputeSettings:
    """Nodes, migrations, images and volumes."""

    compute_host: str = setting("", "Name of the compute service of this worker; when empty, the machine's name.")
    service_down_seconds: int = setting(60, "Seconds without a report after which a compute service is down.", 1)
    migrate_from: str = setting(
        "",
        "Pools, by commas, whose hosts migrate their servers away: draining, recycling, maintenance; when "
        "empty, hosts wait.",
    )
    resize_confirm_window: int = setting(
        0, "Seconds after which a migration or resize of a server is confirmed; 0: only its owner confirms it."
    )
    nodes_file: str = setting("nodes.yaml", "Nodes of this compute service; a path below CLIMATE_HOME, or from /.")
    qemu_accel: str = setting(
        "auto",
        "Accelerator of virtual machines: kvm, tcg, or auto: kvm if the CPU supports it.",
        words=("auto", "kvm", "tcg"),
    )
    migration_address: str = setting(
        "", "IP address at which this compute service receives live migrations of other machines; when empty, none."
    )
    migration_ports: str = setting("49152-49215", "TCP ports for incoming live migrations; each uses two of them.")
    migration_seconds: int = setting(800, "Timeout of a live migration, in seconds.", 1)
    max_image_mb: int = setting(1024, "Maximum size of an uploaded image, in MB.", 1)
    images_per_project: int = setting(500, "Maximum of images of a project; -1: no limit.", -1)
    image_mb_per_project: int = setting(102400, "Maximum size of all images of a project, in MB; -1: no limit.", -1)
    image_disk_free_mb: int = setting(1024, "Disk space that images leave free, in MB.", 0)
    volume_gb_per_project: int = setting(0, "GB of a project's volumes without a lease; 0: none; -1: no limit.", -1)
