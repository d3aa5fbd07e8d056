"""A store that may be read alone serves what it has, and keeps nothing: nobody's verdict waits for that."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from stackbuild.errors import UsageError
from stackbuild.progress import SilentObserver
from stackbuild.sbom.kept import kept_scan_sbom
from stackbuild.scan.layer import RECORD_KIND
from stackbuild.scan.scan import scan_of
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.archive import ArchiveSource
from stackbuild.store.store import Store
from tests.support.layer_tars import digest, layer_tar, write_docker_archive

LAYERS = [layer_tar({"etc/os-release": "ID=debian\n"}), layer_tar({"srv/a": "b"})]


class Notes(SilentObserver):
    """Collects what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, message: str) -> None:
        """Keep it."""
        self.said.append(message)


@pytest.fixture(params=[errno.EROFS, errno.EACCES])
def read_only(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store in which no file can be made, as on a disk that is mounted to be read; root may write elsewhere."""
    store = Store(tmp_path / "store")
    code: int = request.param

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code), str(store.root / "tmp/x"))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    return store


def test_a_scan_goes_on_and_says_once_that_nothing_is_kept(read_only: Store, tmp_path: Path) -> None:
    notes = Notes()
    with ArchiveSource(write_docker_archive(tmp_path / "saved.tar", LAYERS)) as source:
        scan = scan_of(scan_image(source, notes, store=read_only))
    assert scan.os.id == "debian"
    assert kept_scan_sbom(scan, read_only) == kept_scan_sbom(scan, None)
    (said,) = notes.said
    assert "is not kept: the store cannot be used" in said
    assert read_only.record(RECORD_KIND, digest(LAYERS[0])) is None


def test_what_must_be_written_is_refused_in_a_sentence(read_only: Store) -> None:
    value: dict[str, Any] = {"a": 1}
    with pytest.raises(UsageError) as caught:
        read_only.put_record("kind", "key", value)
    assert (caught.value.code, caught.value.where) == ("store-unusable", str(read_only.root))


def test_a_store_that_cannot_be_made_on_a_read_only_disk_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UsageError) as caught:
        Store(tmp_path / "store")
    assert caught.value.code == "store-unusable"
