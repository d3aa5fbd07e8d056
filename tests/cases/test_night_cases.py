"""Failures that people reported of nightly and clean builds: the change, and the word it must get."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.errors import StackbuildError
from stackbuild.nightly.outcome import outcome_of_inputs
from stackbuild.progress import SilentObserver
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RetryPolicy
from stackbuild.store.store import Store
from tests.nightly.inputs.scene import TAG, Scene, scene
from tests.support.loopback import LoopbackServer, Misbehaviour, Response

CASES = {
    path.stem: YAML(typ="safe").load(path)
    for path in sorted((Path(__file__).parent / "night").glob("*.yaml"))
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "finding" in case])
def test_the_change_is_named_for_what_it_is(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    indexes = {wheel["index"] for wheel in case.get("wheels", ())} - {"default"}
    with scene(tmp_path, {}, indexes=tuple(sorted(indexes))) as night:
        for wheel in case.get("wheels", ()):
            night.wheel(wheel["name"], wheel["version"], *wheel.get("requires", ()), index=wheel["index"])
        night.lock_now(frameworks=case.get("frameworks", {}))
        locked = night.lock
        _change(night, case)
        findings = night.check()
        assert night.lock == locked
    expected = case["finding"]
    found = next(finding for finding in findings if finding.code == expected["code"])
    assert found.verdict == expected["verdict"]
    for words in expected["says"]:
        assert words in f"{found.summary} {found.next_step}"
    assert not {finding.code for finding in findings} & set(case["never"])
    assert outcome_of_inputs(findings) == case["outcome"]


def _change(night: Scene, case: dict[str, Any]) -> None:
    registry = case.get("registry", {})
    if registry.get("tag") == "gone":
        del night.registry.tags[TAG]
        night.image(tag="12.6.3-base-ubuntu22.04")
    if registry.get("digest") == "gone":
        night.registry.documents.clear()
    if "answers" in registry:
        answers = registry["answers"]
        times = None if answers == "always-429" else len(answers)
        limit = Misbehaviour(status=429, headers={"Retry-After": "1"}, times=times)
        night.registry.server.misbehave("/manifests/", limit)
    if "removed" in case:
        removed = case["removed"]
        prefix = removed["name"].replace("-", "_")
        (wheel,) = (night.root / removed["index"]).glob(f"{prefix}-*.whl")
        wheel.unlink()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "transfers" in case])
def test_a_wrong_hash_is_a_bad_line_or_a_changed_file(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    wanted = hashlib.sha256(b"bcb").hexdigest()
    with LoopbackServer(lambda request: Response(404)) as server:
        for got in reversed(case["transfers"]):
            server.misbehave("/torch", Misbehaviour(replace=got.encode(), times=1))
        http = HttpClient(retry=RetryPolicy(attempts=2, first_delay=0.01), timeout=60)
        request = FetchRequest("torch.whl", (f"{server.url}/torch.whl",), wanted, 3)
        with pytest.raises(StackbuildError) as caught:
            fetch_all([request], Store(tmp_path), observer=SilentObserver(), http=http)
    assert caught.value.code == case["error"]["code"]
    assert caught.value.exit_code == case["error"]["exit-code"]
    assert wanted in caught.value.detail


def test_there_are_cases() -> None:
    assert {case["id"] for case in CASES.values()} >= {"E01", "E07", "H03", "H05"}
