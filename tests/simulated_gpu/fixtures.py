"""The fixture ``simulated_host``: engines on which containers get a simulated host's GPUs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.simulated_gpu.cdi import cdi_specification
from tests.simulated_gpu.host import SimulatedHost, host_file, load_host
from tests.simulated_gpu.injection import injection
from tests.simulated_gpu.runtime_hook import HOOK_NAME, HOST_VARIABLE, INJECTION_FILE
from tests.support.engine_program import installed_engine, newer_engine
from tests.support.registry import Registry
from tests.support.second_engine import running_daemon

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine

Mode = Literal["hook", "cdi"]
OnSimulatedHost = Callable[..., AbstractContextManager["Engine"]]

_RUNTIME, _DEFAULT_RUNTIME = "nvidia", "runc-for-simulated-gpus"
_REPOSITORY = Path(__file__).parents[2]


class SimulatedMachine:
    """One engine, started once, whose GPUs can be exchanged while no container runs.

    Args:
        mode: How GPUs reach containers.
        folder: An empty folder.
        reach: Ports of this machine's loopback that the engine reaches.
    """

    def __init__(self, mode: Mode, folder: Path, reach: Sequence[int] = ()) -> None:
        self.mode = mode
        self.folder = folder
        self._reach = tuple(reach)
        self._programs, self._host, self._cdi = (folder / name for name in ("bin", "host", "cdi"))
        self._running = ExitStack()
        self.engine: Engine | None = None

    def start(self) -> Engine:
        """Its engine, started when it is not."""
        from stackbuild.engine.docker_engine import Engine

        if self.engine is None:
            for folder in (self._programs, self._host, self._cdi):
                folder.mkdir(parents=True)
            hook = self._add_program(HOOK_NAME, f"exec {self._python('runtime_hook', 'main(sys.argv)')}")
            runtimes = {
                _DEFAULT_RUNTIME: f"prepare(sys.argv, Path({str(self._host)!r}))",
                _RUNTIME: f"prepare(sys.argv, Path({str(self._host)!r}), Path({str(hook)!r}))",
            }
            settings: dict[str, object] = {
                "runtimes": {
                    name: {"path": str(self._add_runtime(name, call))} for name, call in runtimes.items()
                },
                "default-runtime": _DEFAULT_RUNTIME,
            }
            if self.mode == "cdi":
                settings |= {"features": {"cdi": True}, "cdi-spec-dirs": [str(self._cdi)]}
            daemon = self._running.enter_context(
                running_daemon(
                    newer_engine() if self.mode == "cdi" else installed_engine(),
                    programs=self._programs,
                    environment={HOST_VARIABLE: str(self._host)},
                    settings=settings,
                    reach=self._reach,
                )
            )
            self.engine = self._running.enter_context(Engine.connect(daemon.url))
        return self.engine

    def _add_runtime(self, name: str, call: str) -> Path:
        """An OCI runtime: ``call`` of container_runtime.py when a container is created, then runc."""
        prepare = self._python("container_runtime", call)
        return self._add_program(
            f"{name}-runtime", f'case " $* " in *" create "*) {prepare} || exit ;; esac\nexec runc "$@"'
        )

    def _add_program(self, name: str, script: str) -> Path:
        program = self._programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    def _python(self, module: str, call: str) -> str:
        """A shell command that runs ``call`` of a module of this folder with the script's arguments."""
        function = call.partition("(")[0]
        code = (
            f"import sys\nfrom pathlib import Path\nsys.path.insert(0, {str(_REPOSITORY)!r})\n"
            f"from tests.simulated_gpu.{module} import {function}\nsys.exit({call})"
        )
        return f'{shlex.quote(sys.executable)} -I -c {shlex.quote(code)} "$@"'

    def stop(self) -> None:
        """End its engine and all that runs on it."""
        self._running.close()

    @contextmanager
    def with_host(self, host: SimulatedHost) -> Iterator[Engine]:
        """Its engine while the machine is ``host``."""
        engine = self.start()
        written = self._host / "host.conf"
        written.write_text(host_file(host))
        injected = injection(host, written)
        (self._host / INJECTION_FILE).write_text(json.dumps(injected.as_json()))
        specification = self._cdi / "nvidia.json"
        if "no-driver" not in host.failures:
            specification.write_text(json.dumps(cdi_specification(injected, self._programs / HOOK_NAME)))
        try:
            yield engine
        finally:
            for path in (written, self._host / INJECTION_FILE, specification):
                path.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def simulated_host(tmp_path_factory: pytest.TempPathFactory, registry: Registry) -> Iterator[OnSimulatedHost]:
    """Called as ``simulated_host(HOST, injection="hook" | "cdi", **changes)``; a context that gives the engine.

    HOST is a file of ``hosts/`` or a :class:`SimulatedHost`; changes replace its fields, for example
    ``failures=("uvm-missing",)``. The hook works on the installed engine, CDI on one of 25 or newer. Images
    stay on an engine for the session. It reaches the session's registry.
    """
    machines: dict[Mode, SimulatedMachine] = {}

    def on(
        host: str | SimulatedHost, *, injection: Mode = "hook", **changes: object
    ) -> AbstractContextManager[Engine]:
        chosen = load_host(host) if isinstance(host, str) else host
        if changes:
            chosen = SimulatedHost.model_validate(chosen.model_dump() | changes)
        if injection not in machines:
            machines[injection] = SimulatedMachine(
                injection, tmp_path_factory.mktemp(f"simulated-{injection}"), [registry.port]
            )
        return machines[injection].with_host(chosen)

    yield on
    for machine in machines.values():
        machine.stop()
