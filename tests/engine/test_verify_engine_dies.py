"""An engine that ends while a verification runs: the host's fault, in a sentence."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import ExitCode, NotJudgedError
from stackbuild.progress import SilentObserver
from stackbuild.verification.promise import Promise
from stackbuild.verification.verify import VerifyOptions, verify_image
from tests.simulated_gpu.images import python_image
from tests.support.engine_program import installed_engine
from tests.support.second_engine import running_daemon

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_an_engine_that_ends_during_the_run_is_told_as_such() -> None:
    begun = threading.Event()

    class Listener(SilentObserver):
        def stage(self, name: str, detail: str = "") -> None:
            if detail == "torch-import":
                begun.set()

    with running_daemon(installed_engine()) as daemon:

        def end_it() -> None:
            assert begun.wait(600)
            os.kill(daemon.pid, signal.SIGKILL)

        killer = threading.Thread(target=end_it, daemon=True)
        killer.start()
        with Engine.connect(daemon.url) as engine:
            slow = {"usr/lib/python3/dist-packages/torch/__init__.py": b"import time; time.sleep(600)"}
            image = python_image(engine, files=slow)
            promise = Promise(source="spec", python="3.11", torch="2.14.1")
            with pytest.raises(NotJudgedError) as died:
                verify_image(engine, image, promise, VerifyOptions(), Listener())
        killer.join()
    assert died.value.code == "engine-died"
    assert died.value.exit_code is ExitCode.NOT_JUDGED
