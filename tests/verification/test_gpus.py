"""GPU selections and device requests (case F04)."""

from __future__ import annotations

import pytest

from stackbuild.errors import ExitCode, UsageError
from stackbuild.verification.gpus import GpuSelection, default_gpus, device_requests, parse_gpus


@pytest.mark.parametrize(
    ("text", "count", "ids"),
    [
        ("all", -1, ()),
        ("none", 0, ()),
        ("0", 0, ()),
        ("2", 2, ()),
        ("device=0", 0, ("0",)),
        ("device=0,1", 0, ("0", "1")),
        ("device=GPU-8932f937-d72c,MIG-1f2", 0, ("GPU-8932f937-d72c", "MIG-1f2")),
        ("device=0:1", 0, ("0:1",)),
    ],
)
def test_a_selection_is_read_and_written_alike(text: str, count: int, ids: tuple[str, ...]) -> None:
    selection = parse_gpus(text)
    assert selection == GpuSelection(count, ids)
    assert str(selection) == {"0": "none"}.get(text, text)


@pytest.mark.parametrize(
    "text", ["", "some", "-1", "1,2", "device=", "device=0,,1", "device=0 1", "gpu=0", "²", "٣"]
)
def test_nonsense_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_gpus(text)
    assert caught.value.code == "bad-device-request"
    assert caught.value.exit_code is ExitCode.USAGE
    assert "all, none, a number, or device=" in caught.value.do


def test_f04_count_and_ids_together_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot both be given") as caught:
        GpuSelection(count=2, device_ids=("0", "1"))
    assert caught.value.code == "bad-device-request"


def test_f04_a_flat_capability_list_is_refused() -> None:
    with pytest.raises(UsageError, match="a list of lists") as caught:
        device_requests(GpuSelection(count=-1), capabilities=["gpu"])
    assert caught.value.code == "bad-device-request"


def test_f04_ids_with_nested_capabilities_make_a_request() -> None:
    (request,) = device_requests(GpuSelection(device_ids=("0",)))
    assert request.device_ids == ("0",)
    assert request.count == 0
    assert request.capabilities == (("gpu", "compute", "utility"),)


def test_no_gpu_makes_no_request() -> None:
    assert device_requests(GpuSelection()) == ()


def test_a_device_named_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="named twice"):
        parse_gpus("device=0,0")


def test_a_gpu_stack_gets_all_gpus_unless_somebody_says_otherwise() -> None:
    assert str(default_gpus("cuda")) == "all"
    assert str(default_gpus("cpu")) == "none"
