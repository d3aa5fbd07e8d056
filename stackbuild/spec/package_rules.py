"""Rules about frameworks, packages and the indexes they come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from stackbuild.spec.messages import closest
from stackbuild.spec.model import StackSpec, WheelUrl
from stackbuild.spec.rule import Violation

TORCH_FAMILY = ("torch", "torchvision", "torchaudio", "triton")
KNOWN_FRAMEWORKS = (
    *TORCH_FAMILY,
    "onnxruntime",
    "onnxruntime-gpu",
    "tensorrt",
    "tensorrt-cu12",
    "tensorrt-cu13",
)
TORCH_CHANNELS = "https://download.pytorch.org/whl"
_FILE_NAME = re.compile(r"\S+\.(txt|toml|lock|in)")
_RESERVED_INDEX = re.compile(r"default|url|pytorch-[a-z0-9.]+")


def is_root_channel(url: str) -> bool:
    """Return whether a URL is torch's channel root, which lists every variant at once (case B03)."""
    parts = urlsplit(url)
    return parts.hostname == "download.pytorch.org" and parts.path.rstrip("/") in (
        "",
        "/whl",
        "/whl/nightly",
        "/whl/test",
        "/whl/torch_stable.html",
    )


def suggested_channel(version: str | None, variant: str | None) -> str:
    """Return the channel of a variant; without one, the newest CUDA channel known for that torch release."""
    if variant is None or variant == "auto":
        from stackbuild.facts.tables import Facts  # only a mistaken spec pays for reading the tables

        numbers = (*Version(version).release, 0, 0)[:3] if version else ()
        release = Facts().torch_release(".".join(str(number) for number in numbers))
        cuda = [channel for channel in (release.channels if release else ()) if channel.startswith("cu")]
        variant = max(cuda, key=lambda channel: int(channel[2:]), default="cuXXX")
    return f"{TORCH_CHANNELS}/{variant}"


def _root_channel(spec: StackSpec, path: tuple[str | int, ...]) -> Violation:
    torch = spec.frameworks.get("torch")
    version = torch.version if torch and torch.version and _version(torch.version) else None
    if version is None:
        version = next(
            (
                str(_only_version(r))
                for _, r in _requirements(spec)
                if canonicalize_name(r.name) == "torch" and _only_version(r)
            ),
            None,
        )
    channel = suggested_channel(version, torch.variant if torch else None)
    return Violation(
        path,
        "the root of torch's channels mixes builds for the CPU, every CUDA and ROCm, and the name decides by chance",
        f"Use one channel: {channel}; or remove the index and write frameworks: torch: "
        f"{{variant: {channel.rsplit('/', 1)[1]}}}.",
        "index-not-channel-specific",
    )


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _only_version(requirement: Requirement) -> Version | None:
    """Return the version of a requirement that allows exactly one."""
    specifiers = list(requirement.specifier)
    if len(specifiers) == 1 and specifiers[0].operator in ("==", "===") and "*" not in specifiers[0].version:
        return _version(specifiers[0].version)
    return None


