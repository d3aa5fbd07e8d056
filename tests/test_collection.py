"""The collector of cycles rests during a command, and works again after it however it ends."""

from __future__ import annotations

import gc

import pytest

from stackbuild.collection import collection_paused


def test_it_rests_and_works_again_after_a_failure() -> None:
    @collection_paused()
    def command() -> None:
        assert not gc.isenabled()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        command()
    assert gc.isenabled()


def test_where_it_rested_before_it_rests_after() -> None:
    gc.disable()
    try:
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
