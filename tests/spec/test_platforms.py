"""What environment markers see of a platform."""

from __future__ import annotations

from packaging.markers import Marker

from stackbuild.spec.platforms import MACHINES, PLATFORM_OF_MACHINE, marker_values


def test_markers_see_the_platforms_python_and_machine() -> None:
    values = marker_values("3.11.2", MACHINES["linux/arm64"])
    marker = Marker(
        "python_version == '3.11' and python_full_version >= '3.11.2' and implementation_name == 'cpython' "
        "and platform_machine == 'aarch64' and sys_platform == 'linux' and os_name == 'posix'"
    )
    assert marker.evaluate({**values, "extra": ""})
    assert not Marker("platform_machine == 'x86_64' or python_version > '3.11'").evaluate(
        {**values, "extra": ""}
    )


def test_a_machine_leads_back_to_its_platform() -> None:
    assert {PLATFORM_OF_MACHINE[machine] for machine in MACHINES.values()} == set(MACHINES)
