"""Drafting a spec from an image: what a spec can say, and what stays a comment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stackbuild.importing.draft import draft_spec, stack_name
from stackbuild.scan.scan import Scan, scan_of
from stackbuild.spec.load import load_spec
from stackbuild.spec.model import BootstrapBaseSpec, FrameworkSpec, ImageBaseSpec, StackSpec, WheelUrl
from tests.sbom.test_scanned import VENV, dist
from tests.support.layer_tars import Content, image_config, image_files, layer_tar
from tests.support.nvidia_config import nvidia_configuration


def deb(name: str, version: str = "1", depends: str = "") -> str:
    needs = f"Depends: {depends}\n" if depends else ""
    return (
        f"Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n{needs}\n"
    )


UBUNTU: dict[str, Content] = {
    "etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n',
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\n",
    "var/lib/dpkg/status": deb("libc6", "2.39") + deb("perl-base"),
}
CUDA: dict[str, Content] = {
    "var/lib/dpkg/status": deb("libc6", "2.39") + deb("perl-base") + deb("cuda-cudart-13-0")
}
DEBS = {
    "var/lib/dpkg/status": deb("libc6", "2.39-1")
    + deb("perl-base")
    + deb("cuda-cudart-13-0")
    + deb("python3.12", "3.12.3-1", "libpython3.12-stdlib")
    + deb("libpython3.12-stdlib")
    + deb("ffmpeg", "7:6.1", "libav")
    + deb("libav")
    + deb("libx"),
    "var/lib/apt/extended_states": "Package: libx\nArchitecture: amd64\nAuto-Installed: 1\n",
}
WHEEL = {"url": "https://host/w-2-py3-none-any.whl", "archive_info": {"hashes": {"sha256": "a" * 64}}}
APP: dict[str, Content] = {
    VENV: None,
    **dist("torch", "2.14.1+cu130", "Requires-Dist: triton"),
    **dist("torchvision", "0.29.0+cu130"),
    **dist("triton", "3.7.0"),
    **dist("onnxruntime-gpu", "1.31.1"),
    **dist("Top_Level", "1.0"),
    **dist("w", "2"),
    f"{VENV}/w-2.dist-info/direct_url.json": json.dumps(WHEEL),
    **dist("local", "3"),
    f"{VENV}/local-3.dist-info/direct_url.json": json.dumps({"url": "file:///src", "dir_info": {}}),
    **dist("pip", "25"),
    "srv/app/serve.py": "x",
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\napp:x:1001:1002::/srv:/bin/sh\n",
}
RUN = {
    "Entrypoint": ["python", "serve.py"],
    "Cmd": ["--port", "80"],
    "WorkingDir": "/srv/app",
    "ExposedPorts": {"8080/tcp": {}},
    "Volumes": {"/cache": {}},
    "User": "app",
    "Healthcheck": {"Test": ["CMD", "true"], "Interval": 90_000_000_000, "Timeout": 1_500_000_000, "Retries": 3},
    "StopSignal": "SIGINT",
    "Shell": ["/bin/bash", "-c"],
}  # fmt: skip


def drafted(tmp_path: Path, scan: Scan) -> tuple[StackSpec, str]:
    """The draft's text, and the spec that it loads as."""
    text = draft_spec(scan)
    path = tmp_path / "draft.yaml"
    path.write_text(text)
    return load_spec(path).spec, text


def on_cuda(**run_config: Any) -> Scan:
    """An image on a stand-in of an nvidia/cuda base, with that base's real configuration and history."""
    base = nvidia_configuration("13.0.3-base-ubuntu24.04")
    environment = [*base["Env"], "HF_HOME=/cache", *run_config.pop("Env", [])]
    labels = {**base["Labels"], "team": "vision"}
    config = {"Labels": labels, "Cmd": base["Cmd"], **run_config, "Env": environment}
    files = image_files(UBUNTU, CUDA, DEBS, APP, name="registry.example/team/My_Image:1", **config)
    history = [
        {"created_by": "ADD rootfs"},
        {"created_by": "LABEL maintainer=NVIDIA CORPORATION", "empty_layer": True},
        {"created_by": "RUN apt-get install cuda-cudart-13-0=${NV_CUDA_CUDART_VERSION}"},
        {"created_by": "ENV NVIDIA_VISIBLE_DEVICES=all NV_X=1", "empty_layer": True},
        {"created_by": "RUN apt-get install python3.12 ffmpeg"},
        {"created_by": "COPY venv /opt/venv"},
    ]
    files.description.config["history"] = history  # type: ignore[index] # a plain dict in tests
    return scan_of(files)


