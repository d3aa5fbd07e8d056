"""Makes the suite's modules importable, as they are inside an image."""

from __future__ import annotations

import pytest

from tests.verify_suite.support import SUITE


@pytest.fixture(autouse=True)
def _suite_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SUITE))
