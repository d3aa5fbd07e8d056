"""The commented spec that ``stackbuild init`` writes."""

from __future__ import annotations

import re

from stackbuild.errors import UsageError
from stackbuild.spec.schema import SCHEMA_FILE

_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_STARTER = """\
# yaml-language-server: $schema={schema}
schema: 1
name: {name}
summary: What this image is for, in one line

# Where it begins. This one is made from Debian's own packages and needs no image registry. For a GPU:
#   base: {{image: nvidia/cuda, tag: 13.0.3-base-ubuntu24.04}}
# (-base is enough: the CUDA libraries come with the wheels; its Python is 3.12.)
base: {{bootstrap: debian, suite: bookworm}}
python: "3.11"                # the distribution's own, in quotes: YAML reads 3.10 as 3.1

frameworks:
  onnxruntime: {{version: "1.31.1"}}
  # torch: {{version: "2.13.0", variant: cpu}}       # or cu126, cu128, cu130; auto resolves from target
  # onnxruntime-gpu: {{version: "1.31.1"}}           # in place of onnxruntime

packages:
  - numpy<3
  # - {{from: requirements.txt}}                     # also pylock.toml, uv.lock, poetry.lock
  # - {{url: "https://…/NAME-1.0-cp311-cp311-linux_x86_64.whl", sha256: …}}

# Packages that come from an index of your own, and only from there:
# indexes: {{corp: {{url: "https://…/simple", packages: [ourlib]}}}}

# apt: [libgomp1]             # Debian packages

# files:                      # relative to this file; the image's last layer
#   - {{from: app/, to: /srv/app}}

# image:                      # what the image's configuration says
#   workdir: /srv/app
#   cmd: [python, serve.py]
#   expose: [8080]
#   user: {{name: app, uid: 1001}}

platforms: [linux/amd64]

# target:                     # the fleet the image must run on; `stackbuild check` judges against it
#   gpus: [H200, L40S]        # product names or compute capabilities
#   driver: ">=580.65"        # the oldest driver in the fleet
"""


def check_name(name: str) -> None:
    """Refuse what cannot be a stack's name.

    Raises:
        UsageError: ``stack-name``, with a name that would do where one is near.
    """
    if _NAME.fullmatch(name) and len(name) <= 100:
        return
    near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:100].strip("-")
    raise UsageError(
        f"'{name}' cannot be a stack's name: it is lower-case letters and digits, in parts joined by one of . _ -",
        code="stack-name",
        do=f"Try {near}." if near else "",
    )


def starter_spec(name: str, *, schema: str = SCHEMA_FILE) -> str:
    """Return a commented spec to start from.

    Args:
        name: The stack's name.
        schema: Where the editor finds the schema, relative to the spec.

    Raises:
        UsageError: ``stack-name``.
    """
    check_name(name)
    return _STARTER.format(name=name, schema=schema)