def _parse(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _requirements(spec: StackSpec) -> list[tuple[int, Requirement]]:
    parsed = ((index, _parse(item)) for index, item in enumerate(spec.packages) if isinstance(item, str))
    return [(index, requirement) for index, requirement in parsed if requirement is not None]


def _frameworks(spec: StackSpec) -> Iterator[Violation]:
    torch = spec.frameworks.get("torch")
    for name, framework in spec.frameworks.items():
        if name not in KNOWN_FRAMEWORKS:
            near = closest(name, KNOWN_FRAMEWORKS)
            yield Violation(
                ("frameworks", name),
                f"'{name}' is not a framework that stackbuild knows",
                f"Did you mean '{near}'?"
                if near
                else f"Put it under packages. Known: {', '.join(KNOWN_FRAMEWORKS)}.",
            )
            continue
        if framework.version is not None:
            version = _version(framework.version)
            if version is None:
                yield Violation(
                    ("frameworks", name, "version"),
                    f"'{framework.version}' is not one exact version",
                    f"Write a version such as 2.9.1; a range goes under packages: {name}>=2.9.",
                )
            elif version.local and framework.variant not in (None, version.local):
                yield Violation(
                    ("frameworks", name, "version"),
                    f"version {version} says {version.local}, but the variant is {framework.variant}",
                    f'Write version: "{version.public}" and keep the variant.',
                )
        if framework.variant == "auto" and not (spec.target.driver or spec.target.gpus):
            yield Violation(
                ("frameworks", name, "variant"),
                "variant auto resolves from target, and there is none",
                'Add target: {driver: ">=580.65"}, the oldest driver in the fleet.',
            )
        if name.startswith("onnxruntime") and framework.variant is not None:
            yield Violation(
                ("frameworks", name, "variant"),
                f"'{name}' has no variants: its version decides its CUDA",
                "Remove the variant.",
            )
        if (
            name in TORCH_FAMILY
            and torch
            and torch.variant
            and framework.variant
            and framework.variant != torch.variant
        ):
            yield Violation(
                ("frameworks", name, "variant"),
                f"'{name}' is {framework.variant}, but torch is {torch.variant}",
                f"Remove the variant: {name} follows torch.",
            )
        if framework.index is not None:
            yield from _framework_index(spec, name, framework.index)


def _framework_index(spec: StackSpec, name: str, index: str) -> Iterator[Violation]:
    path = ("frameworks", name, "index")
    if "://" in index:
        if is_root_channel(index):
            yield _root_channel(spec, path)
        else:
            yield Violation(
                path,
                "'index' is the name of an index, and this is a URL",
                f"Add indexes: {{NAME: {{url: {index}, packages: [{name}]}}}} and remove index here.",
            )
    elif not _RESERVED_INDEX.fullmatch(index) and index not in spec.indexes:
        near = closest(index, ["default", *spec.indexes])
        yield Violation(
            path,
            f"there is no index '{index}'",
            f"Did you mean '{near}'?" if near else "Write default, or a name under indexes.",
        )


def _requirement_syntax(spec: StackSpec) -> Iterator[Violation]:
    lists = (
        ("packages", [(i, item) for i, item in enumerate(spec.packages) if isinstance(item, str)]),
        ("overrides", list(enumerate(spec.overrides))),
        ("constraints", list(enumerate(spec.constraints))),
    )
    for key, entries in lists:
        for index, text in entries:
            try:
                requirement = Requirement(text)
            except InvalidRequirement as error:
                yield Violation(
                    (key, index),
                    f"'{text}' is not a requirement: {str(error).splitlines()[0]}",
                    _requirement_suggestion(text),
                )
                continue
            if _FILE_NAME.fullmatch(text):
                yield Violation((key, index), f"'{text}' names a file", _requirement_suggestion(text))
            elif requirement.url is not None:
                yield Violation(
                    (key, index),
                    f"'{text}' names a URL without a hash",
                    f"Write {{url: {requirement.url}, sha256: …}} under packages.",
                )


def _requirement_suggestion(text: str) -> str:
    words = text.split()
    if words and words[0] in ("-r", "--requirement") and len(words) > 1:
        return f"Write {{from: {words[1]}}}."
    if _FILE_NAME.fullmatch(text):
        return f"Write {{from: {text}}}."
    if "://" in text:
        return f"Write {{url: {text}, sha256: …}}; only wheels are taken."
    single = re.fullmatch(r"([A-Za-z0-9._-]+)\s*=\s*([0-9][\w.*+!-]*)", text)
    if single:
        return f"Write {single[1]}=={single[2]}, with two equal signs."
    bare = re.fullmatch(r"([A-Za-z0-9._-]+)\s+v?([0-9][\w.*+!-]*)", text)
    return f"Write {bare[1]}=={bare[2]}." if bare else "Write NAME, NAME==VERSION or NAME>=VERSION (PEP 508)."


def _contradictions(spec: StackSpec) -> Iterator[Violation]:
    """A version given twice must be the same version twice; what is excluded is not asked for."""
    excluded = {canonicalize_name(name) for name in spec.exclude}
    pinned: dict[str, tuple[Version, str]] = {}
    for name, framework in spec.frameworks.items():
        version = _version(framework.version) if framework.version else None
        if version is not None:
            pinned[canonicalize_name(name)] = (version, "frameworks")
    entries: list[tuple[tuple[str | int, ...], Requirement]] = [
        (("packages", index), requirement) for index, requirement in _requirements(spec)
    ]
    for index, text in enumerate(spec.constraints):
        constraint = _parse(text)
        if constraint is not None:
            entries.append((("constraints", index), constraint))
    for path, requirement in entries:
        name = canonicalize_name(requirement.name)
        if name in excluded and path[0] == "packages":
            yield Violation(
                path,
                f"'{requirement.name}' is asked for here and listed under exclude",
                "Remove it from one of the two.",
            )
        if requirement.marker is not None:
            continue
        if name in pinned:
            version, where = pinned[name]
            wanted = requirement.specifier
            if not (
                wanted.contains(version, prereleases=True)
                or wanted.contains(version.public, prereleases=True)
            ):
                yield Violation(
                    path,
                    f"'{requirement}' contradicts {name} {version} under {where}",
                    "Give the version in one place.",
                )
        elif (only := _only_version(requirement)) is not None:
            pinned[name] = (only, str(path[0]))


def _wheels(spec: StackSpec) -> Iterator[Violation]:
    for index, package in enumerate(spec.packages):
        if not isinstance(package, WheelUrl):
            continue
        path = ("packages", index, "url")
        file = unquote(urlsplit(package.url).path.rsplit("/", 1)[-1])
        try:
            _, _, _, tags = parse_wheel_filename(file)
        except (InvalidWheelFilename, InvalidVersion) as error:
            yield Violation(
                path,
                f"'{file}' is not a wheel's file name: {error}",
                "Keep the name that the wheel was built with: NAME-VERSION-PYTHON-ABI-PLATFORM.whl.",
            )
            continue
        interpreters = {tag.interpreter for tag in tags}
        wanted = "cp" + spec.python.replace(".", "")
        if (
            spec.python != "none"
            and not any(
                interpreter in ("py3", "py2.py3", wanted) or interpreter.startswith("py3")
                for interpreter in interpreters
            )
            and not any(tag.abi == "abi3" for tag in tags)
        ):
            yield Violation(
                path,
                f"'{file}' is for {', '.join(sorted(interpreters))}, and the stack has {wanted}",
                f"Take the {wanted} wheel, and its sha256.",
            )
        if any(tag.platform.startswith(("win", "macosx")) for tag in tags):
            yield Violation(path, f"'{file}' is not a wheel for Linux", "Take the manylinux wheel.")


def _indexes(spec: StackSpec) -> Iterator[Violation]:
    bound: dict[str, str] = {}
    for name, index in spec.indexes.items():
        if not re.fullmatch(r"[A-Za-z0-9]+([._-][A-Za-z0-9]+)*", name):
            yield Violation(
                ("indexes", name), f"'{name}' cannot be an index's name", "Use letters, digits and - ."
            )
        elif _RESERVED_INDEX.fullmatch(name):
            yield Violation(
                ("indexes", name),
                f"'{name}' is the name of an index that is always there",
                "Choose another name; a mirror of it belongs in stackbuild.toml.",
            )
        if is_root_channel(index.url):
            yield _root_channel(spec, ("indexes", name, "url"))
        if urlsplit(index.url).username or urlsplit(index.url).password:
            yield Violation(
                ("indexes", name, "url"),
                "the URL holds a user name or password",
                "Keep credentials out of the spec: use a netrc file or the site file.",
            )
        for position, package in enumerate(index.packages):
            path = ("indexes", name, "packages", position)
            canonical = canonicalize_name(package)
            if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", canonical):
                yield Violation(path, f"'{package}' is not a distribution name", "Write the bare name.")
            elif canonical in bound:
                yield Violation(
                    path,
                    f"'{package}' is bound to the index '{bound[canonical]}' already",
                    "A package comes from one index and only from there.",
                )
            bound.setdefault(canonical, name)


PACKAGE_RULES = (_frameworks, _requirement_syntax, _contradictions, _wheels, _indexes)
