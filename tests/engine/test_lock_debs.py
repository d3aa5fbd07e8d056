"""Resolving debs with the base's own apt, against a repository on loopback."""

from __future__ import annotations

import hashlib
import io
import tarfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stackbuild.errors import ExitCode, LockError, NotJudgedError
from stackbuild.lock.model import LockedDeb
from stackbuild.progress import SilentObserver
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.bases.base import ensure_base
from stackbuild.resolution.bases.image_base import lock_image_base
from stackbuild.resolution.debs.apt_keys import fetch_apt_keys
from stackbuild.resolution.debs.apt_sources import AptRepository
from stackbuild.resolution.debs.deb_files import fetch_debs
from stackbuild.resolution.debs.locking import DebRequest, DebResolution, resolve_debs
from stackbuild.resolution.image_files import image_files
from stackbuild.resolution.os_facts import measure_os
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import AptSource, ImageBaseSpec
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RetryPolicy
from stackbuild.store.store import Store
from tests.support.base_image import busybox_rootfs, docker_archive, push_nvidia_base
from tests.support.debs import AptRepository as OwnRepository
from tests.support.debs import SigningKey, make_deb
from tests.support.loopback import LoopbackServer
from tests.support.registry import Registry

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine
    from tests.engine.conftest import DebianBase

pytestmark = pytest.mark.engine

SOURCES = b"deb [trusted=yes] http://repository.example/debian stable main\n"
RELEASED = "2023-11-14T22:13:20Z"


