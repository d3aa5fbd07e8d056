"""What all of a night shares."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import NotJudgedError
from stackbuild.facts.tables import Facts
from stackbuild.nightly.ground import Ground
from stackbuild.progress import SilentObserver
from stackbuild.site_config import SiteConfig
from stackbuild.store.outages import Outages
from stackbuild.store.retry import TransferError
from stackbuild.store.store import Store
from tests.support.loopback import LoopbackServer, Misbehaviour, Response


def test_a_server_that_one_client_found_down_no_other_asks(tmp_path: Path) -> None:
    with LoopbackServer(lambda asked: Response(404)) as server:
        server.misbehave("/", Misbehaviour(status=500))
        ground = Ground(
            site=SiteConfig(registries={"docker.io": server.url}),
            store=Store(tmp_path),
            connect=Engine.connect,
            environ={},
            observer=SilentObserver(),
            facts=Facts(),
            today=date(2026, 11, 30),
            keep=lambda _stack, _documents: {},
            outages=Outages(apart=0),
        )
        for _ in range(3):
            with pytest.raises(TransferError):
                ground.http().open(server.url)
        asked = len(server.requested("/"))
        for _ in range(2):
            with ground.registry() as client, pytest.raises(NotJudgedError) as caught:
                client.resolve("team/image", "1")
            assert caught.value.code == "registry-unreachable"
        assert len(server.requested("/")) == asked
