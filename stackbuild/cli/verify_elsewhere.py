"""``stackbuild verify`` where there is no Docker: ``--local``, ``--emit`` and ``--collect``."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from stackbuild.errors import UsageError

if TYPE_CHECKING:
    from stackbuild.cli.context import Project
    from stackbuild.progress import Observer
    from stackbuild.spec.model import Waiver
    from stackbuild.verification.bound import Emitted
    from stackbuild.verification.elsewhere import ElsewhereImage
    from stackbuild.verification.gpus import GpuSelection
    from stackbuild.verification.model import VerificationReport
    from stackbuild.verification.promise import Device, Promise


def refuse_together(
    *,
    target: str | None,
    attach: bool,
    local: bool,
    python: Path | None,
    emit: str | None,
    collect: Path | None,
    image: str | None,
) -> None:
    """Refuse options that exclude each other, or that need another.

    Raises:
        UsageError: ``usage``.
    """
    ways = [
        name
        for name, given in (
            ("--local", local),
            ("--emit", emit),
            ("--collect", collect),
            ("--attach", attach),
        )
        if given
    ]
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} exclude each other.", code="usage", do="Say one of them.")
    if python is not None and not local:
        raise UsageError("--python is for --local.", code="usage", do="Add --local, or leave it out.")
    if image is not None and not (emit or collect):
        raise UsageError("--image is for --emit and --collect.", code="usage", do="Name the image itself.")
    if target is None and not local:
        raise UsageError("IMAGE|STACK is missing: nothing is named to verify.", code="usage", do="Name one.")


@dataclass(frozen=True)
class Elsewhere:
    """What was asked for; ``image`` is empty for the stack's own, ``gpus`` None for the default."""

    project: Project
    target: str
    spec_path: Path | None
    image: str
    gpus: GpuSelection | None
    capabilities: tuple[str, ...]
    user: str | None
    shm_size: str | None
    read_only: bool
    gates: tuple[str, ...]
    limit: float

    def emitted(self, by: Emitted) -> str:
        """The manifest or script."""
        from stackbuild.verification.elsewhere import elsewhere_run
        from stackbuild.verification.emit import emit

        found = self._image()
        run = elsewhere_run(
            found,
            by,
            replace(self._reserved(found.promise.device, by), capabilities=self.capabilities),
            asked=f"{self.target} --image {self.image}" if self.image else self.target,
            user=self.user,
            shm_size=self.shm_size,
            read_only=self.read_only,
            limit=self.limit,
        )
        return emit(run)

    def collected(self, file: Path) -> VerificationReport:
        """The report on an output."""
        from stackbuild.verification.collect import collect

        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        found = self._image()
        return self._accepted(collect(content, found, self.gates), found.waivers)

    def local(self, python: Path | None, observer: Observer) -> VerificationReport:
        """The report on an environment of this machine."""
        from stackbuild.cli.host_card import local_card
        from stackbuild.verification.gpus import default_gpus
        from stackbuild.verification.local import verify_environment
        from stackbuild.verification.options import VerifyOptions

        card = local_card()
        promise, waivers = self._promised(has_gpu=card is not None and bool(card.gpus))
        options = VerifyOptions(
            gpus=self.gpus if self.gpus is not None else default_gpus(promise.device),
            card=card,
            gates=self.gates,
            limit=self.limit,
        )
        report = verify_environment(python or Path(sys.executable), promise, options, observer)
        return self._accepted(report, waivers)

    def _image(self) -> ElsewhereImage:
        from stackbuild.verification.elsewhere_target import find_elsewhere

        reference = self.image if self.spec_path is not None else self.target
        return find_elsewhere(reference, self.spec_path, self.project.site)

    def _reserved(self, device: Device, by: Emitted) -> GpuSelection:
        """One GPU for a GPU stack where a scheduler wants a number and nobody said one."""
        from stackbuild.verification.gpus import GpuSelection, default_gpus

        if self.gpus is not None:
            return self.gpus
        default = default_gpus(device)
        return default if by == "compose" or default.none else GpuSelection(count=1)

    def _promised(self, *, has_gpu: bool) -> tuple[Promise, tuple[Waiver, ...]]:
        """A stack's promise without what only an image can keep; without a stack that which the machine has."""
        from stackbuild.spec.platforms import PLATFORM_OF_MACHINE
        from stackbuild.verification.promise import Promise
        from stackbuild.verification.target import target_of_spec

        here = PLATFORM_OF_MACHINE.get(platform.machine(), "linux/amd64")
        if self.spec_path is None:
            if self.target:
                raise UsageError(
                    "--local judges an environment, so it takes a STACK, not an image.",
                    code="usage",
                    where=self.target,
                    do="Name a stack, or none.",
                )
            return Promise(source="nothing", platform=here, device="cuda" if has_gpu else "cpu"), ()
        target = target_of_spec(self.spec_path, "", here)
        return target.promise.model_copy(update={"python_executable": None, "user": None}), target.waivers

    def _accepted(self, report: VerificationReport, waivers: tuple[Waiver, ...]) -> VerificationReport:
        if not waivers and not self.project.site.policy.severities:
            return report
        from stackbuild.verification.acceptance import with_acceptance

        return with_acceptance(report, waivers, self.project.site.policy, datetime.now(UTC).date())
