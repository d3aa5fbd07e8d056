"""What an image holds according to its lock, as neutral items; the CycloneDX writer is beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from packageurl import PackageURL

from stackbuild.digests import short_hex
from stackbuild.lock.model import BootstrapBaseLock, LockedDeb, LockedWheel, OsLock, PlatformLock

Kind = Literal["library", "framework", "operating-system", "container"]
# Packages' own words for what kind of package they are, and the purl types (purl specification, types).
SystemKind = Literal["deb", "rpm", "apk", "conda"]


@dataclass(frozen=True)
class Evidence:
    """Where in an image a component was found: a path with its leading slash, and its layer's diff ID."""

    path: str
    layer: str


@dataclass(frozen=True)
class Item:
    """One component of an image.

    Args:
        kind: CycloneDX component type.
        name: As its own ecosystem spells it.
        version: Unescaped.
        purl: Package URL; ``None`` where no purl type fits.
        location: Where it is installed, when one package can be there more than once.
        sha256: Of the file it was installed from, in hex.
        licences: As its metadata words them: SPDX ids, expressions or names.
        properties: Further facts by name, without the ``stackbuild:`` prefix.
        needs: Keys (``Item.key``) of the items it depends on.
        evidence: Where it was found; empty for what comes from a lock.
        children: What it brings along and is not a package of its own.
    """

    kind: Kind
    name: str
    version: str
    purl: PackageURL | None = None
    location: str = ""
    sha256: str = ""
    licences: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    children: tuple[Item, ...] = ()

    def with_children(self) -> Iterator[Item]:
        """The item and everything below it."""
        yield self
        for child in self.children:
            yield from child.with_children()

    @cached_property
    def key(self) -> str:
        """Unique and stable: the purl (or kind and name), and a hash of the location where there is one."""
        version = f"@{self.version}" if self.version else ""
        stem = self.purl.to_string() if self.purl else f"{self.kind}:{self.name}{version}"
        if not self.location:
            return stem
        return f"{stem}#{short_hex(hashlib.sha256(self.location.encode()).hexdigest())}"


@dataclass(frozen=True)
class Inventory:
    """An image's items, each key once and in key order, and the keys of those it has of its own accord."""

    items: tuple[Item, ...]
    top: tuple[str, ...]


def merge(items: Iterable[Item]) -> tuple[Item, ...]:
    """Items in key order; those with one key are one item, the first, with dependencies and children of all."""
    merged: dict[str, Item] = {}
    needs: dict[str, set[str]] = {}
    children: dict[str, list[Item]] = {}
    for item in items:
        merged.setdefault(item.key, item)
        needs.setdefault(item.key, set()).update(item.needs)
        children.setdefault(item.key, []).extend(item.children)
    return tuple(
        replace(merged[key], needs=tuple(sorted(needs[key] - {key})), children=merge(children[key]))
        for key in sorted(merged)
    )


def placed_once(items: Iterable[Item]) -> tuple[Item, ...]:
    """Items without the children that stand at the top as well, or below an earlier item."""
    items = tuple(items)
    seen = {item.key for item in items}

    def pruned(item: Item) -> Item:
        kept = []
        for child in item.children:
            if child.key not in seen:
                seen.add(child.key)
                kept.append(pruned(child))
        return replace(item, children=tuple(kept))

    return tuple(pruned(item) for item in items)


def is_purl_name(name: str) -> bool:
    """Whether a package URL can be of this name: only slashes and blanks leave none."""
    return bool(name.strip("/ "))


def pypi_purl(name: str, version: str) -> PackageURL:
    """``pkg:pypi/NAME@VERSION``; a local version's plus sign becomes ``%2B`` when written."""
    return PackageURL("pypi", None, name, version)


def deb_purl(deb: LockedDeb, os: OsLock) -> PackageURL:
    """The purl of a locked deb."""
    return system_purl("deb", deb.name, deb.version, deb.architecture, os_id=os.id, os_version=os.version_id)


