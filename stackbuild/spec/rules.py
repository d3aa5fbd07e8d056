"""Cross-field rules of a spec, as pure functions: what no single field can get wrong alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from stackbuild.distribution_name import normalized_name
from stackbuild.spec.model import BootstrapBaseSpec, ImageBaseSpec, RequirementsFile, StackSpec
from stackbuild.spec.package_rules import PACKAGE_RULES
from stackbuild.spec.rule import Violation
from stackbuild.spelling import closest

_BUILD_ONLY = (
    "pip",
    "packages",
    "indexes",
    "overrides",
    "constraints",
    "exclude",
    "prereleases",
    "apt",
    "apt_sources",
    "files",
    "image",
)
_NEEDS_PYTHON = ("packages", "frameworks", "pip")
# Debian Policy 5.6.1 (package names), with apt-get's =VERSION and :ARCH.
_APT_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?")
# OCI distribution specification 1.1, "Pulling manifests": the grammar of <name>, with a registry host before it.
_REPOSITORY = re.compile(
    r"([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*"
)
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+")  # Go's time.ParseDuration
_OWNER = re.compile(r"([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10})(:([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10}))?")
_SIGNAL = re.compile(r"SIG[A-Z0-9+-]+|[0-9]{1,2}")


def _origin(spec: StackSpec) -> Iterator[Violation]:
    if spec.external is not None:
        for field in _BUILD_ONLY:
            if field in spec.model_fields_set:
                key = field.replace("_", "-")
                yield Violation(
                    (key,),
                    f"'{key}' has no meaning in an external stack, which is not built here",
                    f"Remove {key}, or name a base in place of external.",
                )
        name = spec.external.split("@")[0]
        if not re.fullmatch(_REPOSITORY.pattern + r"(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?", name):
            yield Violation(
                ("external",),
                f"'{spec.external}' is not an image reference",
                "Write REPOSITORY:TAG or REPOSITORY@sha256:DIGEST.",
            )
    elif spec.python == "none":
        for field in _NEEDS_PYTHON:
            if getattr(spec, field):
                yield Violation(
                    (field,),
                    f"'{field}' needs a Python, and this image has none",
                    'Add python: "3.12" (the version that the base\'s distribution has).',
                )
    if isinstance(spec.base, ImageBaseSpec) and not _REPOSITORY.fullmatch(spec.base.image):
        image, _, tag = spec.base.image.rpartition(":")
        hint = f"Write image: {image}, tag: {tag.split('@')[0]}." if image and "/" not in tag else ""
        yield Violation(("base", "image"), f"'{spec.base.image}' is not a repository name", hint)
    if spec.apt_sources and isinstance(spec.base, BootstrapBaseSpec) and not spec.apt:
        yield Violation(
            ("apt-sources",),
            "'apt-sources' is given, but 'apt' takes nothing from it",
            "List the packages under apt, or remove apt-sources.",
        )


def _apt(spec: StackSpec) -> Iterator[Violation]:
    seen: dict[str, int] = {}
    for index, package in enumerate(spec.apt):
        if not _APT_PACKAGE.fullmatch(package):
            yield Violation(
                ("apt", index),
                f"'{package}' is not a Debian package name",
                "Write one package per entry: NAME or NAME=VERSION.",
            )
            continue
        name = package.split("=")[0]
        if name in seen:
            yield Violation(("apt", index), f"'{name}' is listed twice", "Keep one of the two.")
        seen[name] = index


# Specs usually stand in stacks/, and what they copy beside that folder.
_FOLDERS_ABOVE = 1


def leaves_project(path: str) -> bool:
    """Return whether a path, read as text, is absolute or climbs above the folder that holds the spec's."""
    pure = PurePosixPath(path)
    depth = 0
    for part in pure.parts:
        depth += -1 if part == ".." else 1
        if depth < -_FOLDERS_ABOVE:
            return True
    return pure.is_absolute()


