"""The spec as pydantic models (DESIGN §6). Loading with line numbers is in ``load.py``."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from stackbuild.frozen_model import FrozenModel

StackName = Annotated[str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$", max_length=100)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="sha256 in hex")]
ImageDigest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
ABSOLUTE_PATH = r"^/[^\x00-\x1f]*$"
AbsolutePath = Annotated[str, Field(pattern=ABSOLUTE_PATH)]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Platform = Literal["linux/amd64", "linux/arm64"]
# The frozen stack's fields, by the names they have in reports.
StackField = Literal[
    "architecture",
    "os",
    "kernel",
    "firmware",
    "driver",
    "gpus",
    "container-engine",
    "container-toolkit",
    "deployment-target",
    "image-os",
    "glibc",
    "python",
    "frameworks",
    "cuda-runtime",
    "execution-provider",
    "model-format",
    "package-sources",
    "compiler",
    "cuda-toolkit",
    "profilers",
]


class ImageBaseSpec(FrozenModel):
    """A base image from a registry."""

    image: str = Field(min_length=1, description="repository, for example nvidia/cuda")
    tag: str = Field(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$", description="tag, for example 13.0.3-base-ubuntu24.04"
    )
    digest: ImageDigest | None = Field(
        default=None, description="index digest the tag must have; always in the lock"
    )


class BootstrapBaseSpec(FrozenModel):
    """A base made from Debian packages, which needs no image registry."""

    bootstrap: Literal["debian"]
    suite: str = Field(pattern=r"^[a-z][a-z0-9-]*$", description="for example bookworm")


class FrameworkSpec(FrozenModel):
    """One framework: its version, its CUDA variant and the index it comes from."""

    version: str | None = Field(default=None, description="exact version; may come from packages instead")
    variant: str | None = Field(
        default=None,
        pattern=r"^(auto|cpu|cu[0-9]{3}|rocm[0-9.]+)$",
        description="build variant: cpu, cu126, cu130, …; auto resolves from target",
    )
    index: str | None = Field(
        default=None, description="'default' when the default index's build is the variant"
    )


class RequirementsFile(FrozenModel):
    """Requirements taken from a file the team already has."""

    from_: str = Field(
        alias="from",
        description="requirements.txt, pylock.toml, uv.lock or poetry.lock, relative to the spec",
    )
    groups: tuple[str, ...] = Field(
        default=(), description="dependency groups to take (uv.lock, poetry.lock, pylock.toml)"
    )
    extras: tuple[str, ...] = Field(
        default=(), description="extras to take (uv.lock, poetry.lock, pylock.toml)"
    )


class WheelUrl(FrozenModel):
    """One wheel by URL and hash."""

    # That it ends in .whl is a rule of its own, which tells what to do about a source; editors know it from the schema.
    url: str = Field(
        pattern=r"^(https?|file)://.+", json_schema_extra={"pattern": r"^(https?|file)://.+\.whl$"}
    )
    sha256: Sha256


class IndexSpec(FrozenModel):
    """A package index bound to named packages; never merged with others."""

    url: str = Field(pattern=r"^(https?|file)://")
    packages: tuple[str, ...] = Field(
        min_length=1, description="the packages that come from here and only from here"
    )


class AptSource(FrozenModel):
    """A further apt repository with the hash of its signing key."""

    uri: str = Field(pattern=r"^https?://")
    suite: str = Field(min_length=1)
    components: tuple[str, ...] = ("main",)
    key_url: str | None = Field(default=None, description="where the signing key is; default: URI/key.asc")
    key_sha256: Sha256


class FileSpec(FrozenModel):
    """A file or folder copied into the image's last layer."""

    from_: str = Field(alias="from", description="path relative to the spec")
    to: AbsolutePath
    owner: str | None = Field(default=None, description="user name or numeric uid, with optional :group")
    mode: str | None = Field(
        default=None, pattern=r"^[0-7]{3,4}$", description="octal mode for files; default keeps the x bit"
    )


