"""The night of a stack that is built here: its lock, its inputs, its rebuild, and what lies ahead."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from stackbuild.build.plan import choose_platform
from stackbuild.engine.docker_engine import Engine
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.file import lock_sha256, read_lock, require_current
from stackbuild.lock.model import ImageBaseLock, Lock
from stackbuild.lock.path import lock_path
from stackbuild.nightly.case import Case
from stackbuild.nightly.hindrance import hindrance
from stackbuild.nightly.inputs import check_inputs
from stackbuild.nightly.judging import aging_of
from stackbuild.nightly.newer import newer_versions
from stackbuild.nightly.notes import Notes
from stackbuild.nightly.outcome import outcome_of_inputs
from stackbuild.nightly.rebuild import Rebuild
from stackbuild.resolution.bases.image_base import held_image_base
from stackbuild.spec.model import Platform


@dataclass(frozen=True)
class OwnStack:
    """A stack that is built here.

    Attributes:
        case: The stack.
    """

    case: Case

    def run(self) -> None:
        """Judge the stack; its trouble is noted, not raised.

        Raises:
            InterruptedRunError: The person stopped the run.
        """
        lock = self._lock()
        if lock is None:
            return
        self.case.notes.found["lock_sha256"] = lock_sha256(lock)
        with ExitStack() as closing:
            engine = platform = None
            with self.case.notes.stage("engine"):
                engine = closing.enter_context(self.case.ground.connect())
                platform = choose_platform(self.case.stack.spec, lock, engine.platform())
                self.case.notes.found["platform"] = platform
            inputs = self._inputs(lock, engine)
            if engine is not None and platform is not None:
                self._on(platform, self.case.notes, lock, engine, inputs)
                for further in (each for each in self.case.stack.spec.platforms if each != platform):
                    notes = self.case.notes.further(further)
                    notes.found["lock_sha256"] = lock_sha256(lock)
                    self._on(further, notes, lock, engine, inputs)
            else:
                self._asked(self.case.notes, inputs or ())
            self._outlook(lock, engine)

    def _on(
        self,
        platform: Platform,
        notes: Notes,
        lock: Lock,
        engine: Engine,
        inputs: Sequence[Finding] | None,
    ) -> None:
        """Judge the stack on one platform."""
        self._asked(notes, [one for one in inputs or () if one.details.get("platform") == platform])
        why_not = self._why_not(inputs, lock, platform, engine)
        foreign = notes is not self.case.notes
        Rebuild(replace(self.case, notes=notes), lock, platform, engine, foreign=foreign).judge(
            why_not=why_not
        )

    @staticmethod
    def _asked(notes: Notes, findings: Sequence[Finding]) -> None:
        notes.asked(findings, outcome_of_inputs(findings))

    def _lock(self) -> Lock | None:
        with self.case.notes.stage("lock"):
            path = lock_path(self.case.stack.path)
            lock = read_lock(path)
            require_current(lock, self.case.stack.spec, self.case.stack.folder, path)
            return lock
        return None

    def _inputs(self, lock: Lock, engine: Engine | None) -> Sequence[Finding] | None:
        """Ask for the inputs; None when they could not be asked for at all."""
        with self.case.notes.stage("inputs"):
            return check_inputs(
                self.case.stack,
                lock,
                site=self.case.ground.site,
                store=self.case.ground.store,
                observer=self.case.ground.observer,
                engine=engine,
                pages=self.case.ground.pages,
                answers=self.case.ground.answers,
                http=self.case.ground.http(),
            )
        return None

    def _why_not(
        self, inputs: Sequence[Finding] | None, lock: Lock, platform: Platform, engine: Engine
    ) -> str:
        """Why a platform cannot be rebuilt from its inputs; empty when it can."""
        if inputs is None:
            return "its inputs could not be asked for"
        base, held = lock.platforms[platform].base, ""
        with self.case.notes.stage("engine"):
            if isinstance(base, ImageBaseLock) and held_image_base(base, engine, self.case.ground.site):
                held = f"{base.image}:{base.tag}"
        return hindrance(inputs, platform, base=held)

    def _outlook(self, lock: Lock, engine: Engine | None) -> None:
        """What is newer, and what will not be cared for much longer."""
        with self.case.notes.stage("newer"):
            newer = newer_versions(
                self.case.stack,
                lock,
                site=self.case.ground.site,
                store=self.case.ground.store,
                facts=self.case.ground.facts,
                today=self.case.ground.today,
                observer=self.case.ground.observer,
                engine=engine,
                pages=self.case.ground.pages,
                answers=self.case.ground.answers,
                http=self.case.ground.http(),
            )
            self.case.notes.found["newer"] = newer.versions
            failed = any(finding.verdict is Verdict.ERROR for finding in newer.findings)
            self.case.notes.asked(newer.findings, "not-judged" if failed else "unchanged")
        with self.case.notes.stage("aging"):
            self.case.notes.judged(aging_of(self.case.stack.spec, lock, self.case.ground))