def test_a_cuda_image_is_drafted_whole(tmp_path: Path) -> None:
    spec, text = drafted(tmp_path, on_cuda(**RUN))
    assert spec.name == "my-image"
    assert spec.base == ImageBaseSpec(image="nvidia/cuda", tag="13.0.3-base-ubuntu24.04")
    assert (spec.python, spec.pip, spec.constraints) == ("3.12", True, ("pip==25",))
    assert spec.frameworks == {
        "torch": FrameworkSpec(version="2.14.1", variant="cu130"),
        "torchvision": FrameworkSpec(version="0.29.0", variant="cu130"),
        "onnxruntime-gpu": FrameworkSpec(version="1.31.1"),
    }
    assert spec.packages == (
        "top-level==1.0",
        WheelUrl(url=WHEEL["url"], sha256="a" * 64),  # type: ignore[arg-type]
        "triton==3.7.0",
    )
    # libav came with ffmpeg, libx is marked as automatic, python3.12 is the spec's python.
    assert spec.apt == ("ffmpeg=7:6.1",)
    image = spec.image
    assert image.env == {"HF_HOME": "/cache"}
    assert (image.entrypoint, image.cmd) == (("python", "serve.py"), ("--port", "80"))
    assert (image.workdir, image.expose, image.volumes) == ("/srv/app", ("8080/tcp",), ("/cache",))
    assert image.labels == {"team": "vision"}
    assert image.user is not None
    assert (image.user.name, image.user.uid, image.user.gid, image.user.home) == ("app", 1001, 1002, "/srv")
    assert image.healthcheck is not None
    assert (image.healthcheck.interval, image.healthcheck.timeout) == ("90s", "1500ms")
    assert image.stop_signal == "SIGINT"
    assert spec.platforms == ("linux/amd64",)
    assert "# * files: /srv/app has 1 file from layers above the base" in text
    assert "# * packages: local==3 was installed from file:///src" in text
    assert "# * image: a shell for instructions in shell form (Shell) cannot be set." in text
    assert "# * apt: upgraded since the base: 1 package (libc6)" in text
    assert "# * target: an image does not say" in text


def test_what_the_base_brings_is_not_repeated(tmp_path: Path) -> None:
    spec, _ = drafted(tmp_path, on_cuda(Entrypoint=["/opt/nvidia/nvidia_entrypoint.sh"]))
    assert spec.image.entrypoint == "keep"
    assert spec.image.cmd is None
    assert not any(name.startswith(("NV", "CUDA", "LD_")) or name == "PATH" for name in spec.image.env)


@pytest.mark.parametrize(
    ("variables", "tag"),
    [
        (["NV_CUDA_LIB_VERSION=1"], "13.0.3-runtime-ubuntu24.04"),
        (["NV_CUDA_LIB_VERSION=1", "NV_CUDA_CUDART_DEV_VERSION=1"], "13.0.3-devel-ubuntu24.04"),
        (["NV_CUDA_LIB_VERSION=1", "NV_CUDNN_VERSION=9.1.0"], "13.0.3-cudnn-runtime-ubuntu24.04"),
        (
            ["CUDA_VERSION=12.1.1", "NV_CUDA_LIB_VERSION=1", "NV_CUDNN_VERSION=8.9.0.1"],
            "12.1.1-cudnn8-runtime-ubuntu24.04",
        ),
    ],
)
def test_the_flavour_of_a_cuda_base_is_in_its_environment(
    tmp_path: Path, variables: list[str], tag: str
) -> None:
    spec, _ = drafted(tmp_path, on_cuda(Env=variables))
    assert isinstance(spec.base, ImageBaseSpec)
    assert spec.base.tag == tag


def test_torch_of_the_default_index_has_its_variant_from_its_own_file(tmp_path: Path) -> None:
    version = "__version__ = '2.11.0'\ncuda: Optional[str] = '12.8'\n"
    files = {VENV: None, **dist("torch", "2.11.0"), f"{VENV}/torch/version.py": version}
    spec, _ = drafted(tmp_path, scan_of(image_files(UBUNTU, files)))
    assert spec.frameworks["torch"] == FrameworkSpec(version="2.11.0", variant="cu128", index="default")


def test_a_base_that_labels_name(tmp_path: Path) -> None:
    labels = {
        "org.opencontainers.image.base.name": "docker.io/library/ubuntu:24.04",
        "org.opencontainers.image.base.digest": "sha256:" + "b" * 64,
    }
    spec, _ = drafted(tmp_path, scan_of(image_files(UBUNTU, Labels=labels)))
    assert spec.base == ImageBaseSpec(image="ubuntu", tag="24.04", digest="sha256:" + "b" * 64)
    assert spec.python == "none"
    assert spec.image.labels == {}


