"""Rules about frameworks, packages and the indexes they come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.version import InvalidVersion, Version

from stackbuild.distribution_name import normalized_name
from stackbuild.spec.index_rules import framework_index, indexes
from stackbuild.spec.known_frameworks import KNOWN_FRAMEWORKS, TORCH_FAMILY
from stackbuild.spec.model import StackSpec, WheelUrl
from stackbuild.spec.requirement_texts import only_version, requirement_of, requirements_of, version_of
from stackbuild.spec.rule import Violation

if TYPE_CHECKING:
    # Only a spec that has requirements or wheels pays for importing what parses them.
    from packaging.requirements import Requirement
from stackbuild.spelling import closest

_FILE_NAME = re.compile(r"\S+\.(txt|toml|lock|in)")


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
            version = version_of(framework.version)
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
            yield from framework_index(spec, name, framework.index)


def _requirement_syntax(spec: StackSpec) -> Iterator[Violation]:
    lists = (
        ("packages", [(i, item) for i, item in enumerate(spec.packages) if isinstance(item, str)]),
        ("overrides", list(enumerate(spec.overrides))),
        ("constraints", list(enumerate(spec.constraints))),
    )
    for key, entries in lists:
        for index, text in entries:
            from packaging.requirements import InvalidRequirement, Requirement

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
                yield _by_url(spec, (key, index), text, requirement.url)


def _by_url(spec: StackSpec, path: tuple[str | int, ...], text: str, url: str) -> Violation:
    if urlsplit(url).path.endswith(".whl"):
        return Violation(
            path, f"'{text}' names a URL without a hash", f"Write {{url: {url}, sha256: …}} under packages."
        )
    return _source(spec, path, text)


def _source(spec: StackSpec, path: tuple[str | int, ...], text: str) -> Violation:
    # Only who has sources pays for the facts.
    from stackbuild.spec.compiling import compiling_advice
    from stackbuild.spec.gpu_image import expects_gpu

    return Violation(
        path,
        f"'{text}' is a source, and only wheels are taken",
        compiling_advice(spec),
        code="ext-arch-unset" if expects_gpu(spec) else "spec-invalid",
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
    excluded = {normalized_name(name) for name in spec.exclude}
    pinned: dict[str, tuple[Version, str]] = {}
    for name, framework in spec.frameworks.items():
        version = version_of(framework.version) if framework.version else None
        if version is not None:
            pinned[normalized_name(name)] = (version, "frameworks")
    entries: list[tuple[tuple[str | int, ...], Requirement]] = [
        (("packages", index), requirement) for index, requirement in requirements_of(spec)
    ]
    for index, text in enumerate(spec.constraints):
        constraint = requirement_of(text)
        if constraint is not None:
            entries.append((("constraints", index), constraint))
    for path, requirement in entries:
        name = normalized_name(requirement.name)
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
        elif (only := only_version(requirement)) is not None:
            pinned[name] = (only, str(path[0]))


def _accepted(python: str) -> set[tuple[str, str]]:
    """Return the interpreter and ABI tags that a CPython takes (packaging's order of tags, without platforms)."""
    from packaging.tags import compatible_tags, cpython_tags

    major, minor = (int(part) for part in python.split("."))
    tags = [
        *cpython_tags((major, minor), platforms=["any"]),
        *compatible_tags((major, minor), f"cp{major}{minor}", ["any"]),
    ]
    return {(tag.interpreter, tag.abi) for tag in tags}


def _wheels(spec: StackSpec) -> Iterator[Violation]:
    for index, package in enumerate(spec.packages):
        if not isinstance(package, WheelUrl):
            continue
        from packaging.utils import InvalidWheelFilename, parse_wheel_filename

        path = ("packages", index, "url")
        file = unquote(urlsplit(package.url).path.rsplit("/", 1)[-1])
        if not file.endswith(".whl"):
            yield _source(spec, path, package.url)
            continue
        if not package.url.endswith(".whl"):
            yield Violation(
                path,
                f"'{package.url}' does not end with its wheel's file name",
                "Leave out what follows .whl; sha256 has a key of its own.",
            )
            continue
        try:
            _, _, _, tags = parse_wheel_filename(file)
        except (InvalidWheelFilename, InvalidVersion) as error:
            yield Violation(
                path,
                f"'{file}' is not a wheel's file name: {error}",
                "Keep the name that the wheel was built with: NAME-VERSION-PYTHON-ABI-PLATFORM.whl.",
            )
            continue
        if spec.python != "none" and not {(tag.interpreter, tag.abi) for tag in tags} & _accepted(
            spec.python
        ):
            interpreters = {tag.interpreter for tag in tags}
            wanted = "cp" + spec.python.replace(".", "")
            yield Violation(
                path,
                f"'{file}' is for {', '.join(sorted(interpreters))}, and the stack has {wanted}",
                f"Take the {wanted} wheel, and its sha256.",
            )
        if any(tag.platform.startswith(("win", "macosx")) for tag in tags):
            yield Violation(path, f"'{file}' is not a wheel for Linux", "Take the manylinux wheel.")


PACKAGE_RULES = (_frameworks, _requirement_syntax, _contradictions, _wheels, indexes)
