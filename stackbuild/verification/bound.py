"""What a run that took place elsewhere is bound to: it says so itself, and is judged as nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from stackbuild.frozen_model import FrozenModel
from stackbuild.layers.chain import chain_key
from stackbuild.verification.promise import Promise

Emitted = Literal["k8s-job", "sbatch", "compose"]


class Bound(FrozenModel):
    """What a run was of.

    An image is the same when its configuration is; where an engine does not tell the configuration's digest
    (the containerd store), when its layers are.
    """

    image: str = Field(description="the reference that was asked for")
    runs: str = Field(description="the reference that is run, by digest")
    config_digest: str = Field(default="", description="sha256:…; empty when it is not known")
    layers: str = Field(description="sha256 over the diff IDs")
    promise_sha256: str
    suite_sha256: str
    gpus: str = Field(description="the GPU selection")
    by: Emitted

    def of_image(self, config_digest: str, diff_ids: Sequence[str]) -> bool:
        """Whether this is a run of the image with that configuration and those layers."""
        if self.config_digest and config_digest:
            return self.config_digest == config_digest
        return self.layers == chain_key(diff_ids)


def promise_digest(promise: Promise) -> str:
    """sha256, in hex, of what is promised, the same in every checkout: without the paths of files, with their hashes."""
    document = promise.model_dump(mode="json")
    document["onnx_model"] = bool(promise.onnx_model)
    return hashlib.sha256(json.dumps(_without_paths(document), sort_keys=True).encode()).hexdigest()


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        file = "sha256" in value
        return {name: _without_paths(inner) for name, inner in value.items() if not (file and name == "path")}
    return [_without_paths(inner) for inner in value] if isinstance(value, list) else value
