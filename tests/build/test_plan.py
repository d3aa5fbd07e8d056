from __future__ import annotations

import pytest

from stackbuild.build.plan import choose_platform, created_at, plan_key
from stackbuild.errors import LockError, UsageError
from stackbuild.layers.chain import chain_key, present_layers
from stackbuild.lock.model import Lock
from tests.render.stacks import CREATED, gpu_stack


def lock() -> Lock:
    stack, platform = gpu_stack()
    return Lock(stack=stack.name, spec_sha256="0" * 64, platforms={"linux/amd64": platform})


@pytest.mark.parametrize("epoch", ["yesterday", "-5", "1_700", " 17", "17.0", "١٧", "9" * 20])
def test_another_source_date_epoch_than_a_number_of_seconds(epoch: str) -> None:
    with pytest.raises(UsageError) as caught:
        created_at(lock(), "linux/amd64", {"SOURCE_DATE_EPOCH": epoch})
    assert caught.value.code == "source-date-epoch-invalid"


def test_created_is_the_newest_input_unless_told() -> None:
    assert created_at(lock(), "linux/amd64", {}) == CREATED
    assert created_at(lock(), "linux/amd64", {"SOURCE_DATE_EPOCH": "1700000000"}) == "2023-11-14T22:13:20Z"


def test_anything_that_decides_the_image_changes_the_key() -> None:
    stack, _ = gpu_stack()

    def key(**changed: object) -> str:
        arguments = {"platform": "linux/amd64", "builder": "assemble", "created": CREATED, **changed}
        return plan_key(stack, lock(), "files", **arguments)  # type: ignore[arg-type]

    keys = {
        key(),
        key(builder="dockerfile"),
        key(created="2023-11-14T22:13:20Z"),
        key(platform="linux/arm64"),
    }
    assert len(keys) == 4
    other = stack.model_copy(update={"summary": "another"})
    same = {"platform": "linux/amd64", "builder": "assemble", "created": CREATED}
    assert plan_key(other, lock(), "files", **same) != key()  # type: ignore[arg-type]
    assert plan_key(stack, lock(), "other files", **same) != key()  # type: ignore[arg-type]
    assert key() == key()


def test_the_platform_is_the_engines() -> None:
    stack, _ = gpu_stack()
    assert choose_platform(stack, lock(), "linux/amd64") == "linux/amd64"
    with pytest.raises(LockError) as caught:
        choose_platform(stack, lock(), "linux/arm64")
    assert caught.value.code == "platform-not-locked"


def test_layers_count_only_as_a_whole_chain() -> None:
    assert present_layers(["a", "b", "c"], [["a", "b", "x"], ["b", "c"], []]) == 2
    assert present_layers(["a"], [["a", "b"]]) == 1
    assert present_layers(["a"], []) == 0
    assert chain_key(["a", "b"]) != chain_key(["b", "a"])
