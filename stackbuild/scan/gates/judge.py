"""All gates over one scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date

from stackbuild.compat.subject import HostOffer
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.scan.gates.architectures import judge_architectures
from stackbuild.scan.gates.cuda import judge_shadowed, judge_twice
from stackbuild.scan.gates.driver import judge_driver_libraries
from stackbuild.scan.gates.history import has_history, judge_installers
from stackbuild.scan.gates.hygiene import (
    judge_leftovers,
    judge_library_path,
    judge_privileged,
    judge_secrets,
    judge_size,
)
from stackbuild.scan.gates.labels import judge_labels
from stackbuild.scan.gates.needed import judge_needed
from stackbuild.scan.gates.packages import judge_metadata, judge_packages, judge_records
from stackbuild.scan.scan import Scan


@dataclass(frozen=True)
class Expectations:
    """What the image is held against, beside itself.

    Attributes:
        target: GPUs and oldest driver that it must run on; None when nobody named any.
        distributions: Python distributions that must be there, normalised name → version; None when nobody says.
    """

    target: HostOffer | None = None
    distributions: Mapping[str, str] | None = field(default=None)


def judge_scan(scan: Scan, expected: Expectations, facts: Facts, today: date) -> tuple[Finding, ...]:
    """Every gate's findings; a gate that found nothing wrong says so, and one with nothing to judge says that.

    Args:
        scan: The image.
        expected: What it is held against.
        facts: The fact tables.
        today: For ends of life.
    """
    has_code = any(library.kernels is not None for library in scan.libraries.values())
    has_cuda, has_libraries = bool(scan.cuda), bool(scan.libraries)
    has_python = bool(scan.python.distributions or any(item.unowned for item in scan.python.environments))
    has_packages = has_python or bool(scan.packages) or bool(expected.distributions)
    labelled = bool(scan.files.description.labels or "CUDA_VERSION" in scan.files.description.environment)
    driver = [*judge_driver_libraries(scan)]
    shadowed, twice, needed = [*judge_shadowed(scan)], [*judge_twice(scan)], [*judge_needed(scan)]
    architectures = [*judge_architectures(scan, expected.target, facts)]
    metadata = [*judge_metadata(scan, expected.distributions)]
    records, labels, paths = [*judge_records(scan)], [*judge_labels(scan)], [*judge_library_path(scan)]
    secrets, privileged, leftovers = (
        [*judge_secrets(scan)],
        [*judge_privileged(scan)],
        [*judge_leftovers(scan)],
    )
    installers = [*judge_installers(scan)]
    return (
        *driver,
        *_well("driver-lib-in-image", driver, "No library of the NVIDIA driver is in the image."),
        *_well("stub-on-runtime-path", driver, "No stub is where the loader looks."),
        *shadowed,
        *_well("cudnn-shadowed", shadowed, "Every package gets the cuDNN installed for it.", has_cuda),
        *_well("cuda-library-shadowed", shadowed, "Every package gets the CUDA installed for it.", has_cuda),
        *twice,
        *_well("cuda-library-twice", twice, "Every CUDA library is there once.", has_cuda),
        *needed,
        *_well("needed-library-missing", needed, "Every library that is needed is found.", has_libraries),
        *architectures,
        *_well("arch-not-covered", architectures, "Every library runs on the GPUs named.", has_code),
        *judge_packages(scan, expected.target, facts, today),
        *metadata,
        *_well("strips-metadata", metadata, "Every framework has its metadata.", has_python),
        *_well("sbom-incomplete", metadata, "Everything expected is listed by its metadata.", has_packages),
        *records,
        *_well("record-mismatch", records, "Every distribution is as it was installed.", has_python),
        *labels,
        *_well("labels-untrue", labels, "Labels and CUDA_VERSION say what is so.", labelled),
        *paths,
        *_well(
            "library-path-dead",
            paths,
            "Every folder of LD_LIBRARY_PATH is there.",
            bool(scan.loader.library_path),
        ),
        *secrets,
        *_well("secret-in-image", secrets, "No keys, tokens or passwords were found."),
        *privileged,
        *_well("set-uid-unusual", privileged, "Set-uid programs are in the distribution's own places only."),
        *leftovers,
        *_well("leftovers", leftovers, "Package managers left nothing behind."),
        *installers,
        *_well("unpinned-installer", installers, "No step runs what it fetches unseen.", has_history(scan)),
        *judge_size(scan),
    )


def _well(code: str, findings: Iterable[Finding], summary: str, applies: bool = True) -> Iterator[Finding]:
    """A PASS for a gate that found nothing, or a SKIP for one that had nothing to look at."""
    if all(finding.code != code for finding in findings):
        yield Finding(
            code=code,
            verdict=Verdict.PASS if applies else Verdict.SKIP,
            summary=summary if applies else "There is nothing of that in the image.",
            applies=applies,
        )
