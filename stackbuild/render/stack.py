"""Rendering a whole stack: its Dockerfile, and with its files the context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stackbuild.annotate.pin_list import pin_list
from stackbuild.layers.files import files_sha256
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import BootstrapBaseLock, Lock
from stackbuild.progress import Observer
from stackbuild.render.context import ContextEntry, context_entries, source_folders
from stackbuild.render.dockerfile import render_dockerfile
from stackbuild.resolution.bases.bootstrap_base import bootstrap_layer
from stackbuild.resolution.debs.apt_keys import fetch_apt_keys
from stackbuild.resolution.wheels.fetch import fetch_wheels
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import Platform, StackSpec
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store


@dataclass(frozen=True)
class RenderOptions:
    """What a rendered context brings along.

    Attributes:
        created: RFC 3339; the lock's own when empty.
        base_reference: What FROM names in place of the locked base; see ``render_dockerfile``.
        with_wheels: Put the wheels into the context, so that the build asks no index.
    """

    created: str = ""
    base_reference: str | None = None
    with_wheels: bool = False


def stack_dockerfile(
    spec: StackSpec, folder: Path, lock: Lock, platform: Platform, options: RenderOptions = RenderOptions()
) -> str:
    """The Dockerfile of a stack.

    Args:
        spec: The stack.
        folder: What its relative paths start from.
        lock: Its lock.
        platform: Which of the lock's platforms.
        options: What FROM names, and when.

    Raises:
        SpecError: A file of the spec is missing, or a value cannot be in a Dockerfile.
    """
    platform_lock = lock.platforms[platform]
    files = files_sha256(spec, folder)
    pins = pin_list(spec, platform_lock, files, lock_sha256=lock_sha256(lock))
    return render_dockerfile(
        spec,
        platform_lock,
        pins,
        created=options.created or platform_lock.created,
        folders=source_folders(spec, folder),
        base_reference=options.base_reference,
    )


def stack_context(
    spec: StackSpec,
    folder: Path,
    lock: Lock,
    platform: Platform,
    options: RenderOptions,
    *,
    store: Store,
    site: SiteConfig,
    observer: Observer,
) -> tuple[ContextEntry, ...]:
    """The Dockerfile of a stack with everything it needs beside it.

    Args:
        spec: The stack.
        folder: What its relative paths start from.
        lock: Its lock.
        platform: Which of the lock's platforms.
        options: What to bring along.
        store: Has the files, or gets them.
        site: Mirrors.
        observer: Told of fetches.

    Raises:
        LockError: A file is gone or has another hash.
        NotJudgedError: An index, repository or mmdebstrap is not there.
        BuildError: The base could not be made.
    """
    platform_lock = lock.platforms[platform]
    base = platform_lock.base
    rootfs = None
    if isinstance(base, BootstrapBaseLock) and options.base_reference is None:
        rootfs = bootstrap_layer(base, store=store, site=site, observer=observer).path
    wheels: Mapping[str, Path] | None = None
    if options.with_wheels:
        by_file = fetch_wheels(platform_lock, site, store, observer, indexes=spec.indexes)
        wheels = {wheel.sha256: by_file[wheel.file] for wheel in platform_lock.wheels}
    http = HttpClient(site.ca_bundle)
    keys = fetch_apt_keys(spec.apt_sources, store, http=http, observer=observer)
    return context_entries(
        spec,
        folder,
        platform_lock,
        stack_dockerfile(spec, folder, lock, platform, options),
        wheels=wheels,
        rootfs=rootfs,
        keys=[key.path for key in keys],
    )
