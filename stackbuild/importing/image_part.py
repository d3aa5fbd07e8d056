"""The configuration of an image as a spec's ``image`` block, without what its base and its build bring."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stackbuild.importing.base import RecognisedBase
from stackbuild.scan.scan import Scan

_OURS = re.compile(r"org\.opencontainers\.image\..+|io\.stackbuild\..+")
_ALWAYS_THERE = re.compile(
    r"/opt/venv/bin|/usr/local/(nvidia|cuda)(-[0-9.]+)?/(bin|lib|lib64)|(/usr(/local)?)?/s?bin"
)
_OF_WHEELS = re.compile(r"/opt/venv/lib/python[0-9.]+/site-packages/.+")
_PATHS = ("PATH", "LD_LIBRARY_PATH")
_UNITS = (("h", 3600 * 10**9), ("m", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
_NOT_IN_A_SPEC = {
    "OnBuild": "instructions for images built on top",
    "Shell": "a shell for instructions in shell form",
    "Domainname": "a domain name",
    "Hostname": "a host name",
}


@dataclass(frozen=True)
class ImagePart:
    """The ``image`` block, and what could not be expressed."""

    block: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def image_part(scan: Scan, base: RecognisedBase) -> ImagePart:
    """Read how containers of an image start.

    Args:
        scan: The image.
        base: What it stands on.
    """
    config = scan.files.description.run_config
    notes: list[str] = []
    block: dict[str, Any] = {
        "env": _environment(scan, base, notes),
        "workdir": _text(config.get("WorkingDir"), unless="/"),
        **_start(config, base),
        "expose": sorted(_keys(config.get("ExposedPorts")), key=lambda port: (len(port), port)),
        "healthcheck": _healthcheck(config.get("Healthcheck")),
        "volumes": sorted(_keys(config.get("Volumes"))),
        "labels": {
            name: value
            for name, value in sorted(scan.files.description.labels.items())
            if name not in base.labels and not _OURS.fullmatch(name)
        },
        "user": _user(scan, notes),
        "stop-signal": _text(config.get("StopSignal")),
    }
    notes += [
        f"image: {meaning} ({name}) cannot be set."
        for name, meaning in _NOT_IN_A_SPEC.items()
        if config.get(name)
    ]
    kept = {name: value for name, value in block.items() if value not in (None, "", {}, [])}
    return ImagePart(kept, tuple(notes))


def _environment(scan: Scan, base: RecognisedBase, notes: list[str]) -> dict[str, str]:
    found = {}
    for name, value in scan.files.description.environment.items():
        if name in base.variables:
            continue
        if name not in _PATHS:
            found[name] = value
            continue
        other = [
            part
            for part in value.split(":")
            if part and not _ALWAYS_THERE.fullmatch(part) and not _OF_WHEELS.fullmatch(part)
        ]
        if other:
            notes.append(
                f"image: {name} also has {', '.join(other)}; it is put together anew from base and wheels."
            )
    return found


def _start(config: Mapping[str, Any], base: RecognisedBase) -> dict[str, Any]:
    entrypoint, command = _texts(config.get("Entrypoint")), _texts(config.get("Cmd"))
    found: dict[str, Any] = {}
    if entrypoint and tuple(entrypoint) == base.entrypoint:
        found["entrypoint"] = "keep"
    elif entrypoint:
        found["entrypoint"] = entrypoint
    if command and (found.get("entrypoint") not in (None, "keep") or tuple(command) != base.command):
        found["cmd"] = command
    return found


def _healthcheck(stated: Any) -> dict[str, Any]:
    if not isinstance(stated, Mapping) or not _texts(stated.get("Test")):
        return {}
    times = {"interval": "Interval", "timeout": "Timeout", "start-period": "StartPeriod"}
    found: dict[str, Any] = {"test": _texts(stated.get("Test"))}
    found |= {name: _duration(stated[key]) for name, key in times.items() if _is_count(stated.get(key))}
    if _is_count(stated.get("Retries")):
        found["retries"] = stated["Retries"]
    return found


def _duration(nanoseconds: int) -> str:
    return next(f"{nanoseconds // size}{unit}" for unit, size in _UNITS if nanoseconds % size == 0)


def _user(scan: Scan, notes: list[str]) -> dict[str, Any]:
    stated = _text(scan.files.description.run_config.get("User")) or "root"
    wanted, _, group = stated.partition(":")
    if wanted in ("root", "0"):
        return {}
    accounts = scan.files.fact("accounts", "etc/passwd") or ()
    row = next((row for row in accounts if wanted in (row[0], str(row[1]))), None)
    if row is None:
        notes.append(
            f"image: the user is {stated}, of whom /etc/passwd says nothing; name and uid are needed."
        )
        return {}
    name, uid, gid, home = row
    if group and group not in (name, str(gid)):
        notes.append(f"image: the group is {group}, and the one of user {name} is {gid}.")
    found = {"name": name, "uid": uid}
    if gid != uid:
        found["gid"] = gid
    if home and home != f"/home/{name}":
        found["home"] = home
    return found


def _text(value: Any, *, unless: str = "") -> str:
    return value if isinstance(value, str) and value != unless else ""


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else []


def _keys(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, Mapping) else []


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
