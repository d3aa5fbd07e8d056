"""Gates over packages: those of ``compat`` on what is really installed, and whether metadata is whole.

``strips-metadata``, ``sbom-incomplete``, ``record-mismatch``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from packaging.version import InvalidVersion, Version

from stackbuild.compat.contents import Contents, contents_of_image
from stackbuild.compat.judge import judge_image
from stackbuild.compat.needs import compat_library
from stackbuild.compat.subject import HostOffer
from stackbuild.counting import counted, some_of
from stackbuild.distribution_name import normalized_name
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.scan.contents.cuda import newest_compat
from stackbuild.scan.contents.python import Environment, PythonDistribution
from stackbuild.scan.scan import Scan

PLATFORMS = ("linux/amd64", "linux/arm64")
# What compat's gate names, as the families that a scan finds.
_FAMILY_OF = {"cuda-runtime": "cudart"}
# Modules whose absence from the package list hides what an image is for.
_FRAMEWORKS = ("torch", "onnxruntime", "tensorflow", "jax", "tensorrt", "vllm", "cupy", "numpy")
_SHOWN = 20
_NAMED = 3  # files in a sentence


def contents_of_scan(scan: Scan, environment: Environment | None, target: HostOffer | None) -> Contents:
    """What the gates of ``compat`` judge, as a scan found it.

    Args:
        scan: The image.
        environment: The environment whose distributions count; None for an image without Python.
        target: The GPUs it must run on, which make it a GPU image.
    """
    installed = _of_environment(scan, environment)
    description = scan.files.description
    base = contents_of_image(
        scan.name,
        description.config,
        [(item.key, str(Version(item.version))) for item in installed if is_version(item.version)],
        platform=description.platform,
    )
    compat = newest_compat(scan.driver)
    first = scan.loader.library_path
    return Contents(
        name=scan.name,
        platform=description.platform,
        os=scan.os.key,
        glibc=scan.glibc,
        python=environment.python if environment else "",
        base_cuda=base.base_cuda,
        environment=base.environment,
        distributions=base.distributions,
        locked=bool(base.distributions),
        compat=compat_library(
            compat.version or None,
            compat.cuda or None,
            loaded_first=any("/compat" in folder for folder in first),
        )
        if compat
        else None,
        expects_gpu=base.expects_gpu or bool(target and target.gpus),
    )


def judge_packages(scan: Scan, target: HostOffer | None, facts: Facts, today: date) -> Iterator[Finding]:
    """The gates of ``compat`` about an image alone, for each Python environment; equal answers once."""
    if scan.files.description.platform not in PLATFORMS:
        yield Finding(
            code="platform-mismatch",
            verdict=Verdict.SKIP,
            subject=scan.files.description.platform,
            summary=f"The facts know nothing of {scan.files.description.platform}, so versions were not judged.",
            next_step=f"Scan the image for {' or '.join(PLATFORMS)}.",
        )
        return
    families = {item.family for item in scan.cuda}
    told: set[str] = set()
    for environment in scan.python.environments or (None,):
        for finding in judge_image(contents_of_scan(scan, environment, target), facts, today):
            if finding.code == "flavour-lacks-lib" and _is_there(finding, families):
                continue  # the base is not known by its tag; its libraries were found
            key = finding.model_dump_json()
            if key not in told:
                told.add(key)
                yield finding


def judge_metadata(scan: Scan, expected: Mapping[str, str] | None) -> Iterator[Finding]:
    """Gates ``strips-metadata`` and ``sbom-incomplete``.

    Args:
        scan: The image.
        expected: Distributions that must be there, normalised name → version, from lock or pin list; None
            when nobody says.
    """
    installed = {item.key: item for item in scan.python.installed}
    for environment in scan.python.environments:
        if _is_debians(environment.path) or not environment.unowned:
            continue
        versions = scan.python.torch.get(environment.path, {})
        # Metadata without a RECORD, as eggs and conda's older packages have it, names no files.
        named = {item.key.replace("-", "_") for item in scan.python.installed}
        stripped = [
            name
            for name in environment.unowned
            if normalized_name(name.partition(".")[0]).replace("-", "_") not in named
        ]
        known = [name for name in stripped if name in _FRAMEWORKS and normalized_name(name) not in installed]
        if known:
            shown = ", ".join(
                f"torch {versions['version']}" if name == "torch" and versions else name for name in known
            )
            yield Finding(
                code="strips-metadata",
                verdict=Verdict.FAIL,
                subject=f"/{environment.path}",
                measured=f"{shown} can be imported and has no metadata",
                required="a dist-info for every installed package",
                summary=f"{shown} is in /{environment.path} without its dist-info: scanners, pip and updates do not see it.",
                next_step="Keep the *.dist-info folders; they are small, and an SBOM without them is empty.",
                details={"missing": known, "environment": environment.path},
            )
    yield from _against_expected(installed, expected)
    yield from _databases(scan)


def _against_expected(
    installed: Mapping[str, PythonDistribution], expected: Mapping[str, str] | None
) -> Iterator[Finding]:
    if not expected:
        return
    missing = sorted(name for name in expected if name not in installed)
    other = sorted(
        f"{name} {installed[name].version} in place of {version}"
        for name, version in expected.items()
        if name in installed and not _equal(installed[name].version, version)
    )
    if missing or other:
        yield Finding(
            code="sbom-incomplete",
            verdict=Verdict.FAIL,
            subject=", ".join([*missing, *other][:_SHOWN]),
            measured=f"{len(missing)} missing, {len(other)} of another version",
            required=counted(len(expected), "locked distribution"),
            summary=f"An SBOM of this image lacks what was locked: {', '.join([*missing, *other][:_SHOWN])}.",
            next_step="Build it again from the lock, and remove no *.dist-info from it.",
            details={"missing": missing, "different": other},
        )


def _databases(scan: Scan) -> Iterator[Finding]:
    if (
        scan.os.id
        and not any(item.kind in ("deb", "rpm", "apk") for item in scan.packages)
        and len(scan.files) > 500
    ):
        yield Finding(
            code="sbom-incomplete",
            verdict=Verdict.WARN,
            subject=scan.os.pretty_name or scan.os.id,
            measured="no package database that can be read",
            required="dpkg's, rpm's or apk's database",
            summary=f"This is {scan.os.pretty_name or scan.os.id}, and its package database is gone or cannot be read: "
            "what is installed is not known.",
            next_step="Keep /var/lib/dpkg/status (or rpm's, apk's database) in the image.",
            details={"missing": ["package database"]},
        )


def judge_records(scan: Scan) -> Iterator[Finding]:
    """Gate ``record-mismatch``: files of a distribution that are gone, or are not what was installed."""
    for item in scan.python.installed:
        record = item.record
        if not record.missing and not record.changed:
            continue
        shown = [f"/{path}" for path in (*record.changed, *record.missing)]
        yield Finding(
            code="record-mismatch",
            verdict=Verdict.WARN,
            subject=f"{item.name} {item.version}",
            measured=f"{counted(len(record.changed), 'file')} changed, {len(record.missing)} missing",
            required=f"the {record.listed} files of its RECORD",
            summary=f"{item.name} {item.version} is not what was installed: {some_of(shown, _NAMED)}.",
            next_step="Install it anew, or make the change a package of its own, so that its origin can be told.",
            details={"changed": list(record.changed[:_SHOWN]), "missing": list(record.missing[:_SHOWN])},
        )


def _of_environment(scan: Scan, environment: Environment | None) -> Sequence[PythonDistribution]:
    if environment is None:
        return ()
    return [item for item in scan.python.installed if item.environment == environment.path]


def _is_there(finding: Finding, families: set[str]) -> bool:
    missing = finding.details.get("missing")
    listed = missing if isinstance(missing, list) else []
    return all(_FAMILY_OF.get(str(name), str(name)) in families for name in listed)


def _is_debians(path: str) -> bool:
    """Debian's own modules belong to its packages, which dpkg knows."""
    return path == "usr/lib/python3/dist-packages"


def is_version(text: str) -> bool:
    """Whether this is a version as PEP 440 has them; an epoch, which no release of these packages has, is not."""
    try:
        return Version(text).epoch == 0
    except InvalidVersion:
        return False


def _equal(left: str, right: str) -> bool:
    return Version(left) == Version(right) if is_version(left) and is_version(right) else left == right
