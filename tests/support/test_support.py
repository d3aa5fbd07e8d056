"""The stands themselves: what other tests take for granted."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.base_image import busybox_rootfs, docker_archive, push_nvidia_base
from tests.support.debs import AptRepository, SigningKey, make_deb
from tests.support.index_server import IndexServer
from tests.support.loopback import Misbehaviour
from tests.support.registry import OCI_INDEX, Registry, RegistryFront
from tests.support.wheels import HOSTILE_KINDS, make_hostile_wheel, make_wheel


def _get(url: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_pip_installs_from_the_index_server(
    index_server: IndexServer, wheel_folder: Path, tmp_path: Path
) -> None:
    make_wheel(wheel_folder, "leaf", "1.0")
    make_wheel(wheel_folder, "root-dist", "2.0", requires=["leaf>=1"])
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--isolated", "install", "-q", "--no-cache-dir"),
            *("--index-url", index_server.url("default"), "--target", str(tmp_path / "site"), "root-dist"),
        ],
        check=True,
        env={"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null"},
    )
    assert (tmp_path / "site" / "leaf" / "__init__.py").read_text() == '__version__ = "1.0"\n'


def test_index_server_serves_ranges_and_misbehaves_as_often_as_told(
    index_server: IndexServer, wheel_folder: Path
) -> None:
    wheel = make_wheel(wheel_folder, "leaf", "1.0")
    url = index_server.file_url("default", wheel.name)
    assert _get(url, Range="bytes=2-5") == (206, wheel.read_bytes()[2:6])
    index_server.misbehave("/files/", Misbehaviour(status=429, headers={"Retry-After": "1"}, times=1))
    assert [_get(url)[0], _get(url)[0]] == [429, 200]
    assert len(index_server.requested("/files/leaf")) == 3


@pytest.mark.parametrize("kind", HOSTILE_KINDS)
def test_hostile_wheels_are_readable_zips(tmp_path: Path, kind: str) -> None:
    with zipfile.ZipFile(make_hostile_wheel(tmp_path, "evil", "1.0", kind)) as archive:  # type: ignore[arg-type]
        assert archive.testzip() is None


def test_equal_arguments_give_equal_wheels_and_debs(tmp_path: Path) -> None:
    assert (
        make_wheel(tmp_path / "a", "leaf", "1.0").read_bytes()
        == make_wheel(tmp_path / "b", "leaf", "1.0").read_bytes()
    )
    assert (
        make_deb(tmp_path / "a", "leaf", "1:1.0").read_bytes()
        == make_deb(tmp_path / "b", "leaf", "1:1.0").read_bytes()
    )


def test_apt_takes_the_signed_repository(tmp_path: Path) -> None:
    key = SigningKey.make(tmp_path / "gnupg")
    repository = AptRepository(tmp_path / "repo", key=key)
    repository.add(make_deb(tmp_path / "debs", "leaf", "1.0", control=["Depends: libc6"]))
    repository.write()
    (tmp_path / "state/lists/partial").mkdir(parents=True)
    (tmp_path / "cache/archives/partial").mkdir(parents=True)
    (tmp_path / "parts").mkdir()
    (tmp_path / "key.asc").write_bytes(key.public)
    with repository.server() as server:
        (tmp_path / "sources.list").write_text(
            f"deb [signed-by={tmp_path}/key.asc] {server.url} stable main\n"
        )
        options = [
            f"-oDir::Etc::SourceList={tmp_path}/sources.list",
            f"-oDir::Etc::SourceParts={tmp_path}/parts",
            f"-oDir::State={tmp_path}/state",
            f"-oDir::Cache={tmp_path}/cache",
            "-oAPT::Sandbox::User=root",
            "-oDir::State::status=/dev/null",
        ]
        subprocess.run(["apt-get", *options, "-qq", "update"], check=True)
        shown = subprocess.run(
            ["apt-cache", *options, "show", "leaf"], check=True, capture_output=True, text=True
        )
    assert "Version: 1.0" in shown.stdout


def test_the_nvidia_stand_in_is_an_index_with_the_real_configuration(registry: Registry) -> None:
    digest = push_nvidia_base(registry, repository="stands/cuda", rootfs=busybox_rootfs())
    status, headers, body = registry.request(
        "GET", f"/v2/stands/cuda/manifests/{digest}", headers={"Accept": OCI_INDEX}
    )
    assert (status, headers["content-type"]) == (200, OCI_INDEX)
    child = json.loads(body)["manifests"][0]
    assert child["platform"] == {"os": "linux", "architecture": "amd64"}
    manifest = json.loads(
        registry.request(
            "GET", f"/v2/stands/cuda/manifests/{child['digest']}", headers={"Accept": child["mediaType"]}
        )[2]
    )
    config = json.loads(registry.request("GET", f"/v2/stands/cuda/blobs/{manifest['config']['digest']}")[2])
    assert "CUDA_VERSION=13.0.3" in config["config"]["Env"]


def test_the_front_passes_on_and_misbehaves(registry: Registry) -> None:
    push_nvidia_base(registry, repository="stands/front", rootfs=busybox_rootfs())
    with RegistryFront(registry) as front:
        url = f"http://{front.address}/v2/stands/front/manifests/13.0.3-base-ubuntu24.04"
        assert _get(url, Accept=OCI_INDEX)[0] == 200
        front.misbehave("/manifests/", Misbehaviour(status=429, headers={"Retry-After": "7"}))
        assert _get(url)[0] == 429


def test_the_archive_names_the_image_id_it_will_have() -> None:
    archive, image_id = docker_archive([busybox_rootfs()], ref="a/b:c")
    with tarfile.open(fileobj=BytesIO(archive)) as opened:
        manifest = json.load(opened.extractfile("manifest.json"))  # type: ignore[arg-type]
    assert manifest[0]["Config"] == image_id.split(":")[1] + ".json"
