"""The night of a stack that is built here: inputs, clean rebuild, comparison, gates, newer versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from stackbuild.build.interface import BuiltImage
from stackbuild.build.plan import choose_platform
from stackbuild.build.stack import BuildOptions, build_stack
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import NotJudgedError
from stackbuild.findings import Finding, Verdict
from stackbuild.layers.files import files_sha256
from stackbuild.lock.file import lock_sha256, read_lock, require_current
from stackbuild.lock.model import Lock
from stackbuild.lock.path import lock_path
from stackbuild.nightly.clean_store import clean_store
from stackbuild.nightly.comparing import Tonight, explained
from stackbuild.nightly.ground import Ground, NightOptions
from stackbuild.nightly.history.history import History
from stackbuild.nightly.image_names import ImageNames
from stackbuild.nightly.inputs import check_inputs
from stackbuild.nightly.judging import aging_of, judge_image
from stackbuild.nightly.lock_change import change_of_lock, remember_lock
from stackbuild.nightly.newer import newer_versions
from stackbuild.nightly.notes import Notes
from stackbuild.nightly.outcome import outcome_of_inputs
from stackbuild.nightly.reference import image_of_inputs, last_image, reference_of_rebuild
from stackbuild.nightly.reproduced import judge_rebuild, not_rebuilt
from stackbuild.publish.inputs import stack_inputs
from stackbuild.publish.pin_list import PinList, pin_list
from stackbuild.publish.tags import image_tags
from stackbuild.sbom.stack import stack_sbom
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import Platform
from stackbuild.store.store import Store

# What an index or a repository answers when it is down: a rebuild would ask the same one and wait in vain.
_UNREACHABLE = frozenset(
    {"index-unreachable", "index-rate-limited", "repository-unreachable", "transfer-corrupt"}
)


@dataclass(frozen=True)
class OwnStack:
    """A stack that is built here.

    Attributes:
        stack: The spec.
        ground: What the night works with.
        options: How it is run.
        history: Earlier nights.
        notes: Where everything is noted.
    """

    stack: LoadedSpec
    ground: Ground
    options: NightOptions
    history: History
    notes: Notes

    def run(self) -> None:
        """Judge the stack; its trouble is noted, not raised.

        Raises:
            InterruptedRunError: The person stopped the run.
        """
        lock = self._lock()
        if lock is None:
            return
        self.notes.found["lock_sha256"] = lock_sha256(lock)
        with ExitStack() as closing:
            engine = platform = None
            with self.notes.stage("engine"):
                engine = closing.enter_context(self.ground.connect())
                platform = choose_platform(self.stack.spec, lock, engine.platform())
                self.notes.found["platform"] = platform
            inputs = self._inputs(lock, engine)
            if engine is not None and platform is not None:
                _OnEngine(self, lock, platform, engine).image(why_not=inputs)
            self._outlook(lock, engine)

    def _lock(self) -> Lock | None:
        with self.notes.stage("lock"):
            path = lock_path(self.stack.path)
            lock = read_lock(path)
            require_current(lock, self.stack.spec, self.stack.folder, path)
            return lock
        return None

    def _inputs(self, lock: Lock, engine: Engine | None) -> str:
        """Ask for the inputs; returns why nothing can be rebuilt from them, empty when it can."""
        why = "its inputs could not be asked for"
        with self.notes.stage("inputs"):
            findings = check_inputs(
                self.stack,
                lock,
                site=self.ground.site,
                store=self.ground.store,
                observer=self.ground.observer,
                engine=engine,
                pages=self.ground.pages,
            )
            outcome = outcome_of_inputs(findings)
            self.notes.asked(findings, outcome)
            if outcome == "spec-or-lock":
                why = "not all of its inputs can be had as they are locked"
            elif not _unreachable(findings):
                why = ""
        return why

    def _outlook(self, lock: Lock, engine: Engine | None) -> None:
        """What is newer, and what will not be cared for much longer."""
        with self.notes.stage("newer"):
            newer = newer_versions(
                self.stack,
                lock,
                site=self.ground.site,
                store=self.ground.store,
                facts=self.ground.facts,
                today=self.ground.today,
                observer=self.ground.observer,
                engine=engine,
                pages=self.ground.pages,
            )
            self.notes.found["newer"] = newer.versions
            failed = any(finding.verdict is Verdict.ERROR for finding in newer.findings)
            self.notes.asked(newer.findings, "not-judged" if failed else "unchanged")
        with self.notes.stage("aging"):
            self.notes.judged(aging_of(self.stack.spec, lock, self.ground))


@dataclass(frozen=True)
class _OnEngine:
    """The part that needs the engine."""

    own: OwnStack
    lock: Lock
    platform: Platform
    engine: Engine

    def image(self, *, why_not: str) -> None:
        """Rebuild, compare and judge; in a quick night judge the image that is there.

        Args:
            why_not: Why its inputs do not allow a rebuild; empty when they do.
        """
        own, notes = self.own, self.own.notes
        pins = None
        with notes.stage("lock"):
            pins = self._identity()
        if pins is None:
            return
        if not own.options.rebuild:
            notes.findings.append(not_rebuilt(pins.stack, "a quick night was asked for"))
            self._judge_what_is_there(pins)
        elif why_not:
            notes.findings.append(not_rebuilt(pins.stack, why_not))
        else:
            with self._workplace() as clean:
                if clean is not None:
                    self._rebuilt(pins, clean)

    def _judge_what_is_there(self, pins: PinList) -> None:
        """Judge the image that was built from this lock, or that the last night left."""
        notes = self.own.notes
        image = None
        with notes.stage("scan"):
            names = (image_tags(pins)[0], ImageNames(pins.stack).last)
            image = image_of_inputs(self.engine, pins, names)
            if image is None:
                raise NotJudgedError(
                    "The engine has no image of this lock.",
                    code="image-missing",
                    where=names[0],
                    do=f"Run `stackbuild build {pins.stack}`, or a night with a rebuild.",
                )
        if image is not None:
            notes.found["image"] = image
            self._judge(image, self.own.ground.store)

    def _identity(self) -> PinList:
        """Note what the stack stands for tonight."""
        own, notes = self.own, self.own.notes
        spec, folder = own.stack.spec, own.stack.folder
        pins = pin_list(
            spec,
            self.lock.platforms[self.platform],
            files_sha256(spec, folder),
            lock_sha256=lock_sha256(self.lock),
        )
        last = own.history.last(spec.name, platform=self.platform)
        change = change_of_lock(last, self.lock, pins, own.ground.store)
        if change is not None:
            notes.changed(change)
        remember_lock(self.lock, own.ground.store)
        notes.found["pins"] = pins.model_dump(mode="json", by_alias=True, exclude_none=True)
        notes.found["inputs_sha256"] = stack_inputs(own.stack, self.lock, self.platform, own.ground.environ)
        return pins

    @contextmanager
    def _workplace(self) -> Iterator[Store | None]:
        """An empty store, and a name for an image that is not judged yet; None where there can be neither."""
        own = self.own
        with ExitStack() as held:
            clean = None
            with own.notes.stage("rebuild"):
                area = own.ground.stores_area(own.options)
                held.enter_context(ImageNames(own.stack.spec.name).unfinished(self.engine))
                clean = held.enter_context(clean_store(area))
            yield clean

    def _rebuilt(self, pins: PinList, clean: Store) -> None:
        own, notes = self.own, self.own.notes
        names = ImageNames(pins.stack)
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
                own.stack,
                self.lock,
                self.platform,
                site=own.ground.site,
                store=clean,
                observer=own.ground.observer,
                config_digest=built.config_digest,
            )

    def _compared_with_reference(self, tonight: Tonight, pins: PinList, clean: Store) -> bool:
        """Hold the rebuilt image against what it must equal; True for drift."""
        own, notes = self.own, self.own.notes
        names = ImageNames(pins.stack)
        reference = reference_of_rebuild(
            own.history,
            self.engine,
            pins=pins,
            platform=self.platform,
            inputs_sha256=notes.found["inputs_sha256"],
            names=(names.last, image_tags(pins)[0]),
        )
        difference = None
        if reference is not None:
            notes.found["compared_with"] = reference.name
            if not tonight.equals(reference):
                difference = explained(self.engine, tonight, reference, own.ground, tars=clean)
        finding = judge_rebuild(tonight, reference, difference, accepted=own.options.accept)
        notes.findings.append(finding)
        if finding.verdict is Verdict.FAIL and difference is not None:
            notes.drifted(difference)
            return True
        if difference is not None:
            notes.changed(difference)
        elif reference is None and "change" not in notes.found:
            self._explain_change(tonight, names, clean)
        return False

    def _explain_change(self, tonight: Tonight, names: ImageNames, clean: Store) -> None:
        """The lock is the last night's, yet spec, files or stackbuild are not: say what that changed."""
        last = last_image(
            self.own.history, self.engine, stack=tonight.stack, platform=self.platform, names=(names.last,)
        )
        if last is not None and not tonight.equals(last):
            self.own.notes.changed(explained(self.engine, tonight, last, self.own.ground, tars=clean))

    def _build(self, names: ImageNames, clean: Store) -> BuiltImage:
        own = self.own
        built = build_stack(
            own.stack,
            self.lock,
            engine=self.engine,
            store=clean,
            site=own.ground.site,
            options=BuildOptions(tags=(names.new,)),
            environ=own.ground.environ,
            observer=own.ground.observer,
        )
        own.notes.found["config_digest"] = built.config_digest
        own.notes.found["diff_ids"] = built.diff_ids
        return built

    def _judge(self, image: str, tars: Store) -> None:
        judge_image(
            self.engine,
            image,
            self.own.stack.path,
            self.platform,
            self.own.ground,
            self.own.options,
            self.own.notes,
            tars=tars,
        )


def _unreachable(findings: Sequence[Finding]) -> bool:
    return any(finding.verdict is Verdict.ERROR and finding.code in _UNREACHABLE for finding in findings)
