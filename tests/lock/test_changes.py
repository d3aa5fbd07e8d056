"""What a new lock changed, as lines for a person."""

from __future__ import annotations

from stackbuild.lock.changes import lock_changes
from tests.lock.examples import bootstrap_base, deb, lock, platform_lock, wheel


def test_changes_name_what_moved() -> None:
    before = lock(platforms={"linux/amd64": platform_lock(wheels=(wheel("numpy", "1.0"), wheel("gone")))})
    after = lock(
        platforms={
            "linux/amd64": platform_lock(
                base=bootstrap_base(deb("bash", "5.2")),
                wheels=(wheel("numpy", "2.0"), wheel("scipy")),
                debs=(deb("libgomp1", "2.0"), deb("python3.12")),
            )
        }
    )
    lines = lock_changes(before, after)
    assert lines[0].startswith("base nvidia/cuda:13.0.3-base-ubuntu24.04@sha256:")
    assert lines[1:] == (
        "deb bash 5.2 added",
        "deb libgomp1 1.0-1 → 2.0",
        "wheel gone 1.0 removed",
        "wheel numpy 1.0 → 2.0",
        "wheel scipy 1.0 added",
    )
    assert lock_changes(after, after) == ()
