from __future__ import annotations

from pathlib import Path

import pytest

from stackbuild.errors import NotJudgedError
from stackbuild.progress import SilentObserver
from stackbuild.resolution.wheels.index_bindings import Bindings
from stackbuild.resolution.wheels.index_metadata import MetadataReader
from stackbuild.resolution.wheels.index_page import parse_page
from stackbuild.resolution.wheels.index_router import IndexRouter
from stackbuild.resolution.wheels.index_sources import Indexes
from stackbuild.site_config import IndexLocation, SiteConfig
from stackbuild.store.retry import RefusedError, TransferError
from stackbuild.store.store import Store
from tests.resolution.wheel_locking import HTTP
from tests.support.index_server import IndexServer
from tests.support.loopback import Misbehaviour
from tests.support.wheels import make_wheel, sha256_of


def test_a_page_passes_through_and_failures_are_kept(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "corp", "a", "1.0", requires=["leaf"])
    other = make_wheel(tmp_path / "default", "a", "2.0")
    with IndexServer(
        {"corp": tmp_path / "corp", "default": tmp_path / "default"},
        upload_times={wheel.name: "2026-01-02T03:04:05Z"},
    ) as server:
        site = SiteConfig(indexes={name: IndexLocation(url=server.url(name)) for name in ("corp", "default")})
        router = IndexRouter(
            Indexes(site, {}, default_url=lambda: "", http=HTTP, observer=SilentObserver()),
            Bindings({"a": "corp"}),
            MetadataReader(http=HTTP, store=Store(tmp_path / "store"), observer=SilentObserver()),
        )
        with router.serve() as url:
            answer = HTTP.read(f"{url}/a/")
            (file,) = parse_page(answer.body, answer.headers["Content-Type"], answer.url)
            assert (file.name, file.sha256, file.size) == (wheel.name, sha256_of(wheel), wheel.stat().st_size)
            assert (file.uploaded, file.core_metadata) == ("2026-01-02T03:04:05Z", True)
            assert b"Requires-Dist: leaf" in HTTP.read(f"{file.url}.metadata").body
            for path in ("nosuch/", "../files/a/b.whl.metadata", f"../files/a/{other.name}.metadata"):
                status = _status(f"{url}/{path}")
                assert status == 404, path
            assert router.failure is None
            server.misbehave("/simple/down", Misbehaviour(status=500))
            with pytest.raises(TransferError, match="502"):
                HTTP.read(f"{url}/down/")
            assert isinstance(router.failure, NotJudgedError)
            assert router.failure.code == "index-unreachable"


def _status(url: str) -> int:
    try:
        return HTTP.read(url).status
    except RefusedError as error:
        return error.status