def system_purl(
    kind: SystemKind, name: str, version: str, architecture: str, *, os_id: str, os_version: str
) -> PackageURL:
    """``pkg:deb/debian/NAME@VERSION?arch=…&distro=debian-12``, and alike for rpm, apk and conda.

    Purl specification, types deb, rpm (the epoch is a qualifier), apk and conda (no distribution; ``subdir``).
    """
    if kind == "conda":
        return PackageURL("conda", None, name, version, {"subdir": architecture} if architecture else None)
    qualifiers = {"arch": architecture, "distro": f"{os_id}-{os_version}".strip("-")}
    if kind == "rpm" and ":" in version:
        qualifiers["epoch"], version = version.split(":", 1)
    stated = {key: value for key, value in qualifiers.items() if value}
    return PackageURL(kind, os_id or None, name, version, stated)


def image_inventory(lock: PlatformLock, licences: Mapping[str, tuple[str, ...]]) -> Inventory:
    """Everything a platform's lock puts into the image.

    Args:
        lock: One platform of the lock.
        licences: sha256 of a wheel to the licences its metadata names; a wheel that is absent has none stated.

    Returns:
        Base, operating system, debs and wheels; on top the base, the debs added to it, the requested wheels.
    """
    base_debs = lock.base.debs if isinstance(lock.base, BootstrapBaseLock) else ()
    # A deb on top of the base replaces the base's own version of it.
    installed = {(deb.name, deb.architecture): deb for deb in (*base_debs, *lock.debs)}
    debs = [_deb_item(deb, lock.os) for deb in installed.values()]
    keys = {wheel.name: pypi_purl(wheel.name, wheel.version).to_string() for wheel in lock.wheels}
    wheels = [_wheel_item(wheel, keys, licences.get(wheel.sha256, ())) for wheel in lock.wheels]
    needed = {need for wheel in wheels for need in wheel.needs}
    below_os = {deb_purl(deb, lock.os).to_string() for deb in base_debs}
    os_item = Item(
        "operating-system",
        lock.os.id,
        lock.os.version_id,
        properties=stated({"codename": lock.os.codename, "glibc": lock.os.glibc}),
        needs=tuple(deb.key for deb in debs if deb.key in below_os),
    )
    base = _base_item(lock, os_item.key)
    top = (
        base.key if base else os_item.key,
        *(deb.key for deb in debs if deb.key not in below_os),
        *(
            item.key
            for item, wheel in zip(wheels, lock.wheels, strict=True)
            if wheel.requested or item.key not in needed
        ),
    )
    return Inventory(merge([*([base] if base else []), os_item, *debs, *wheels]), tuple(sorted(set(top))))


def _base_item(lock: PlatformLock, os_key: str) -> Item | None:
    base = lock.base
    if isinstance(base, BootstrapBaseLock):
        return None
    repository = base.image if "." in base.image.split("/")[0] else f"docker.io/{base.image}"
    purl = PackageURL(
        "oci",
        None,
        base.image.rsplit("/", 1)[-1],
        base.index_digest,
        {"repository_url": repository, "tag": base.tag},
    )
    properties = {
        "platform-digest": base.platform_digest,
        "config-digest": base.config_digest,
        "packages": "not listed here; they are in the image's own package database",
    }
    return Item("container", base.image, base.tag, purl, properties=properties, needs=(os_key,))


def _deb_item(deb: LockedDeb, os: OsLock) -> Item:
    properties = {"repository": deb.repository, "path": deb.path}
    return Item("library", deb.name, deb.version, deb_purl(deb, os), sha256=deb.sha256, properties=properties)


def _wheel_item(wheel: LockedWheel, keys: Mapping[str, str], licences: tuple[str, ...]) -> Item:
    return Item(
        "framework" if wheel.group in ("torch", "framework") else "library",
        wheel.name,
        wheel.version,
        pypi_purl(wheel.name, wheel.version),
        sha256=wheel.sha256,
        licences=licences,
        properties=stated({"index": wheel.index, "file": wheel.file, "url": wheel.url or ""}),
        needs=tuple(sorted({keys[name] for name in wheel.requires if name in keys})),
    )


def stated(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that have a value."""
    return {name: value for name, value in properties.items() if value}
