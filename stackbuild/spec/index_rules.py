"""Rules about the indexes that packages come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from stackbuild.distribution_name import normalized_name
from stackbuild.spec.model import StackSpec
from stackbuild.spec.requirement_texts import only_version, requirements_of, version_of
from stackbuild.spec.rule import Violation
from stackbuild.spec.torch_channels import is_root_channel, suggested_channel
from stackbuild.spelling import closest

_RESERVED_INDEX = re.compile(r"default|url|pytorch-[a-z0-9.]+")


def _root_channel(spec: StackSpec, path: tuple[str | int, ...]) -> Violation:
    torch = spec.frameworks.get("torch")
    version = torch.version if torch and torch.version and version_of(torch.version) else None
    if version is None:
        version = next(
            (
                str(only_version(r))
                for _, r in requirements_of(spec)
                if normalized_name(r.name) == "torch" and only_version(r)
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


def framework_index(spec: StackSpec, name: str, index: str) -> Iterator[Violation]:
    """What is wrong with the index that a framework names."""
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


def indexes(spec: StackSpec) -> Iterator[Violation]:
    """What is wrong with the indexes of a spec; a package is bound to one of them at most."""
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
            canonical = normalized_name(package)
            if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", canonical):
                yield Violation(path, f"'{package}' is not a distribution name", "Write the bare name.")
            elif canonical in bound:
                yield Violation(
                    path,
                    f"'{package}' is bound to the index '{bound[canonical]}' already",
                    "A package comes from one index and only from there.",
                )
            bound.setdefault(canonical, name)