class Notes(SilentObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


@dataclass
class Site:
    """A base whose one repository is served on loopback through the site's mirror."""

    engine: Engine
    image: str
    folder: Path
    repository: OwnRepository
    server: LoopbackServer

    @property
    def config(self) -> SiteConfig:
        return SiteConfig(repositories={"debian": self.server.url})

    def publish(self, name: str, version: str, *control: str, architecture: str = "all") -> Path:
        deb = make_deb(self.folder, name, version, control=control, architecture=architecture)
        self.repository.add(deb)
        self.repository.write()
        return deb

    def resolve(
        self,
        *packages: str,
        python: str = "",
        keep: tuple[LockedDeb, ...] = (),
        observer: SilentObserver | None = None,
    ) -> DebResolution:
        return resolve_debs(
            DebRequest(packages, python),
            self.image,
            engine=self.engine,
            site=self.config,
            keep=keep,
            observer=observer or SilentObserver(),
        )


@pytest.fixture(scope="module")
def apt_image(engine: Engine, debian_base: DebianBase) -> Iterator[str]:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        entry = tarfile.TarInfo("etc/apt/sources.list")
        entry.size = len(SOURCES)
        archive.addfile(entry, io.BytesIO(SOURCES))
    ref = f"stackbuild-test/apt:{uuid.uuid4().hex[:12]}"
    archive_bytes, _ = docker_archive([debian_base.tar, raw.getvalue()], ref=ref)
    engine.load([archive_bytes])
    yield ref
    engine.remove_image(ref)


@pytest.fixture
def site(engine: Engine, apt_image: str, tmp_path: Path) -> Iterator[Site]:
    repository = OwnRepository(tmp_path / "repository")
    with repository.server() as server:
        made = Site(engine, apt_image, tmp_path / "debs", repository, server)
        made.publish("unrelated", "1.0")
        yield made


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_debs_are_locked_with_hash_path_and_repository(site: Site, tmp_path: Path) -> None:
    helper = site.publish("helper", "1:2.0~rc1-1", architecture="amd64")
    tool = site.publish("tool", "1.0", "Depends: helper, coreutils")
    found = site.resolve("tool")
    assert [(deb.name, deb.version, deb.architecture, deb.sha256, deb.size) for deb in found.debs] == [
        ("helper", "1:2.0~rc1-1", "amd64", _sha256(helper), helper.stat().st_size),
        ("tool", "1.0", "all", _sha256(tool), tool.stat().st_size),
    ]
    assert {deb.repository for deb in found.debs} == {"debian"}
    assert found.debs[0].path == "pool/main/helper_2.0~rc1-1_amd64.deb"
    assert found.released == RELEASED
    assert found.base_upgrades == ()
    fetched = fetch_debs(
        found.debs, (), created=RELEASED, store=Store(tmp_path / "store"), site=site.config, observer=Notes()
    )
    assert [path.read_bytes() for _, path in fetched] == [helper.read_bytes(), tool.read_bytes()]


def test_what_the_base_has_is_not_locked(site: Site) -> None:
    assert site.resolve("coreutils").debs == ()


def test_a_removal_is_refused_naming_both(site: Site) -> None:
    site.publish("jealous", "1.0", "Conflicts: ca-certificates")
    with pytest.raises(LockError) as caught:
        site.resolve("jealous")
    assert caught.value.code == "deb-removes-package"
    assert caught.value.exit_code is ExitCode.SPEC_OR_LOCK
    assert "jealous" in caught.value.what
    assert "ca-certificates" in caught.value.what


def test_an_upgrade_of_the_base_is_told(site: Site) -> None:
    site.publish("ca-certificates", "99999999")
    observer = Notes()
    found = site.resolve("ca-certificates", observer=observer)
    assert found.base_upgrades == ("ca-certificates",)
    assert any("to 99999999" in note for note in observer.notes)


def test_an_unknown_package_is_named(site: Site) -> None:
    with pytest.raises(LockError) as caught:
        site.resolve("unrelated", "libgopm1")
    assert caught.value.code == "no-such-deb"
    assert "libgopm1" in caught.value.what
    assert "unrelated" not in caught.value.what


def test_what_cannot_be_installed_shows_why(site: Site) -> None:
    site.publish("broken", "1.0", "Depends: nowhere (>= 3)")
    with pytest.raises(LockError) as caught:
        site.resolve("broken")
    assert caught.value.code == "debs-unsolvable"
    assert "nowhere" in caught.value.detail


def test_another_python_than_the_distributions(site: Site) -> None:
    site.publish("python3.11", "3.11.2-6")
    with pytest.raises(LockError) as caught:
        site.resolve(python="3.12")
    assert caught.value.code == "python-not-in-distribution"
    assert "it has 3.11" in caught.value.what


def test_python_is_named_by_its_package(site: Site) -> None:
    site.publish("python3.11", "3.11.2-6+deb12u6")
    found = site.resolve(python="3.11")
    assert found.python is not None
    assert (found.python.version, found.python.executable) == ("3.11.2", "/usr/bin/python3.11")


def test_a_locked_deb_stays_until_the_repository_drops_it(site: Site) -> None:
    old = site.publish("tool", "1.0")
    before = site.resolve("tool").debs
    site.publish("tool", "2.0")
    assert site.resolve("tool", keep=before).debs == before
    assert [deb.version for deb in site.resolve("tool").debs] == ["2.0"]
    site.repository.forget(old.name)
    site.repository.write()
    assert [deb.version for deb in site.resolve("tool", keep=before).debs] == ["2.0"]


def test_a_superseded_deb_says_to_lock_again(site: Site, tmp_path: Path) -> None:
    old = site.publish("tool", "1.0")
    debs = site.resolve("tool").debs
    site.repository.forget(old.name)
    with pytest.raises(LockError) as caught:
        fetch_debs(
            debs,
            [AptRepository(site.server.url + "/elsewhere/debian", "stable", ("main",))],
            created=RELEASED,
            store=Store(tmp_path / "store"),
            site=site.config,
            observer=SilentObserver(),
        )
    assert caught.value.code == "deb-superseded"
    assert caught.value.exit_code is ExitCode.SPEC_OR_LOCK
    assert "Lock again" in caught.value.do


def test_a_superseded_deb_comes_from_the_snapshot_archive(site: Site, tmp_path: Path) -> None:
    old = site.publish("tool", "1.0")
    debs = site.resolve("tool").debs
    site.repository.forget(old.name)
    archived = tmp_path / "repository/archive/debian/20231114T221320Z/pool/main" / old.name
    archived.parent.mkdir(parents=True)
    archived.write_bytes(old.read_bytes())
    ((_, path),) = fetch_debs(
        debs,
        (),
        created=RELEASED,
        store=Store(tmp_path / "store"),
        site=site.config.model_copy(update={"snapshot": site.server.url}),
        observer=SilentObserver(),
    )
    assert path.read_bytes() == old.read_bytes()


def test_a_repository_that_is_down_could_not_be_judged(site: Site) -> None:
    site.server.close()
    with pytest.raises(NotJudgedError) as caught:
        site.resolve("unrelated")
    assert caught.value.code == "repository-unreachable"
    assert caught.value.exit_code is ExitCode.NOT_JUDGED


def test_a_base_without_apt(engine: Engine, busybox_image: str) -> None:
    with pytest.raises(LockError) as caught:
        resolve_debs(
            DebRequest(("libgomp1",)),
            busybox_image,
            engine=engine,
            site=SiteConfig(),
            observer=SilentObserver(),
        )
    assert caught.value.code == "base-without-apt"


@dataclass
class Signed:
    """A further repository, signed."""

    key: SigningKey
    repository: OwnRepository
    server: LoopbackServer

    def source(self, key_sha256: str | None = None) -> AptSource:
        return AptSource(uri=self.server.url, suite="stable", key_sha256=key_sha256 or self.key.sha256)


@pytest.fixture
def signed(tmp_path: Path) -> Iterator[Signed]:
    key = SigningKey.make(tmp_path / "gnupg")
    repository = OwnRepository(tmp_path / "signed", key=key)
    repository.add(make_deb(tmp_path / "debs", "extra", "1.0"))
    repository.write()
    with repository.server() as server:
        yield Signed(key, repository, server)


def _resolve_extra(site: Site, source: AptSource, store: Store) -> DebResolution:
    keys = fetch_apt_keys([source], store, observer=SilentObserver())
    return resolve_debs(
        DebRequest(("extra",), keys=keys),
        site.image,
        engine=site.engine,
        site=site.config,
        observer=SilentObserver(),
    )


def test_a_further_repository_is_trusted_by_its_key_alone(site: Site, signed: Signed, tmp_path: Path) -> None:
    found = _resolve_extra(site, signed.source(), Store(tmp_path / "store"))
    assert [deb.name for deb in found.debs] == ["extra"]


def test_another_key_than_the_specs_shows_both_hashes(signed: Signed, tmp_path: Path) -> None:
    with pytest.raises(LockError) as caught:
        fetch_apt_keys([signed.source("0" * 64)], Store(tmp_path / "store"), observer=SilentObserver())
    assert caught.value.code == "apt-key-mismatch"
    assert "0" * 64 in caught.value.detail
    assert signed.key.sha256 in caught.value.detail


def test_lists_signed_by_another_key_are_refused(site: Site, signed: Signed, tmp_path: Path) -> None:
    other = SigningKey.make(tmp_path / "gnupg-other")
    (tmp_path / "signed" / "key.asc").write_bytes(other.public)
    with pytest.raises(LockError) as caught:
        _resolve_extra(site, signed.source(other.sha256), Store(tmp_path / "store"))
    assert caught.value.code == "apt-key-mismatch"
    assert caught.value.exit_code is ExitCode.SPEC_OR_LOCK


def test_a_key_that_is_nowhere(site: Site, tmp_path: Path) -> None:
    source = AptSource(uri=site.server.url, suite="stable", key_sha256="0" * 64)
    with pytest.raises(LockError) as caught:
        fetch_apt_keys(
            [source],
            Store(tmp_path / "store"),
            http=HttpClient(retry=RetryPolicy(attempts=1)),
            observer=SilentObserver(),
        )
    assert caught.value.code == "apt-key-missing"


def test_facts_come_from_the_bases_files(engine: Engine, apt_image: str, busybox_image: str) -> None:
    with image_files(engine, apt_image) as files:
        debian = measure_os(files)
    assert (debian.id, debian.version_id, debian.codename, debian.glibc) == (
        "debian",
        "12",
        "bookworm",
        "2.36",
    )
    with image_files(engine, busybox_image) as files:
        assert measure_os(files).glibc == ""


def test_an_image_base_is_pulled_by_its_platform_and_checked(engine: Engine, tmp_path: Path) -> None:
    spec = ImageBaseSpec(image="nvidia/cuda", tag="13.0.3-base-ubuntu24.04")
    with Registry(tmp_path / "registry") as registry:
        push_nvidia_base(registry, spec.tag, rootfs=busybox_rootfs())
        site = SiteConfig(registries={"docker.io": registry.address})
        with RegistryClient(site.registries) as client:
            base = lock_image_base(spec, "linux/amd64", client=client)
        assert base.index_digest != base.platform_digest
        environment = base.config["config"]["Env"]
        assert any(entry.startswith("NVIDIA_REQUIRE_CUDA=") for entry in environment)
        store, observer = Store(tmp_path / "store"), SilentObserver()
        image = ensure_base(base, "linux/amd64", engine=engine, store=store, site=site, observer=observer)
        try:
            assert image.diff_ids == base.diff_ids
            wrong = base.model_copy(update={"diff_ids": ("sha256:" + "0" * 64,)})
            with pytest.raises(LockError) as caught:
                ensure_base(wrong, "linux/amd64", engine=engine, store=store, site=site, observer=observer)
            assert caught.value.code == "base-content-mismatch"
        finally:
            engine.remove_image(image.id)
