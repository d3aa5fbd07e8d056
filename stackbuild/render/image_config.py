"""The image's configuration: a pure function of spec, lock and layers.

Its sha256 is the config digest, which is the same on every machine and engine (DESIGN §3.1). The fields are
those of the OCI image specification 1.1 (config.md); Healthcheck and Shell are Docker's (moby,
image/spec/spec.md 1.3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stackbuild.errors import SpecError
from stackbuild.image_environment import environment_of
from stackbuild.layers.venv import VENV, VenvLayout
from stackbuild.lock.base import base_config
from stackbuild.lock.model import PlatformLock
from stackbuild.render.library_path import library_folders
from stackbuild.spec.model import HealthCheck, Platform, StackSpec

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_ANY_PLATFORM = "linux/amd64"  # how a container starts does not depend on it

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)")
_NANOSECONDS = {
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "µs": 10**3,
    "ns": 1,
}


@dataclass(frozen=True)
class ConfigLayer:
    """One layer as the configuration names it."""

    diff_id: str
    created_by: str


def run_config(spec: StackSpec, lock: PlatformLock, labels: Mapping[str, str]) -> dict[str, Any]:
    """The ``config`` part: how a container of the image starts.

    The base's entrypoint is reset unless the spec keeps it; its command stays unless the spec gives one.

    Args:
        spec: The stack.
        lock: One platform's lock.
        labels: Labels above the base's own.
    """
    image, base = spec.image, base_run_config(lock)
    config: dict[str, Any] = {
        key: base[key] for key in ("User", "WorkingDir", "Cmd", "StopSignal", "Shell") if base.get(key)
    }
    config["Env"] = [f"{key}={value}" for key, value in environment(spec, lock).items()]
    if image.entrypoint == "keep":
        config["Entrypoint"] = base.get("Entrypoint")
    elif image.entrypoint:
        config["Entrypoint"] = list(image.entrypoint)
        config.pop("Cmd", None)  # the base's arguments are not this program's
    if image.cmd is not None:
        config["Cmd"] = list(image.cmd)
    if image.workdir:
        config["WorkingDir"] = image.workdir
    if image.user:
        # By number: Kubernetes' runAsNonRoot cannot judge a name. The group is the one in the image's passwd.
        config["User"] = str(image.user.uid)
    if image.stop_signal:
        config["StopSignal"] = image.stop_signal
    if image.healthcheck:
        config["Healthcheck"] = _healthcheck(image.healthcheck)
    elif base.get("Healthcheck"):
        config["Healthcheck"] = base["Healthcheck"]
    ports = {**(base.get("ExposedPorts") or {}), **{_port(port): {} for port in image.expose}}
    volumes = {**(base.get("Volumes") or {}), **{path: {} for path in image.volumes}}
    merged = {**(base.get("Labels") or {}), **labels}
    config.update({"ExposedPorts": ports, "Volumes": volumes, "Labels": merged})
    return {key: value for key, value in config.items() if value not in (None, {}, [], "")}


def image_config(
    spec: StackSpec,
    lock: PlatformLock,
    *,
    platform: Platform,
    layers: Sequence[ConfigLayer],
    labels: Mapping[str, str],
    created: str,
) -> bytes:
    """The whole configuration as canonical JSON.

    Args:
        spec: The stack.
        lock: The platform's lock.
        platform: For example linux/amd64.
        layers: All layers, the base's first.
        labels: Labels above the base's own.
        created: RFC 3339.
    """
    os_name, architecture = platform.split("/")
    base = base_config(lock.base, platform)
    whole: dict[str, Any] = {
        "architecture": base.get("architecture", architecture),
        "os": base.get("os", os_name),
        "created": created,
        "config": run_config(spec, lock, labels),
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": created, "created_by": layer.created_by} for layer in layers],
    }
    if base.get("variant"):
        whole["variant"] = base["variant"]
    return json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def base_run_config(lock: PlatformLock) -> Mapping[str, Any]:
    """How a container of the bare base starts."""
    return base_config(lock.base, _ANY_PLATFORM).get("config") or {}


def environment(spec: StackSpec, lock: PlatformLock) -> dict[str, str]:
    """The image's environment: the base's, the places of Python and CUDA libraries first, the spec's on top."""
    merged = environment_of(base_run_config(lock))
    merged.setdefault("PATH", DEFAULT_PATH)
    if lock.python is not None:
        merged["PATH"] = f"/{VENV}/bin:{merged['PATH']}"
        folders = library_folders(lock.wheels, VenvLayout.of(lock.python).site_packages)
        if folders:
            before = merged.get("LD_LIBRARY_PATH")
            merged["LD_LIBRARY_PATH"] = ":".join([*folders, *([before] if before else [])])
    return {**merged, **spec.image.env}


def nanoseconds(duration: str) -> int:
    """A duration such as 30s or 1m30s in nanoseconds (the notation of Go's time.ParseDuration, Docker's own).

    Raises:
        SpecError: It is not a duration.
    """
    parts = _DURATION.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise SpecError(
            f"'{duration}' is not a duration", code="spec-invalid", do="Write it as 30s, 5m or 1m30s."
        )
    return round(sum(float(number) * _NANOSECONDS[unit] for number, unit in parts))


def _healthcheck(check: HealthCheck) -> dict[str, Any]:
    test = list(check.test)
    if test[0] not in ("CMD", "CMD-SHELL", "NONE"):
        test = ["CMD", *test]
    times = {"Interval": check.interval, "Timeout": check.timeout, "StartPeriod": check.start_period}
    result: dict[str, Any] = {"Test": test}
    result.update({key: nanoseconds(value) for key, value in times.items() if value})
    if check.retries:
        result["Retries"] = check.retries
    return result


def _port(port: str) -> str:
    return port if "/" in port else f"{port}/tcp"
