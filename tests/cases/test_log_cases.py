"""What the reporters of the cases pasted is recognised as the same code that the gates would have given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.explain.recognise import recognise
from stackbuild.facts.tables import Facts

CASES = {
    path.stem: YAML(typ="safe").load(path) for path in sorted((Path(__file__).parent / "data").glob("*.yaml"))
}
LOGS = [(name, entry) for name, case in CASES.items() for entry in case.get("log", ())]


@pytest.mark.parametrize(("name", "entry"), LOGS, ids=[name for name, _ in LOGS])
def test_log(name: str, entry: dict[str, Any]) -> None:
    found = recognise(entry["text"].splitlines(), Facts())
    codes = entry["codes"] if "codes" in entry else [entry["code"]]
    assert [one.code for one in found][: len(codes)] == codes
    for code, apart in entry.get("apart", {}).items():
        told = next(one.signature.apart for one in found if one.code == code)
        assert apart in told


def test_there_are_logs() -> None:
    assert len(LOGS) >= 10
