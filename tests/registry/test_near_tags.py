"""Tags suggested in place of one that does not exist."""

from __future__ import annotations

import pytest

from stackbuild.registry.near_tags import near_tags

TAGS = (
    "12.8.1-cudnn-devel-ubuntu22.04",
    "12.8.1-devel-ubuntu22.04",
    "12.4.0-devel-ubuntu22.04",
    "12.4.1-cudnn-devel-ubuntu22.04",
    "12.4.1-cudnn-runtime-ubuntu22.04",
    "12.3.2-cudnn9-devel-ubuntu22.04",
    "11.2.2-cudnn8-devel-ubuntu20.04",
    "13.0.3-base-ubuntu24.04",
    "latest",
)


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("12.8.1-cudnn8-devel-ubuntu22.04", "12.8.1-cudnn-devel-ubuntu22.04"),
        ("12.4.0-cudnn8-devel-ubuntu22.04", "12.4.1-cudnn-devel-ubuntu22.04"),
        ("12.3.2-cudnn8-devel-ubuntu22.04", "12.3.2-cudnn9-devel-ubuntu22.04"),
        ("11.2-cudnn8-devel-ubuntu18.04", "11.2.2-cudnn8-devel-ubuntu20.04"),
        ("13.0-base-ubuntu24.04", "13.0.3-base-ubuntu24.04"),
        ("13.0.3-base-ubuntu26.04", "13.0.3-base-ubuntu24.04"),
        ("lastest", "latest"),
    ],
)
def test_first_suggestion(wanted: str, first: str) -> None:
    assert near_tags(wanted, TAGS)[0] == first


def test_order_of_the_list_does_not_matter() -> None:
    assert near_tags("12.8.1-cudnn8-devel-ubuntu22.04", reversed(TAGS)) == near_tags(
        "12.8.1-cudnn8-devel-ubuntu22.04", TAGS
    )


def test_nothing_near_gives_nothing() -> None:
    assert near_tags("zzz", ("1.0", "2.0")) == ()
