"""What a registry keeps that is no image, or one whose documents do not fit together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stackbuild.errors import ScanError
from stackbuild.registry.client import RegistryClient
from stackbuild.scan.sources.registry import RegistrySource
from tests.support.layer_tars import compressed, digest, image_config, layer_tar
from tests.support.registry import OCI_MANIFEST, Registry

LAYER = layer_tar({"etc/os-release": "ID=debian\n"})
TYPES = {
    "image": "application/vnd.oci.image.config.v1+json",
    "layer": "application/vnd.oci.image.layer.v1.tar+gzip",
}


def pushed(registry: Registry, repository: str, config: Any, layers: list[bytes]) -> str:
    """An image of that configuration and these layers as blobs; its reference."""
    document = json.dumps(config).encode()
    registry.put_blob(repository, document)
    for layer in layers:
        registry.put_blob(repository, layer)
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": TYPES["image"], "digest": digest(document), "size": len(document)},
        "layers": [
            {"mediaType": TYPES["layer"], "digest": digest(layer), "size": len(layer)} for layer in layers
        ],
    }
    registry.put_manifest(repository, "1", json.dumps(manifest).encode(), OCI_MANIFEST)
    return f"{registry.address}/{repository}:1"


@pytest.mark.parametrize(
    "rootfs", [None, 5, [], {}, {"diff_ids": None}, {"diff_ids": 5}, {"diff_ids": ["a", "b"]}], ids=repr
)
def test_a_configuration_that_does_not_fit_is_said(rootfs: Any, registry: Registry) -> None:
    config = image_config([LAYER]) | {"rootfs": rootfs}
    reference = pushed(registry, "scan-unfit", config, [compressed(LAYER, "gzip")])
    with RegistryClient({}) as client, pytest.raises(ScanError) as caught:
        RegistrySource(client, reference)
    assert caught.value.code == "archive-damaged"
    assert caught.value.detail.startswith("1 layer for ")


def test_a_chart_is_no_image(registry: Registry) -> None:
    reference = pushed(
        registry, "scan-chart", {"os": "linux", "architecture": "amd64", "name": "chart"}, [b"chart"]
    )
    with RegistryClient({}) as client, pytest.raises(ScanError, match="this is no image"):
        RegistrySource(client, reference)
