"""What a remembered result is bound to: it is another one when anything that it depends on is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stackbuild.engine.models import EngineInfo, ImageInfo
from stackbuild.host.model import Host
from stackbuild.verification.binding import cache_key, surroundings_of
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.options import VerifyOptions
from tests.verification.support import cpu_promise

ENGINE = EngineInfo("20.10.24", "overlay2", False, False, ("runc",), "x86_64", "ID")
IMAGE = ImageInfo("sha256:1", {}, (), (), (), "", 0, "amd64", "linux")
PROMISE = cpu_promise()


def key(image: ImageInfo = IMAGE, promise: Any = PROMISE, engine: EngineInfo = ENGINE, **options: Any) -> str:
    return cache_key(image, promise, VerifyOptions(**options), engine)


@pytest.mark.parametrize(
    "changed",
    [
        {"image": replace(IMAGE, id="sha256:2")},
        {"promise": cpu_promise(batch=2)},
        {"engine": replace(ENGINE, server_version="28.5.2")},
        {"engine": replace(ENGINE, engine_id="another")},
        {"card": Host(driver="580.65.06")},
        {"gpus": GpuSelection(count=1)},
        {"gpus": GpuSelection(count=1, capabilities=("utility",))},
        {"injection": "cdi"},
        {"user": "1234"},
        {"shm_size": "1g"},
        {"read_only": True},
        {"gates": ("torch-matmul",)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_result_is_bound_to_all_that_it_depends_on(changed: dict[str, Any]) -> None:
    assert key(**changed) != key()


def test_a_result_does_not_depend_on_how_it_is_asked_for(tmp_path: Path) -> None:
    assert key(fresh=True, limit=5, evidence=tmp_path) == key()
    assert key(gates=("a", "b")) == key(gates=("b", "a"))
    assert key(card=Host(driver="580.65.06")) == key(card=Host(driver="580.65.06"))


def test_the_judge_is_told_of_the_engine() -> None:
    engine = replace(ENGINE, cgroup_driver="systemd", security=("rootless", "seccomp"))
    told = surroundings_of(VerifyOptions(gpus=GpuSelection(count=2)), engine)
    assert (told.cgroup_driver, told.rootless, told.selinux) == ("systemd", True, False)
    assert told.gpus.count == 2
