"""Runs the suite in the way or ways of injection that were asked for, and judges each run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import EngineInfo, ImageInfo
from stackbuild.errors import NotJudgedError
from stackbuild.findings import Finding, Verdict
from stackbuild.progress import Observer
from stackbuild.verification.binding import surroundings_of
from stackbuild.verification.evidence import keep_evidence
from stackbuild.verification.files import stack_files
from stackbuild.verification.gate_codes import GATE_CODES
from stackbuild.verification.injection import MODES, Injected, Mode, candidate_modes, injected, unavailable
from stackbuild.verification.launch import ARCHIVE_NAME, INTERPRETERS, PLAN_NAME, LaunchOptions, run_suite
from stackbuild.verification.model import InjectedBy, SuiteRun
from stackbuild.verification.options import VerifyOptions
from stackbuild.verification.plan import device_missing, plan_bytes, plan_gates
from stackbuild.verification.probe import REFUSALS, refusal
from stackbuild.verification.promise import Promise
from stackbuild.verification.service import ask_service
from stackbuild.verification.suite_archive import suite_archive

_NO_TOOLKIT = "toolkit-not-installed"


@dataclass(frozen=True)
class Judged:
    """What came of a verification: the run, its findings, and how the GPUs came."""

    run: SuiteRun
    findings: tuple[Finding, ...]
    by: InjectedBy


class Verification:
    """One image to be verified on one engine."""

    def __init__(
        self,
        engine: Engine,
        info: EngineInfo,
        image: ImageInfo,
        promise: Promise,
        options: VerifyOptions,
        observer: Observer,
    ) -> None:
        self._engine = engine
        self._info = info
        self._image = image
        self._promise = promise
        self._options = options
        self._observer = observer

    def judged(self) -> Judged:
        """Run and judge, as the options' injection says."""
        if self._options.gpus.none:
            run, findings = self._run(Injected())
            return Judged(run, findings, "none")
        if self._options.injection == "all":
            return self._all()
        if self._options.injection == "auto":
            return self._auto()
        return self._one(self._options.injection)

    def _one(self, mode: Mode) -> Judged:
        from stackbuild.verification.judge.findings import finding

        why = unavailable(mode, self._info)
        if why:
            absent = finding("injection-not-available", Verdict.ERROR, why, required=mode)
            return self._refused(absent, mode)
        asked = injected(mode, self._options.gpus)
        refused = self._refusal(asked)
        if refused is not None:
            return self._refused(refused, mode)
        run, findings = self._run(asked)
        return Judged(run, findings, mode)

    def _auto(self) -> Judged:
        first: Judged | None = None
        for mode in candidate_modes(self._info, self._options.card):
            judged = self._one(mode)
            if judged.findings[0].code != _NO_TOOLKIT:
                return judged
            first = first or judged
        return first or self._one("hook")

    def _all(self) -> Judged:
        from stackbuild.verification.modes import ModeRun, merged_findings

        runs: list[ModeRun] = []
        absent: dict[Mode, str] = {}
        refused: Judged | None = None
        for mode in MODES:
            why = unavailable(mode, self._info)
            judged = None if why else self._one(mode)
            if judged is None:
                absent[mode] = why
            elif judged.findings[0].code == _NO_TOOLKIT:
                absent[mode] = judged.findings[0].summary
                refused = refused or judged
            else:
                runs.append(ModeRun(mode, judged.run, judged.findings))
        if not runs:
            return refused or self._one("hook")
        return Judged(runs[0].run, merged_findings(runs, absent), "all")

    def _refusal(self, asked: Injected) -> Finding | None:
        from stackbuild.verification.judge.start_failure import judge_start_failure

        words = refusal(self._engine, self._image, asked)
        return judge_start_failure(words) if words else None

    def _refused(self, obstacle: Finding, mode: Mode) -> Judged:
        from stackbuild.verification.judge.run import not_run

        others = [code for code in GATE_CODES if code != obstacle.code]
        why = f"not judged: {obstacle.code}"
        findings = (obstacle, *not_run(why, others, self._promise))
        return Judged(SuiteRun(limit=self._options.limit), findings, mode)

    def _run(self, asked: Injected) -> tuple[SuiteRun, tuple[Finding, ...]]:
        # Judging reads the facts, which a remembered result has no need of.
        from stackbuild.verification.judge.run import judge_run
        from stackbuild.verification.judge.start_failure import judge_start_failure

        promise, options = self._promise, self._options
        launch = LaunchOptions(
            interpreters=(promise.python_executable,) if promise.python_executable else INTERPRETERS,
            injected=asked,
            user=options.user or promise.user,
            shm_size=options.shm_size or promise.shm_size,
            ulimits=promise.ulimits,
            read_only=options.read_only or promise.read_only,
            limit=options.limit,
        )
        try:
            run = run_suite(self._engine, self._image, self._files(), launch, self._observer)
        except NotJudgedError as error:
            if error.code not in REFUSALS:
                raise
            refused = self._refused(judge_start_failure(error.detail), "hook")
            return refused.run, refused.findings
        if promise.service is not None and run.finished and not device_missing(promise, options.gpus):
            service = ask_service(self._engine, self._image, promise, launch, run, self._observer)
            run = run.model_copy(update={"results": {**run.results, service.name: service}})
        if options.evidence is not None:
            run = keep_evidence(run, options.evidence)
        return run, judge_run(promise, run, surroundings_of(options, self._info))

    def _files(self) -> Mapping[str, bytes]:
        """What goes to the suite's folder in the container."""
        return {
            ARCHIVE_NAME: suite_archive(),
            PLAN_NAME: plan_bytes(
                plan_gates(self._promise, self._options.gpus, evidence=self._options.evidence is not None)
            ),
            **stack_files(self._promise),
        }
