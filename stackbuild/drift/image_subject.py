"""An image as one side of a comparison."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.annotate.tags import content_hash
from stackbuild.drift.model import Side
from stackbuild.drift.packages import Package, PackageSet
from stackbuild.drift.pins import config_pins, measured_pins, stated_pins
from stackbuild.drift.subject import ImageSubject, Subject
from stackbuild.sbom.licences import declared_licences
from stackbuild.sbom.system_graph import SystemGraph
from stackbuild.scan.contents.packages import SystemPackage
from stackbuild.scan.contents.python import PythonDistribution
from stackbuild.scan.fatbin import architecture_order
from stackbuild.scan.scan import Scan
from stackbuild.scan.sources.interface import ImageSource

_OCI = "org.opencontainers.image."
_MINOR = re.compile(r"(?:^|/)python(\d+\.\d+)/")
_UPSTREAM = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)*)")


def image_subject(source: ImageSource, scan: Scan) -> Subject:
    """An image as a side.

    Args:
        source: Where it was read from.
        scan: What was found in it.
    """
    description = scan.files.description
    stated = pins_that_hold(description.labels, description.diff_ids)
    packages = tuple(image_packages(scan))
    told = stated_pins(stated) if stated is not None else _base_of_labels(description.labels)
    pins = {
        **_measured(scan, packages),
        # GPU code is always measured: the facts know what a wheel was published with, not what is in this image.
        **{name: value for name, value in told.items() if not name.startswith("compute_capabilities")},
        **_compute_capabilities(scan),
    }
    if "config" in description.config:  # a folder has none
        pins |= config_pins(description.run_config, description.environment, description.labels)
    return Subject(
        side=Side(
            name=description.name,
            kind="image",
            platform=description.platform,
            digest=description.config_digest,
        ),
        pins=pins,
        packages=PackageSet(packages),
        image=ImageSubject(scan, source),
        inputs=content_hash(stated) if stated is not None else "",
        unknown=scan.unknown,
    )


def image_packages(scan: Scan) -> Iterator[Package]:
    """The packages of a scanned image: Python's, the distribution's, and CUDA libraries that are nobody's."""
    diff_ids = scan.files.description.diff_ids
    for item in scan.python.installed:
        yield _distribution(item, diff_ids[item.layer])
    for package in scan.packages:
        yield _system(package, scan)
    system = SystemGraph(scan)
    for library in scan.cuda:
        if not library.owner and library.is_main and system.owner(library.path) is None:
            folder, _, name = library.path.rpartition("/")
            yield Package(
                kind="cuda",
                name=name.partition(".so")[0],
                version=library.version,
                place=f"/{folder}",
                layer=diff_ids[library.layer],
            )


def _distribution(item: PythonDistribution, layer: str) -> Package:
    metadata = item.metadata
    return Package(
        kind="python",
        name=item.key,
        version=item.version,
        place=f"/{item.environment}",
        licences=declared_licences(
            metadata.get("license-expression", ""),
            metadata.get("license", ""),
            metadata.get("classifier", ()),
        ),
        layer=layer,
    )


def _system(package: SystemPackage, scan: Scan) -> Package:
    database = package.database
    return Package(
        kind=package.kind,
        name=package.name,
        version=package.version,
        place=f"/{database.partition('conda-meta/')[0].rstrip('/')}" if package.kind == "conda" else "",
        # Of a deb they are in a file that slim images leave out: none found is none known.
        licences=package.licences or None,
        layer=scan.files.description.diff_ids[_layer(package, scan)],
        architecture=package.architecture,
    )


def _layer(package: SystemPackage, scan: Scan) -> int:
    """Where a package comes from; of a deb dpkg's list of its files: the database is in the last layer that changed it."""
    if package.kind == "deb":
        for stem in (package.name, f"{package.name}:{package.architecture}"):
            placed = scan.files.get(f"var/lib/dpkg/info/{stem}.list")
            if placed is not None:
                return placed.layer
    return package.layer


def _measured(scan: Scan, packages: tuple[Package, ...]) -> dict[str, str]:
    environment = scan.files.description.environment
    cuda: dict[str, str] = {}
    for library in scan.cuda:
        if library.is_main and library.version:
            cuda.setdefault(library.family, library.version)
    return {
        "os": f"{scan.os.id} {scan.os.version_id}".strip(),
        "glibc": scan.glibc,
        "python": _python(scan, packages, environment),
        **measured_pins(packages, cuda, environment),
    }


def _python(scan: Scan, packages: tuple[Package, ...], environment: Mapping[str, str]) -> str:
    """The version of the Python that most distributions are installed for, as exactly as the image tells."""
    folders = [
        *(item.environment for item in scan.python.installed),
        *(item.path for item in scan.python.environments),
    ]
    counts = Counter(match[1] for folder in folders if (match := _MINOR.search(folder)))
    minor = max(counts, key=lambda name: (counts[name], name), default="")
    stated = environment.get("PYTHON_VERSION", "")
    if stated.startswith(f"{minor}."):  # as Docker's own python images set it
        return stated
    for package in packages:
        if package.kind == "deb" and package.name == f"python{minor}":
            match = _UPSTREAM.match(package.version)
            return match[1] if match else minor
    return minor


def _base_of_labels(labels: Mapping[str, str]) -> dict[str, str]:
    found = {"base": labels.get(f"{_OCI}base.name", ""), "base_digest": labels.get(f"{_OCI}base.digest", "")}
    return {name: value for name, value in found.items() if value}


def _compute_capabilities(scan: Scan) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for path, library in scan.libraries.items():
        if library.gpu is not None:
            owner = scan.python.owner(path)
            name = owner.key if owner is not None else library.name.partition(".so")[0]
            found.setdefault(name, set()).update(item for item, _ in (*library.gpu.cubins, *library.gpu.ptx))
    return {
        f"compute_capabilities {name}": " ".join(
            sorted(names, key=lambda item: (item.partition("_")[0] != "sm", architecture_order(item)))
        )
        for name, names in sorted(found.items())
    }