def _paths(spec: StackSpec) -> Iterator[Violation]:
    targets: dict[str, int] = {}
    for index, file in enumerate(spec.files):
        if not file.from_ or leaves_project(file.from_):
            yield Violation(
                ("files", index, "from"),
                f"'{file.from_}' is not in the spec's folder or the one above it",
                "Copy it, or move the spec, so that the path needs no leading '/' and '..' at most once.",
            )
        if ".." in PurePosixPath(file.to).parts:
            yield Violation(
                ("files", index, "to"), f"'{file.to}' holds '..'", "Write the path it ends up at."
            )
        target = str(PurePosixPath(file.to))
        if target in targets and not file.to.endswith("/"):
            yield Violation(
                ("files", index, "to"),
                f"'{file.to}' is also where entry {targets[target] + 1} goes",
                "Give each its own.",
            )
        targets[target] = index
        if file.owner is not None and not _OWNER.fullmatch(file.owner):
            yield Violation(
                ("files", index, "owner"),
                f"'{file.owner}' is not an owner",
                "Write USER, UID, USER:GROUP or UID:GID.",
            )
    verify: list[tuple[tuple[str | int, ...], str]] = []
    if spec.verify.onnx_model:
        verify.append((("verify", "onnx-model"), spec.verify.onnx_model))
    if spec.verify.torch_model:
        verify.append((("verify", "torch-model"), spec.verify.torch_model.rpartition(":")[0]))
    verify += [(("verify", "checks", index), check) for index, check in enumerate(spec.verify.checks)]
    for path, text in verify:
        if leaves_project(text):
            yield Violation(
                path,
                f"'{text}' is not in the spec's folder or the one above it",
                "Write a path relative to the spec, with '..' at most once.",
            )
    for index, package in enumerate(spec.packages):
        if isinstance(package, RequirementsFile) and (
            not package.from_ or PurePosixPath(package.from_).is_absolute()
        ):
            yield Violation(
                ("packages", index, "from"),
                f"'{package.from_}' is not a relative path",
                "Write the path relative to the spec.",
            )


def _image(spec: StackSpec) -> Iterator[Violation]:
    image = spec.image
    for index, port in enumerate(image.expose):
        if not 1 <= int(port.split("/")[0]) <= 65535:
            yield Violation(("image", "expose", index), f"{port} is not a port", "Ports are 1 to 65535.")
    for label in image.labels:
        if label.startswith("io.stackbuild."):
            yield Violation(
                ("image", "labels", label),
                f"the label '{label}' is stackbuild's own",
                "Choose a name that does not begin with io.stackbuild.",
            )
    if image.healthcheck is not None:
        for field in ("interval", "timeout", "start_period"):
            value = getattr(image.healthcheck, field)
            if value is not None and not _DURATION.fullmatch(value):
                yield Violation(
                    ("image", "healthcheck", field.replace("_", "-")),
                    f"'{value}' is not a duration",
                    "Write a number and a unit: 30s, 2m, 500ms.",
                )
    if image.stop_signal is not None and not _SIGNAL.fullmatch(image.stop_signal):
        yield Violation(("image", "stop-signal"), f"'{image.stop_signal}' is not a signal", "Write SIGTERM.")
    for name, value in image.env.items():
        if "\0" in value:
            yield Violation(("image", "env", name), f"the value of '{name}' holds a NUL byte")


def _lists(spec: StackSpec) -> Iterator[Violation]:
    repeated: list[tuple[tuple[str | int, ...], Sequence[str]]] = [
        (("platforms",), spec.platforms),
        (("image", "expose"), spec.image.expose),
        (("image", "volumes"), spec.image.volumes),
        (("target", "gpus"), spec.target.gpus),
    ]
    for path, values in repeated:
        for index, value in enumerate(values):
            if value in values[:index]:
                yield Violation((*path, index), f"'{value}' is listed twice", "Keep one of the two.")
    for index, waiver in enumerate(spec.waivers):
        earlier = [(other.code, other.match) for other in spec.waivers[:index]]
        if (waiver.code, waiver.match) in earlier:
            yield Violation(
                ("waivers", index),
                f"'{waiver.code}' is waived twice with the same match",
                "Keep one of the two.",
            )


def _exclusions(spec: StackSpec) -> Iterator[Violation]:
    """Every name in ``exclude`` and ``prereleases`` is one, and what is excluded is not asked for."""
    for key, names in (("exclude", spec.exclude), ("prereleases", spec.prereleases)):
        for index, name in enumerate(names):
            if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", name):
                yield Violation(
                    (key, index),
                    f"'{name}' is not a distribution name",
                    "Write the bare name, without a version.",
                )
            elif key == "exclude" and normalized_name(name) in {normalized_name(f) for f in spec.frameworks}:
                near = closest(name, spec.frameworks)
                yield Violation(
                    (key, index),
                    f"'{name}' is excluded and listed under frameworks",
                    f"Remove {near or name} from one of the two.",
                )


RULES = (_origin, _apt, _paths, _image, _lists, _exclusions, *PACKAGE_RULES)


def violations(spec: StackSpec) -> list[Violation]:
    """Return everything the rules have against a spec, in the rules' order."""
    return [violation for rule in RULES for violation in rule(spec)]