def test_an_unnamed_base_is_the_distribution_and_to_be_checked(tmp_path: Path) -> None:
    debian = "ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm\n"
    spec, text = drafted(tmp_path, scan_of(image_files({**UBUNTU, "etc/os-release": debian})))
    assert spec.base == ImageBaseSpec(image="debian", tag="bookworm")
    assert "# * base: nothing names it" in text


def test_a_distribution_that_no_stack_is_built_on_becomes_an_external_stack(tmp_path: Path) -> None:
    alpine = {"etc/os-release": "ID=alpine\nVERSION_ID=3.20\n", "lib/apk/db/installed": "P:musl\nV:1\n"}
    spec, text = drafted(tmp_path, scan_of(image_files(alpine, name="team/alpine-app:2")))
    assert (spec.external, spec.name) == ("team/alpine-app:2", "alpine-app")
    assert "packages: apk" in text


def test_values_that_no_spec_may_have_become_comments(tmp_path: Path) -> None:
    config = {
        "Env": ["BAD-NAME=1", "GOOD=2"],
        "StopSignal": "nonsense",
        "WorkingDir": "relative",
        "User": "77",
    }
    spec, text = drafted(tmp_path, scan_of(image_files(UBUNTU, **config)))
    assert spec.image.env == {"GOOD": "2"}
    assert (spec.image.stop_signal, spec.image.workdir, spec.image.user) == (None, None, None)
    assert "left out image.env.BAD-NAME" in text
    assert "the user is 77, of whom /etc/passwd says nothing" in text


def test_nothing_in_an_image_can_leave_its_comment(tmp_path: Path) -> None:
    files = {VENV: None, **dist("a", "1"), f"{VENV}/a-1.dist-info/direct_url.json": '{"url": "x\\nname: b"}'}
    spec, text = drafted(tmp_path, scan_of(image_files(UBUNTU, files, name="i\nname: c")))
    assert "\nname: b" not in text
    assert spec.name == "i-name"


def test_a_stack_of_ours_is_recognised_by_its_pin_list(tmp_path: Path) -> None:
    layers = (UBUNTU, {VENV: None, **dist("leaf", "1")})
    diff_ids = image_config([layer_tar(layer) for layer in layers])["rootfs"]["diff_ids"]
    pins = {
        "stack": "ours", "os": "debian 12", "glibc": "2.36", "lock-sha256": "c" * 64,
        "base": {"name": "bootstrap debian bookworm", "digest": diff_ids[0]},
    }  # fmt: skip
    label = json.dumps({"schema": 1, "pins": pins, "diff-ids": diff_ids})
    scan = scan_of(image_files(*layers, Labels={"io.stackbuild.pins": label}))
    spec, text = drafted(tmp_path, scan)
    assert (spec.name, spec.base) == ("ours", BootstrapBaseSpec(bootstrap="debian", suite="bookworm"))
    assert (spec.python, spec.packages, spec.image.labels) == ("3.12", ("leaf==1",), {})
    assert "no deb python3.12" in text


def _on_ours(name: str, *, on_top: bool) -> Scan:
    """An image with the labels of the stack ``ours``: that image itself, or one built on it."""
    layers = [UBUNTU, {VENV: None, **dist("leaf", "1")}]
    diff_ids = image_config([layer_tar(layer) for layer in layers])["rootfs"]["diff_ids"]
    pins = {
        "stack": "ours", "os": "debian 12", "glibc": "2.36", "lock-sha256": "c" * 64,
        "base": {"name": "bootstrap debian bookworm", "digest": diff_ids[0]},
    }  # fmt: skip
    labels = {
        "io.stackbuild.pins": json.dumps({"schema": 1, "pins": pins, "diff-ids": diff_ids}),
        "org.opencontainers.image.title": "ours",
        "org.opencontainers.image.description": "What ours is for.",
    }
    if on_top:
        layers.append({"srv/app.py": "print()"})
    return scan_of(image_files(*layers, name=name, Labels=labels))


def test_an_image_on_a_stack_is_not_the_stack(tmp_path: Path) -> None:
    spec, _ = drafted(tmp_path, _on_ours("team/theirs:1", on_top=True))
    assert (spec.name, spec.summary) == ("theirs", "")
    assert stack_name(_on_ours("sha256:" + "a1" * 32, on_top=True)) == "imported"
    spec, _ = drafted(tmp_path, _on_ours("team/theirs:1", on_top=False))
    assert (spec.name, spec.summary) == ("ours", "What ours is for.")


def test_a_title_names_what_has_no_name(tmp_path: Path) -> None:
    labels = {"org.opencontainers.image.title": "Team Title"}
    assert stack_name(scan_of(image_files(UBUNTU, name="0123456789ab", Labels=labels))) == "team-title"
    assert stack_name(scan_of(image_files(UBUNTU, name="app:1", Labels=labels))) == "app"
