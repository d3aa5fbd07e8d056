"""The SBOM of a stack's image."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild import __version__
from stackbuild.lock.model import PlatformLock
from stackbuild.sbom.cyclonedx_writer import write_cyclonedx
from stackbuild.sbom.inventory import Item, image_inventory
from stackbuild.spec.model import StackSpec


def write_sbom(
    spec: StackSpec,
    lock: PlatformLock,
    *,
    version: str,
    platform: str,
    licences: Mapping[str, tuple[str, ...]],
    config_digest: str | None = None,
) -> bytes:
    """Write the CycloneDX 1.6 JSON of a stack's image for one platform.

    Equal arguments give equal bytes.

    Args:
        spec: The spec.
        lock: The platform's lock.
        version: The image's version, as its tag says it; see ``annotate.tags.image_version``.
        platform: The platform, for example linux/amd64.
        licences: Licences of the wheels, by sha256; see ``licences.wheel_licences``.
        config_digest: The image's config digest (``sha256:…``), when there is an image.
    """
    inventory = image_inventory(lock, licences)
    properties = {"platform": platform, "summary": spec.summary, "config-digest": config_digest or ""}
    root = Item(
        "container",
        spec.name,
        version,
        properties={name: value for name, value in properties.items() if value},
        needs=inventory.top,
    )
    return write_cyclonedx(root, inventory.items, created=lock.created, tool_version=__version__)
