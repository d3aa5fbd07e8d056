"""A probe with the answers of a machine one does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stackbuild.engine.models import EngineInfo
from stackbuild.host.nvml import NvmlAnswer
from stackbuild.host.probe import Answer, EngineAnswer, Platform

LINUX = Platform("Linux", "6.8.0-79-generic", "", "x86_64", "gpu-01", "3.12.3", "glibc 2.39", "", 64)
NO_NVML = NvmlAnswer(problem="there is no NVML library", absent=True)
NO_ENGINE = EngineAnswer(problem="No Docker engine answers")


def engine(*runtimes: str, version: str = "28.5.2", cdi: bool = False) -> EngineAnswer:
    """An engine of that version with those runtimes."""
    return EngineAnswer(EngineInfo(version, "overlay2", False, cdi, ("runc", *runtimes), "x86_64", ""))


@dataclass(frozen=True)
class RecordedProbe:
    """Answers what it was given; everything else is not there."""

    known: Platform = LINUX
    files: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, Answer | str] = field(default_factory=dict)
    library: NvmlAnswer = NO_NVML
    docker: EngineAnswer = NO_ENGINE
    packages: Mapping[str, str] = field(default_factory=dict)

    def platform(self) -> Platform:
        return self.known

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return any(name == path or name.startswith(f"{path}/") for name in self.files)

    def names(self, folder: str) -> tuple[str, ...]:
        inside = (name.removeprefix(f"{folder}/") for name in self.files if name.startswith(f"{folder}/"))
        return tuple(sorted({name.split("/")[0] for name in inside}))

    def run(self, *argv: str) -> Answer | None:
        answer = self.tools.get(argv[0])
        return Answer(answer) if isinstance(answer, str) else answer

    def nvml(self) -> NvmlAnswer:
        return self.library

    def engine(self) -> EngineAnswer:
        return self.docker

    def package(self, name: str) -> str | None:
        return self.packages.get(name)
