"""JSON views of images."""

from climate.compute.models.image import Image


def view(image: Image) -> dict[str, object]:
    """Return an image with all details; its properties are keys beside its attributes."""
    return dict(image.properties) | {
        "id": image.id,
        "name": image.name,
        "status": image.status,
        "visibility": image.visibility,
        "protected": image.protected,
        "os_hidden": image.hidden,
        "owner": image.project_id,
        "min_disk": image.min_disk_gb,
        "min_ram": image.min_ram_mb,
        "size": image.size,
        "virtual_size": None,
        "checksum": None,
        "os_hash_algo": "sha512" if image.sha512 else None,
        "os_hash_value": image.sha512,
        "disk_format": image.disk_format,
        "container_format": image.container_format,
        "tags": list(image.tags),
        "created_at": f"{image.created_at:%Y-%m-%dT%H:%M:%SZ}" if image.created_at else None,
        "updated_at": f"{image.updated_at:%Y-%m-%dT%H:%M:%SZ}" if image.updated_at else None,
        "self": f"/v2/images/{image.id}",
        "file": f"/v2/images/{image.id}/file",
        "schema": "/v2/schemas/image",
    }
