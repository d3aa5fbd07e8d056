"""Wheels that were locked once are locked for every test that has the same."""

from __future__ import annotations

import pytest

from stackbuild.resolution.wheels.locking import WheelsResult


@pytest.fixture(scope="session")
def resolved() -> dict[str, WheelsResult]:
    """What the resolver answered, by what it was asked; starting it takes most of a test's time."""
    return {}
