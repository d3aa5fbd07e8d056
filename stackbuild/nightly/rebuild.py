"""Building a stack anew in an empty store, holding the image against what it must equal, and judging it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from stackbuild.annotate.pin_list import PinList, pin_list
from stackbuild.annotate.tags import image_tags
from stackbuild.build.interface import BuiltImage
from stackbuild.build.stack import BuildOptions, build_stack
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import NotJudgedError
from stackbuild.findings import Verdict
from stackbuild.layers.files import files_sha256
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import Lock
from stackbuild.nightly.case import Case
from stackbuild.nightly.clean_store import clean_store
from stackbuild.nightly.comparing import Tonight, explained
from stackbuild.nightly.ground import stores_area
from stackbuild.nightly.image_names import ImageNames
from stackbuild.nightly.judging import judge_image
from stackbuild.nightly.lock_change import change_of_lock, last_locked_night, remember_lock
from stackbuild.nightly.reference import (
    Reference,
    image_of_inputs,
    last_image,
    published_image,
    reference_of_rebuild,
)
from stackbuild.nightly.reproduced import judge_rebuild, not_rebuilt
from stackbuild.publish.inputs import stack_inputs
from stackbuild.sbom.stack import stack_sbom
from stackbuild.spec.model import Platform
from stackbuild.store.store import Store


@dataclass(frozen=True)
class Rebuild:
    """The part of a stack's night that needs the engine.

    Attributes:
        case: The stack.
        lock: Its lock, current.
        platform: The one to rebuild.
        engine: Builds, and runs images of its own platform.
        foreign: The platform is another than the engine's.
    """

    case: Case
    lock: Lock
    platform: Platform
    engine: Engine
    foreign: bool = False

    @property
    def _names(self) -> ImageNames:
        return ImageNames(self.case.stack.spec.name, self.platform if self.foreign else "")

    def judge(self, *, why_not: str) -> None:
        """Rebuild, compare and judge; in a quick night judge the image that is there.

        Args:
            why_not: Why its inputs do not allow a rebuild; empty when they do.
        """
        case, notes = self.case, self.case.notes
        pins = None
        with notes.stage("lock"):
            pins = self._identity()
        if pins is None:
            return
        if not case.options.rebuild:
            notes.findings.append(not_rebuilt(pins.stack, "a quick night was asked for"))
            if not self.foreign:
                self._judge_what_is_there(pins)
        elif why_not:
            notes.findings.append(not_rebuilt(pins.stack, why_not))
        else:
            with self._workplace() as clean:
                if clean is not None:
                    self._rebuilt(pins, clean)

    def _judge_what_is_there(self, pins: PinList) -> None:
        """Judge the image that was built from this lock, or that the last night left."""
        notes = self.case.notes
        image = None
        with notes.stage("scan"):
            names = (image_tags(pins)[0], self._names.last)
            image = image_of_inputs(self.engine, pins, names, self.platform)
            if image is None:
                raise NotJudgedError(
                    "The engine has no image of this lock.",
                    code="image-missing",
                    where=names[0],
                    do=f"Run `stackbuild build {pins.stack}`, or a night with a rebuild.",
                )
        if image is not None:
            notes.found["image"] = image
            self._judge(image, self.case.ground.store)

    def _identity(self) -> PinList:
        """Note what the stack stands for tonight."""
        case, notes = self.case, self.case.notes
        spec, folder = case.stack.spec, case.stack.folder
        pins = pin_list(
            spec,
            self.lock.platforms[self.platform],
            files_sha256(spec, folder),
            lock_sha256=lock_sha256(self.lock),
        )
        last = last_locked_night(case.history, spec.name, self.platform)
        change = change_of_lock(last, self.lock, pins, case.ground.store, today=case.ground.today)
        if change is not None:
            notes.changed(change)
        remember_lock(self.lock, case.ground.store)
        notes.found["pins"] = pins.model_dump(mode="json", by_alias=True, exclude_none=True)
        notes.found["inputs_sha256"] = stack_inputs(case.stack, self.lock, self.platform, case.ground.environ)
        return pins

    @contextmanager
    def _workplace(self) -> Iterator[Store | None]:
        """An empty store, and a name for an image that is not judged yet; None where there can be neither."""
        case = self.case
        with ExitStack() as held:
            clean = None
            with case.notes.stage("rebuild"):
                area = stores_area(case.ground.store, case.options)
                held.enter_context(self._names.unfinished(self.engine))
                clean = held.enter_context(clean_store(area))
            yield clean

    def _rebuilt(self, pins: PinList, clean: Store) -> None:
        case, notes = self.case, self.case.notes
        names = self._names
        built = None
        with notes.stage("rebuild"):
            built = self._build(names, clean)
        if built is None:
            return
        image = built.image_id
        with notes.stage("compare"):
            tonight = Tonight(built.image_id, pins.stack, built.config_digest, built.diff_ids)
            drifted = self._compared_with_reference(tonight, pins, clean)
            image = names.settle(self.engine, built.image_id, drifted=drifted)
            notes.found["image"] = image
        self._judge(image, clean)
        with notes.stage("sbom"):
            notes.documents["sbom.json"] = stack_sbom(
                case.stack,
                self.lock,
                self.platform,
                site=case.ground.site,
                store=clean,
                observer=case.ground.observer,
                config_digest=built.config_digest,
            )

    def _compared_with_reference(self, tonight: Tonight, pins: PinList, clean: Store) -> bool:
        """Hold the rebuilt image against what it must equal; True for drift."""
        case, notes = self.case, self.case.notes
        names = self._names
        reference = reference_of_rebuild(
            case.history,
            self.engine,
            pins=pins,
            platform=self.platform,
            inputs_sha256=notes.found["inputs_sha256"],
            names=(names.last, image_tags(pins)[0]),
        )
        reference = self._with_published(tonight, reference, pins)
        difference = None
        if reference is not None:
            notes.found["compared_with"] = reference.name
            if not tonight.equals(reference):
                difference = explained(self.engine, tonight, reference, case.ground, tars=clean)
        finding = judge_rebuild(tonight, reference, difference, accepted=case.options.accept)
        notes.findings.append(finding)
        if finding.verdict is Verdict.FAIL and difference is not None:
            notes.drifted(difference)
            return True
        if difference is not None:
            notes.changed(difference)
        elif reference is None:
            self._explain_change(tonight, names, clean)
        return False

    def _with_published(
        self, tonight: Tonight, reference: Reference | None, pins: PinList
    ) -> Reference | None:
        """The reference, with the published image where that is needed to have one or to see into it."""
        prefix = self.case.options.published
        if not prefix or (reference is not None and (reference.image or tonight.equals(reference))):
            return reference
        try:
            with self.case.ground.registry() as client:
                published = published_image(client, f"{prefix}/{pins.stack}", pins, self.platform)
        except NotJudgedError as error:
            if reference is None:
                raise
            # It differs all the same; only less can be said of it.
            self.case.ground.observer.note(f"The published image could not be asked for: {error.what}")
            return reference
        if reference is None or published is None or published.diff_ids != reference.diff_ids:
            return reference or published
        return replace(reference, remote=published.remote)

    def _explain_change(self, tonight: Tonight, names: ImageNames, clean: Store) -> None:
        """Lock, spec, files or stackbuild are not the last night's: say what that changed, in files where both are there."""
        last = last_image(
            self.case.history, self.engine, stack=tonight.stack, platform=self.platform, names=(names.last,)
        )
        if last is None or tonight.equals(last):
            return
        change = explained(self.engine, tonight, last, self.case.ground, tars=clean)
        if "files" in change.levels or "change" not in self.case.notes.found:
            self.case.notes.changed(change)

    def _build(self, names: ImageNames, clean: Store) -> BuiltImage | None:
        case = self.case
        try:
            built = build_stack(
                case.stack,
                self.lock,
                engine=self.engine,
                store=clean,
                site=case.ground.site,
                options=BuildOptions(tags=(names.new,), platform=self.platform),
                environ=case.ground.environ,
                observer=case.ground.observer,
            )
        except NotJudgedError as error:
            if not self.foreign or error.code != "foreign-architecture":
                raise
            why = f"this engine runs {self.engine.platform()}, and its layers are made by running programs of {self.platform}"
            case.notes.findings.append(not_rebuilt(case.stack.spec.name, why, next_step=error.do))
            return None
        case.notes.found["config_digest"] = built.config_digest
        case.notes.found["diff_ids"] = built.diff_ids
        return built

    def _judge(self, image: str, tars: Store) -> None:
        judge_image(
            self.engine,
            image,
            self.case.stack.path,
            self.platform,
            self.case.ground,
            self.case.options,
            self.case.notes,
            tars=tars,
            runs_on="" if not self.foreign else self.engine.platform(),
        )