class HealthCheck(FrozenModel):
    """The image's health check."""

    test: tuple[str, ...] = Field(min_length=1, description="command and arguments")
    interval: str | None = None
    timeout: str | None = None
    start_period: str | None = None
    retries: int | None = Field(default=None, ge=1)


class UserSpec(FrozenModel):
    """The user the image runs as."""

    name: str = Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")
    uid: int = Field(ge=1, le=2_147_483_647)
    gid: int | None = Field(default=None, ge=1, le=2_147_483_647, description="default: the uid")
    home: AbsolutePath | None = Field(default=None, description="default: /home/NAME")


def _port_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_PortText = Annotated[str, Field(pattern=r"^[0-9]{1,5}(/(tcp|udp|sctp))?$")]
Port = Annotated[_PortText, BeforeValidator(_port_as_text, json_schema_input_type=int | _PortText)]


class ImageSpec(FrozenModel):
    """What the image's configuration says."""

    env: dict[EnvName, str] = Field(default_factory=dict)
    workdir: AbsolutePath | None = None
    entrypoint: tuple[str, ...] | Literal["keep"] | None = Field(
        default=None, description="the base's entrypoint is reset unless this is 'keep'"
    )
    cmd: tuple[str, ...] | None = None
    expose: tuple[Port, ...] = ()
    healthcheck: HealthCheck | None = None
    volumes: tuple[AbsolutePath, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    user: UserSpec | None = None
    stop_signal: str | None = None


class TargetSpec(FrozenModel):
    """The fleet the image must run on."""

    gpus: tuple[str, ...] = Field(default=(), description="product names or compute capabilities")
    driver: str | None = Field(
        default=None,
        pattern=r"^>=[0-9]+(\.[0-9]+){0,2}$",
        description="the oldest driver in the fleet, for example >=580.65",
    )
    compatibility: Literal["native", "minor", "forward"] = "native"
    production: str | None = Field(
        default=None,
        description="file of 'stackbuild host' or 'stackbuild verify' from production, relative to the spec",
    )
    must_match: tuple[StackField, ...] = Field(
        default=(), description="fields of the frozen stack that must be as in production"
    )

    @model_validator(mode="after")
    def _production_is_known(self) -> TargetSpec:
        if self.must_match and self.production is None:
            raise ValueError("must-match needs 'production': the file that says what production is")
        return self


class ServiceSpec(FrozenModel):
    """The image as a service: started with its own entrypoint, awaited, and asked a recorded request."""

    port: int = Field(ge=1, le=65535)
    ready: str = Field(default="/", pattern=r"^/", description="path that answers below 400 once it is ready")
    ready_within: int = Field(default=60, ge=1, description="seconds until it must be ready")
    method: Literal["GET", "POST", "PUT"] = "POST"
    path: str = Field(default="/", pattern=r"^/", description="path of the recorded request")
    headers: dict[str, str] = Field(default_factory=dict)
    request: str | None = Field(default=None, description="file with the recorded request's body")
    answer: str | None = Field(default=None, description="file with the recorded answer: JSON, or else bytes")
    tolerance: float = Field(
        default=0.0, ge=0, description="largest relative error of a number in the answer"
    )
    latency: float | None = Field(
        default=None, gt=0, description="milliseconds in which 95 % of the answers must come"
    )
    requests: int = Field(default=20, ge=1, le=10_000)
    environment: dict[EnvName, str] = Field(default_factory=dict)


class VerifySpec(FrozenModel):
    """What verification runs beyond its own gates."""

    onnx_model: str | None = None
    torch_model: str | None = Field(default=None, pattern=r"^.+\.py:[A-Za-z_][A-Za-z0-9_]*$")
    allow_cpu_ops: tuple[str, ...] = ()
    memory_margin: str | None = Field(default=None, pattern=r"^[0-9]{1,2}(\.[0-9]+)?%$")
    shm_size: str | None = Field(default=None, pattern=r"^[0-9]+[kmg]?$")
    user: str | None = Field(
        default=None, min_length=1, description="user that verification runs as; default: the image's own"
    )
    ulimits: dict[str, int] = Field(
        default_factory=dict, description="limits of the container, soft and hard, for example memlock: -1"
    )
    read_only: bool = Field(default=False, description="run with a read-only root file system")
    tolerance: dict[Literal["fp64", "fp32", "tf32", "fp16", "bf16"], float] = Field(default_factory=dict)
    batch: int = Field(default=1, ge=1, description="batch that torch-model is built with")
    concurrency: int = Field(
        default=1, ge=1, description="how many run the model, or call the service, at a time"
    )
    training: bool = Field(
        default=False, description="measure the memory of a training step with its optimizer"
    )
    tensorrt: bool = Field(default=False, description="also run onnx-model on TensorRT")
    checks: tuple[str, ...] = ()
    service: ServiceSpec | None = None


class Waiver(FrozenModel):
    """A finding that is accepted for a while; shown in every report, a failure once past or unused."""

    code: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    match: str = Field(
        default="", description="text that the finding's subject or summary contains; empty matches all"
    )
    reason: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    until: date


def _base_kind(value: Any) -> str:
    """Tell the two kinds of base apart, so that only the meant one's problems are reported."""
    bootstrap = "bootstrap" in value if isinstance(value, dict) else isinstance(value, BootstrapBaseSpec)
    return "bootstrap-base" if bootstrap else "image-base"


def _package_kind(value: Any) -> str:
    """Tell the three ways to name packages apart, so that only the meant one's problems are reported."""
    if isinstance(value, dict):
        return "wheel-url" if "url" in value or "sha256" in value else "requirements-file"
    if isinstance(value, WheelUrl):
        return "wheel-url"
    return "requirements-file" if isinstance(value, RequirementsFile) else "requirement"


BaseSpec = Annotated[
    Annotated[ImageBaseSpec, Tag("image-base")] | Annotated[BootstrapBaseSpec, Tag("bootstrap-base")],
    Discriminator(_base_kind),
]
PackageSpec = Annotated[
    Annotated[str, Tag("requirement")]
    | Annotated[RequirementsFile, Tag("requirements-file")]
    | Annotated[WheelUrl, Tag("wheel-url")],
    Discriminator(_package_kind),
]


def _python_version(value: str) -> str:
    if value != "none" and not re.fullmatch(r"3\.[0-9]{1,2}", value):
        raise ValueError(
            'must be a version such as "3.12" (quoted, so that YAML keeps 3.10 apart from 3.1) or none'
        )
    return value


class StackSpec(FrozenModel):
    """One stack, as described by ``stacks/NAME.yaml``."""

    schema_: Literal[1] = Field(alias="schema")
    name: StackName
    summary: str = ""
    base: BaseSpec | None = None
    external: str | None = Field(default=None, description="an image that others built, in place of base")
    python: Annotated[str, AfterValidator(_python_version)] = Field(
        default="none",
        description="version from the distribution, into /opt/venv; none: an image without Python",
    )
    pip: bool = Field(default=False, description="also put pip into /opt/venv")
    frameworks: dict[str, FrameworkSpec] = Field(default_factory=dict)
    packages: tuple[PackageSpec, ...] = ()
    indexes: dict[str, IndexSpec] = Field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    exclude: tuple[str, ...] = Field(default=(), description="distributions that must not be installed")
    prereleases: tuple[str, ...] = Field(
        default=(), description="distributions whose pre-releases are allowed"
    )
    apt: tuple[str, ...] = ()
    apt_sources: tuple[AptSource, ...] = ()
    files: tuple[FileSpec, ...] = ()
    image: ImageSpec = Field(default_factory=ImageSpec.model_construct)
    platforms: tuple[Platform, ...] = Field(default=("linux/amd64",), min_length=1)
    target: TargetSpec = Field(default_factory=TargetSpec.model_construct)
    verify: VerifySpec = Field(default_factory=VerifySpec.model_construct)
    waivers: tuple[Waiver, ...] = ()

    @model_validator(mode="after")
    def _one_origin(self) -> StackSpec:
        if (self.base is None) == (self.external is None):
            raise ValueError("exactly one of 'base' and 'external' is needed")
        return self
