"""The SBOM of a stack, from its spec and lock; licences come from the wheels, or from the image they are installed in.

Of an image whose lock is at hand this is the SBOM that ``build`` writes and ``publish`` attaches, not the one of
its scan: the lock knows what an image does not (the sha256, index and file name of every wheel and deb), and the
document is there at once and needs no engine. The scan's (``scanned.py``) is for every other image, and
for what lies where: ``stackbuild sbom --scan``.
"""

from __future__ import annotations

from collections.abc import Callable

from stackbuild.annotate.pin_list import pin_list
from stackbuild.annotate.tags import image_version
from stackbuild.layers.files import files_sha256
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import Lock, PlatformLock
from stackbuild.progress import Observer
from stackbuild.resolution.wheels.fetch import fetch_wheels
from stackbuild.sbom.image import write_sbom
from stackbuild.sbom.licences import installed_licences, wheel_licences
from stackbuild.scan.scan import Scan
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import Platform
from stackbuild.store.store import Store


def stack_sbom(
    stack: LoadedSpec,
    lock: Lock,
    platform: Platform,
    *,
    site: SiteConfig,
    store: Store,
    observer: Observer,
    config_digest: str | None = None,
    image: Callable[[], Scan] | None = None,
) -> bytes:
    """Write the CycloneDX 1.6 JSON of a stack.

    The same stack, lock and digest give the same bytes on every machine. A wheel is fetched for its licences only
    where neither the store nor the image has its metadata.

    Args:
        stack: The spec.
        lock: Its lock, current.
        platform: Which of the lock's platforms.
        site: Says where indexes are.
        store: Has the wheels, or gets them.
        observer: Told of fetches.
        config_digest: The config digest of the built image, when it is of one.
        image: Scans that image; called only when the store lacks a wheel.

    Raises:
        LockError: A wheel was changed or is gone from its index.
        NotJudgedError: An index cannot be used.
    """
    platform_lock = lock.platforms[platform]
    licences = _in_image(platform_lock, store, image)
    left = tuple(wheel for wheel in platform_lock.wheels if wheel.sha256 not in licences)
    paths = fetch_wheels(
        platform_lock.model_copy(update={"wheels": left}), site, store, observer, indexes=stack.spec.indexes
    )
    pins = pin_list(
        stack.spec,
        platform_lock,
        files_sha256(stack.spec, stack.folder),
        lock_sha256=lock_sha256(lock),
    )
    return write_sbom(
        stack.spec,
        platform_lock,
        version=image_version(pins),
        platform=platform,
        licences=licences | wheel_licences(left, paths),
        config_digest=config_digest,
    )


def _in_image(
    lock: PlatformLock, store: Store, image: Callable[[], Scan] | None
) -> dict[str, tuple[str, ...]]:
    """The licences of the wheels that the store lacks, by sha256, as far as the image knows them."""
    missing = [wheel for wheel in lock.wheels if store.blob(wheel.sha256) is None]
    if image is None or not missing:
        return {}
    return installed_licences(missing, image().python.distributions)
