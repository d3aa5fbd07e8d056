"""The night of a stack that others build: is it still what it was, and does it still keep what the spec asks."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.annotate.image_reference import split_reference
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import LockError
from stackbuild.nightly.case import Case
from stackbuild.nightly.comparing import Tonight, differs, explained
from stackbuild.nightly.image_names import ImageNames
from stackbuild.nightly.inputs import check_inputs
from stackbuild.nightly.inputs_base import external_digest, last_digest
from stackbuild.nightly.judging import aging_of, judge_image, not_verified
from stackbuild.nightly.outcome import outcome_of_inputs
from stackbuild.nightly.reference import Reference, known_digest, last_image
from stackbuild.verification.target import supported_platform


@dataclass(frozen=True)
class ExternalStack:
    """A stack that others build.

    Attributes:
        case: The stack.
    """

    case: Case

    def run(self) -> None:
        """Judge the stack; its trouble is noted, not raised.

        Raises:
            InterruptedRunError: The person stopped the run.
        """
        notes = self.case.notes
        notes.found["external"] = True
        with ExitStack() as closing:
            engine = None
            with notes.stage("engine"):
                engine = closing.enter_context(self.case.ground.connect())
                notes.found["platform"] = supported_platform(engine.platform())
            digest = self._asked()
            if engine is not None and digest:
                self._with_image(engine, digest)
        with notes.stage("aging"):
            notes.judged(aging_of(self.case.stack.spec, None, self.case.ground))

    def _asked(self) -> str:
        """Ask the registry; returns the digest to judge: what the stack's reference names, else what it named last."""
        notes = self.case.notes
        with notes.stage("inputs"):
            findings = check_inputs(
                self.case.stack,
                None,
                site=self.case.ground.site,
                store=self.case.ground.store,
                observer=self.case.ground.observer,
                known_digest=known_digest(self.case.history, self.case.stack.spec.name),
                answers=self.case.ground.answers,
                http=self.case.ground.http(),
            )
            notes.asked(findings, outcome_of_inputs(findings))
            notes.found["registry_digest"] = digest = external_digest(findings)
            return digest or last_digest(findings)
        return ""

    def _with_image(self, engine: Engine, digest: str) -> None:
        notes, names = self.case.notes, ImageNames(self.case.stack.spec.name)
        reference = image = None
        with notes.stage("pull"):
            reference = last_image(
                self.case.history,
                engine,
                stack=self.case.stack.spec.name,
                platform=notes.found["platform"],
                names=(names.last,),
            )
            image = self._pulled(engine, digest)
            notes.found["config_digest"] = image.id
            notes.found["diff_ids"] = image.diff_ids
            pins = pins_that_hold(image.labels, image.diff_ids)
            if pins is not None:
                notes.found["pins"] = pins.model_dump(mode="json", by_alias=True, exclude_none=True)
        if image is None:
            return
        if reference is not None:
            with notes.stage("compare"):
                self._hold_against(engine, image, reference)
        with notes.stage("pull"):
            notes.found["image"] = names.settle(engine, image.id, drifted=False)
            if reference is not None and reference.image not in ("", image.id):
                _forget(engine, reference.image)
        judge_image(
            engine,
            notes.found.get("image", image.id),
            self.case.stack.path,
            notes.found["platform"],
            self.case.ground,
            self.case.options,
            notes,
            tars=self.case.ground.store,
        )
        external = self.case.stack.spec.external or ""
        for platform in self.case.stack.spec.platforms:
            if platform != notes.found["platform"]:
                notes.judged([not_verified(external, platform, notes.found["platform"])])

    def _pulled(self, engine: Engine, digest: str) -> ImageInfo:
        """The image for the engine's platform, pulled by its own digest: by an index's the engine takes any."""
        platform = self.case.notes.found["platform"]
        repository, _, _ = split_reference(self.case.stack.spec.external or "")
        with self.case.ground.registry() as client:
            found = client.resolve_digest(repository, digest)
            own = found.platforms.get(platform) if found is not None else None
            if own is None:
                raise LockError(
                    f"{self.case.stack.spec.external} has no image for {platform}",
                    code="no-such-platform",
                    where=self.case.stack.spec.name,
                    do="Judge it on a machine of its own platform.",
                )
            reference = f"{client.endpoint(repository).reference}@{own}"
        return engine.pull(reference, platform=platform, observer=self.case.ground.observer)

    def _hold_against(self, engine: Engine, image: ImageInfo, reference: Reference) -> None:
        self.case.notes.found["compared_with"] = reference.name
        tonight = Tonight(image.id, self.case.stack.spec.name, image.id, image.diff_ids)
        if not tonight.equals(reference):
            drift = explained(engine, tonight, reference, self.case.ground, tars=self.case.ground.store)
            if self.case.options.accept or not differs(drift):
                self.case.notes.changed(drift)
            else:
                self.case.notes.drifted(drift)


def _forget(engine: Engine, image_id: str) -> None:
    """Remove what an earlier night pulled, unless somebody has named it since."""
    old = engine.image(image_id)
    if old is not None and not old.repo_tags:
        for reference in old.repo_digests:
            engine.remove_image(reference)
