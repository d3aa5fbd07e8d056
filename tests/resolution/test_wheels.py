from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from stackbuild.errors import LockError, NotJudgedError
from stackbuild.findings import Verdict
from stackbuild.resolution.wheels.group import group_of
from stackbuild.site_config import IndexLocation
from tests.resolution.wheel_locking import Shelf, versions
from tests.support.index_server import IndexServer
from tests.support.loopback import Misbehaviour
from tests.support.wheels import sha256_of

CP311 = "cp311-cp311-manylinux_2_28_x86_64"


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_what_is_recorded(shelf: Shelf) -> None:
    app = shelf.wheel("Our_App", "1.0", 'leaf>=2; python_version < "3.12"', 'other; sys_platform == "win32"')
    leaf = shelf.wheel("leaf", "2.1", tag=CP311)
    shelf.wheel("leaf", "3.0", tag="cp312-cp312-manylinux_2_28_x86_64")
    result = shelf.lock("our-app")
    assert [(w.name, w.version, w.index, w.file, w.requires, w.requested) for w in result.wheels] == [
        ("leaf", "2.1", "default", leaf.name, (), False),
        ("our-app", "1.0", "default", app.name, ("leaf",), True),
    ]
    assert [(w.sha256, w.size) for w in result.wheels] == [
        (sha256_of(leaf), leaf.stat().st_size),
        (sha256_of(app), app.stat().st_size),
    ]
    assert result.findings == ()


def test_the_wheel_that_suits_best_is_taken(shelf: Shelf) -> None:
    for tag in (
        "py3-none-any",
        "cp311-cp311-manylinux_2_17_x86_64",
        CP311,
        "cp311-abi3-manylinux_2_28_x86_64",
    ):
        shelf.wheel("leaf", "1.0", tag=tag)
    shelf.wheel("leaf", "1.0", tag="cp311-cp311-manylinux_2_39_x86_64")  # needs a newer glibc
    assert shelf.lock("leaf").wheels[0].file == f"leaf-1.0-{CP311}.whl"


def test_older_torch_channels_tag_their_wheels_linux(shelf: Shelf) -> None:
    shelf.wheel("torch", "2.5.1+cu121", index="pytorch-cu121", tag="cp311-cp311-linux_x86_64")
    result = shelf.lock(frameworks={"torch": {"version": "2.5.1", "variant": "cu121"}})
    assert versions(result.wheels) == {"torch": "2.5.1+cu121"}


def test_torch_and_its_family_come_from_the_channel_and_nothing_else_does(shelf: Shelf) -> None:
    """Transitive packages too: the channel's copy of numpy, though newer, and the default's triton, though newer."""
    shelf.wheel("torch", "2.14.1+cu130", "triton>=3", "numpy", "nvidia-cudnn-cu13", index="pytorch-cu130")
    shelf.wheel("triton", "3.5.0", index="pytorch-cu130")
    shelf.wheel("numpy", "9.0", index="pytorch-cu130")
    shelf.wheel("nvidia-cudnn-cu13", "9.99", index="pytorch-cu130")
    shelf.wheel("torch", "2.14.1")
    shelf.wheel("torch", "2.15.0")
    shelf.wheel("triton", "3.9.0")
    shelf.wheel("numpy", "2.4.0")
    shelf.wheel("nvidia-cudnn-cu13", "9.13.0")
    result = shelf.lock(frameworks={"torch": {"version": "2.14.1", "variant": "cu130"}})
    assert [(w.name, w.version, w.index, w.group) for w in result.wheels] == [
        ("numpy", "2.4.0", "default", "other"),
        ("nvidia-cudnn-cu13", "9.13.0", "default", "cuda"),
        ("torch", "2.14.1+cu130", "pytorch-cu130", "torch"),
        ("triton", "3.5.0", "pytorch-cu130", "torch"),
    ]


def test_index_default_takes_the_default_indexes_build(shelf: Shelf) -> None:
    shelf.wheel("torch", "2.14.1+cu130", index="pytorch-cu130")
    shelf.wheel("torch", "2.14.1")
    wheels = shelf.lock(
        frameworks={"torch": {"version": "2.14.1", "variant": "cu130", "index": "default"}}
    ).wheels
    assert [(w.version, w.index) for w in wheels] == [("2.14.1", "default")]


def test_case_b01_ambient_configuration_does_not_matter(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU release on an index that only the environment names is not taken for a CUDA pre-release."""
    dev = "2.12.0.dev20260530+cu130"
    shelf.wheel("torch", dev, index="pytorch-cu130")
    cpu = tmp_path / "cpu"
    shelf.wheel("torch", "2.12.0+cpu", index="cpu")
    with IndexServer({"cpu": cpu}) as server:
        url = server.url("cpu")
        for name in (
            "PIP_EXTRA_INDEX_URL",
            "PIP_INDEX_URL",
            "UV_INDEX",
            "UV_EXTRA_INDEX_URL",
            "UV_DEFAULT_INDEX",
        ):
            monkeypatch.setenv(name, url)
        monkeypatch.setenv("UV_FIND_LINKS", str(cpu))
        monkeypatch.setenv("PIP_FIND_LINKS", str(cpu))
        monkeypatch.setenv("UV_PRERELEASE", "disallow")
        home = tmp_path / "home"
        (home / ".config" / "uv").mkdir(parents=True)
        (home / ".config" / "pip").mkdir()
        (home / ".config" / "uv" / "uv.toml").write_text(f'extra-index-url = ["{url}"]\n')
        (home / ".config" / "pip" / "pip.conf").write_text(f"[global]\nextra-index-url = {url}\n")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        (tmp_path / "uv.toml").write_text(f'extra-index-url = ["{url}"]\n')
        monkeypatch.chdir(tmp_path)
        result = shelf.lock(frameworks={"torch": {"variant": "cu130"}}, prereleases=["torch"])
        assert [(w.version, w.index) for w in result.wheels] == [(dev, "pytorch-cu130")]
        assert server.requested(".") == []


def test_case_b03_a_root_channel_lists_all_variants_and_the_right_one_is_taken(shelf: Shelf) -> None:
    for label in ("", "+cpu", "+cu126", "+cu130", "+rocm6.4", "+xpu"):
        shelf.wheel("torch", f"2.9.1{label}", index="pytorch-cu126")
    assert versions(shelf.lock(frameworks={"torch": {"version": "2.9.1", "variant": "cu126"}}).wheels) == {
        "torch": "2.9.1+cu126"
    }


def test_case_b05_two_cuda_majors_are_refused(shelf: Shelf) -> None:
    shelf.wheel("torch", "2.9.1+cu130", "nvidia-cublas==13.0.2", "nvidia-cudnn-cu13", index="pytorch-cu130")
    shelf.wheel("nvidia-cublas", "13.0.2")
    shelf.wheel("nvidia-cudnn-cu13", "9.13.0")
    shelf.wheel("nvidia-cublas-cu12", "12.8.4")
    shelf.wheel("nvidia-cudnn-cu12", "9.10.2")
    shelf.wheel("old-lib", "1.0", "nvidia-cudnn-cu12", "nvidia-cublas-cu12")
    torch = {"torch": {"version": "2.9.1", "variant": "cu130"}}
    with pytest.raises(LockError) as caught:
        shelf.lock("old-lib", frameworks=torch)
    assert caught.value.code == "mixed-cuda-majors"
    assert caught.value.detail == (
        "CUDA 12: nvidia-cublas-cu12 12.8.4, nvidia-cudnn-cu12 9.10.2\n"
        "CUDA 13: nvidia-cublas 13.0.2, nvidia-cudnn-cu13 9.13.0, torch 2.9.1+cu130"
    )
    waiver = {"code": "mixed-cuda-majors", "reason": "apart", "owner": "me", "until": "2027-01-01"}
    waived = shelf.lock("old-lib", frameworks=torch, waivers=[waiver]).findings
    assert [(finding.code, finding.verdict, finding.waived) for finding in waived] == [
        ("mixed-cuda-majors", Verdict.WARN, "apart (me, until 2027-01-01)")
    ]
    assert shelf.lock(frameworks=torch).findings == ()


def test_the_specs_own_index_is_bound_to_its_packages(shelf: Shelf) -> None:
    shelf.wheel("ourlib", "1.0", "leaf", index="corp")
    shelf.wheel("leaf", "8.0", index="corp")
    shelf.wheel("ourlib", "99.0")
    shelf.wheel("leaf", "1.0")
    del shelf.indexes["corp"]
    url = f"file://{shelf.root}/corp"
    result = shelf.lock("ourlib", indexes={"corp": {"url": url, "packages": ["OurLib"]}})
    assert [(w.name, w.version, w.index) for w in result.wheels] == [
        ("leaf", "1.0", "default"),
        ("ourlib", "1.0", "corp"),
    ]


def test_overrides_constraints_exclude_and_prereleases(shelf: Shelf) -> None:
    shelf.wheel("app", "1.0", "a==1.0", "b", "c", "d")
    for name in ("a", "b", "d"):
        shelf.wheel(name, "1.0")
        shelf.wheel(name, "2.0")
    shelf.wheel("c", "1.0")
    shelf.wheel("b", "3.0rc1")
    shelf.wheel("d", "3.0rc1")
    result = shelf.lock(
        "app", overrides=["a==2.0"], constraints=["d<3"], exclude=["C"], prereleases=["b", "d"]
    )
    assert versions(result.wheels) == {"a": "2.0", "app": "1.0", "b": "3.0rc1", "d": "2.0"}
    assert next(w for w in result.wheels if w.name == "app").requires == ("a", "b", "d")


def test_the_previous_lock_is_kept_until_something_is_upgraded(shelf: Shelf) -> None:
    for name in ("a", "b"):
        shelf.wheel(name, "1.0")
    first = shelf.lock("a", "b")
    for name in ("a", "b"):
        shelf.wheel(name, "2.0")
        shelf.wheel(name, "1.0", tag=CP311)  # a further, better build of the locked version
    assert shelf.lock("a", "b", previous=first.wheels) == first
    assert versions(shelf.lock("a", "b", previous=first.wheels, upgrade=frozenset({"b"})).wheels) == {
        "a": "1.0",
        "b": "2.0",
    }
    assert versions(shelf.lock("a", "b", previous=first.wheels, upgrade="all").wheels) == {
        "a": "2.0",
        "b": "2.0",
    }


def test_a_wheel_by_url(shelf: Shelf, tmp_path: Path) -> None:
    shelf.wheel("leaf", "1.0")
    shelf.wheel("flash-attn", "9.0")
    wheel = shelf.wheel("flash-attn", "2.8+cu130", "leaf", index="elsewhere")
    url = f"file://{wheel}".replace("+", "%2B")
    result = shelf.lock(packages=[{"url": url, "sha256": sha256_of(wheel)}])
    assert [(w.name, w.version, w.index, w.url, w.requires) for w in result.wheels] == [
        ("flash-attn", "2.8+cu130", "url", url, ("leaf",)),
        ("leaf", "1.0", "default", None, ()),
    ]
    with pytest.raises(LockError) as caught:
        shelf.lock(packages=[{"url": url.replace("elsewhere", "./elsewhere"), "sha256": "0" * 64}])
    assert caught.value.code == "artifact-changed"


def test_extras_reach_their_packages(shelf: Shelf) -> None:
    shelf.wheel("app", "1.0", 'leaf; extra == "more"', "mid[deep]")
    shelf.wheel("mid", "1.0", 'bottom; extra == "deep"')
    shelf.wheel("leaf", "1.0")
    shelf.wheel("bottom", "1.0")
    wheels = {w.name: w for w in shelf.lock("app[more]").wheels}
    assert wheels["app"].requires == ("leaf", "mid")
    assert wheels["mid"].requires == ("bottom",)


def test_onnxruntime_gpu_brings_its_cuda_libraries(shelf: Shelf) -> None:
    shelf.wheel(
        "onnxruntime-gpu",
        "1.31.1",
        'nvidia-cuda-runtime~=13.0; extra == "cuda"',
        'nvidia-cudnn-cu13; extra == "cudnn"',
    )
    shelf.wheel("nvidia-cuda-runtime", "13.0.96")
    shelf.wheel("nvidia-cudnn-cu13", "9.13.0")
    result = shelf.lock(frameworks={"onnxruntime-gpu": {"version": "1.31.1"}})
    assert [(w.name, w.group, w.requested) for w in result.wheels] == [
        ("nvidia-cuda-runtime", "cuda", False),
        ("nvidia-cudnn-cu13", "cuda", False),
        ("onnxruntime-gpu", "framework", True),
    ]


def test_an_unknown_version_names_what_is_near(shelf: Shelf) -> None:
    for version in ("1.0", "1.1", "1.2", "1.4", "2.0", "2.1", "3.0"):
        shelf.wheel("a", version)
    with pytest.raises(LockError) as caught:
        shelf.lock("a==1.3")
    assert (caught.value.code, int(caught.value.exit_code)) == ("wheel-not-found", 3)
    assert caught.value.what == "the index default has no a==1.3"
    assert caught.value.do == "Published near it: 1.0, 1.1, 1.2, 1.4, 2.0, 2.1."


def test_a_version_without_a_wheel_for_this_python(shelf: Shelf) -> None:
    shelf.wheel("a", "1.0", tag="cp312-cp312-manylinux_2_28_x86_64")
    shelf.wheel("a", "0.9", tag=CP311)
    with pytest.raises(LockError) as caught:
        shelf.lock("a==1.0")
    assert caught.value.code == "wheel-not-found"
    assert "no wheel for Python 3.11.2, glibc 2.36, x86_64" in caught.value.what
    assert caught.value.detail == "its wheels for Linux on x86_64 are for cp312"
    assert caught.value.do == "Wheels for it near that version: 0.9."


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        ("cp311-cp311-manylinux_2_39_x86_64", "its wheels for cp311 need manylinux_2_39_x86_64"),
        ("cp311-cp311-manylinux_2_28_aarch64", "it has no wheels for Linux on x86_64"),
        ("cp311-cp311-win_amd64", "it has no wheels for Linux on x86_64"),
    ],
)
def test_why_no_wheel_suits(shelf: Shelf, tag: str, why: str) -> None:
    shelf.wheel("a", "1.0", tag=tag)
    with pytest.raises(LockError) as caught:
        shelf.lock("a<2")
    assert caught.value.detail == why


def test_an_unknown_package(shelf: Shelf) -> None:
    with pytest.raises(LockError, match="the index default has no package nosuch"):
        shelf.lock("nosuch")


def test_a_channel_that_is_not_published_names_those_that_are(shelf: Shelf) -> None:
    """Case B08: never the default index instead."""
    shelf.wheel("torch", "2.13.0")
    shelf.folder("pytorch-cu134")
    with pytest.raises(LockError) as caught:
        shelf.lock(frameworks={"torch": {"version": "2.13.0", "variant": "cu134"}})
    assert (caught.value.code, caught.value.what) == (
        "channel-not-published",
        "PyTorch's channel cu134 has no torch",
    )
    assert "cu126, cu130" in caught.value.do


def test_what_cannot_be_had_together_says_why(shelf: Shelf) -> None:
    shelf.wheel("a", "1.0", "leaf<2")
    shelf.wheel("b", "1.0", "leaf>=2")
    shelf.wheel("leaf", "1.0")
    shelf.wheel("leaf", "2.0")
    with pytest.raises(LockError) as caught:
        shelf.lock("a", "b")
    error = caught.value
    assert error.code == "unsolvable"
    assert "leaf<2" in error.detail
    assert "leaf>=2" in error.detail
    assert "127.0.0.1" not in str(error)
    assert not set("×╰─▶") & set(str(error))


class TestServedIndex:
    """Against a real server, as an index that is not a folder."""

    def served(self, shelf: Shelf, server: IndexServer, index: str, trusted: bool | None = None) -> None:
        shelf.indexes[index] = IndexLocation(url=server.url(index), trusted_hashes=trusted)

    def test_a_trusted_index_is_not_asked_for_files(self, shelf: Shelf) -> None:
        wheel = shelf.wheel("a", "1.0")
        times = {wheel.name: "2026-01-02T03:04:05.000000Z"}
        with IndexServer({"default": shelf.root / "default"}, upload_times=times) as server:
            self.served(shelf, server, "default")
            locked = shelf.lock("a").wheels[0]
            assert (locked.sha256, locked.uploaded) == (sha256_of(wheel), times[wheel.name])
            assert all("Range" in asked.headers for asked in server.requested("/files/.*whl$"))
            assert shelf.store.blob(locked.sha256) is None

    def test_a_channels_wrong_hash_is_noticed_and_the_measured_one_locked(self, shelf: Shelf) -> None:
        wheel = shelf.wheel("torch", "2.13.0+cpu", index="pytorch-cpu")
        right = sha256_of(wheel)
        page = f'<a href="/pytorch-cpu/files/{wheel.name}#sha256={"0" * 64}">{wheel.name}</a>'
        with IndexServer({"pytorch-cpu": shelf.root / "pytorch-cpu"}) as server:
            server.misbehave(
                "/simple/", Misbehaviour(replace=page.encode(), headers={"Content-Type": "text/html"})
            )
            self.served(shelf, server, "pytorch-cpu")
            torch = {"torch": {"version": "2.13.0", "variant": "cpu"}}
            result = shelf.lock(frameworks=torch)
            assert shelf.lock(frameworks=torch, previous=result.wheels) == result
        assert result.wheels[0].sha256 == right
        assert [(f.code, f.measured, f.required) for f in result.findings] == [
            ("index-hash-wrong", right, "0" * 64)
        ]
        assert shelf.store.blob(right)

    def test_a_channel_without_hashes(self, shelf: Shelf) -> None:
        wheel = shelf.wheel("torch", "2.13.0+cpu", index="pytorch-cpu")
        with IndexServer({"pytorch-cpu": shelf.root / "pytorch-cpu"}, hashes=False) as server:
            self.served(shelf, server, "pytorch-cpu")
            torch = {"torch": {"version": "2.13.0", "variant": "cpu"}}
            result = shelf.lock(frameworks=torch)
            assert shelf.lock(frameworks=torch, previous=result.wheels) == result
        assert result.wheels[0].sha256 == sha256_of(wheel)
        assert [f.code for f in result.findings] == ["index-hash-missing"]

    def test_an_index_that_is_down_is_tried_again_and_then_not_judged(self, shelf: Shelf) -> None:
        shelf.wheel("a", "1.0", "leaf")
        shelf.wheel("leaf", "1.0")
        with IndexServer({"default": shelf.root / "default"}) as server:
            self.served(shelf, server, "default")
            server.misbehave("/simple/", Misbehaviour(status=503, times=1))
            assert versions(shelf.lock("a").wheels) == {"a": "1.0", "leaf": "1.0"}
            server.misbehave("/simple/leaf", Misbehaviour(status=503))
            with pytest.raises(NotJudgedError) as caught:  # found out by the resolver alone
                shelf.lock("a")
            assert (caught.value.code, int(caught.value.exit_code)) == ("index-unreachable", 5)
            assert "the index default cannot be reached: 503" in caught.value.what
        with pytest.raises(NotJudgedError) as caught:
            shelf.lock("a")
        assert caught.value.code == "index-unreachable"

    def test_a_locked_wheel_that_changes_on_a_trusted_index_is_refused(self, shelf: Shelf) -> None:
        wheel = shelf.wheel("a", "1.0")
        with IndexServer({"default": shelf.root / "default"}) as server:
            self.served(shelf, server, "default")
            first = shelf.lock("a")
            old = sha256_of(wheel)
            shelf.wheel("a", "1.0", "leaf")
            shelf.wheel("leaf", "1.0")
            with pytest.raises(LockError) as caught:
                shelf.lock("a", previous=first.wheels)
            assert caught.value.code == "artifact-changed"
            assert old in caught.value.detail
            assert sha256_of(wheel) in caught.value.detail
            assert len(shelf.lock("a", previous=first.wheels, upgrade=frozenset({"a"})).wheels) == 2

    def page(self, server: IndexServer, name: str, links: str) -> None:
        body = links.encode()
        server.misbehave(
            f"/simple/{name}/", Misbehaviour(replace=body, headers={"Content-Type": "text/html"})
        )

    def link(self, wheel: Path, attributes: str = "") -> str:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return f'<a href="../../files/{wheel.name}#sha256={digest}" {attributes}>{wheel.name}</a>'

    def test_a_yanked_wheel(self, shelf: Shelf) -> None:
        old, new = shelf.wheel("a", "1.0"), shelf.wheel("a", "1.1")
        with IndexServer({"default": shelf.root / "default"}) as server:
            self.served(shelf, server, "default")
            self.page(server, "a", self.link(old) + self.link(new, 'data-yanked="breaks &amp; burns"'))
            assert versions(shelf.lock("a").wheels) == {"a": "1.0"}
            with pytest.raises(LockError) as caught:
                shelf.lock("a==1.1")
            assert caught.value.code == "wheel-yanked"
            assert caught.value.detail == "reason: breaks & burns"

    def test_a_package_with_sources_only_is_told_where_to_compile_it(self, shelf: Shelf) -> None:
        with IndexServer({"default": shelf.root / "default"}) as server:
            self.served(shelf, server, "default")
            self.page(server, "ops", '<a href="ops-1.0.tar.gz">x</a>')
            with pytest.raises(LockError) as caught:
                shelf.lock("ops", target={"gpus": ["L40S"]})
        assert caught.value.code == "wheel-not-found"
        assert caught.value.detail == "it has only sources; those are not built"
        assert caught.value.do.startswith("No version has a wheel for it. Build its wheel, and write {url: …")
        assert 'TORCH_CUDA_ARCH_LIST="8.9"' in caught.value.do

    def test_older_than_it_would_be_because_only_that_has_a_wheel(self, shelf: Shelf) -> None:
        app, old, mid = shelf.wheel("app", "1.0", "a<3"), shelf.wheel("a", "1.0"), shelf.wheel("a", "1.5")
        sdists = "".join(f'<a href="a-{version}.tar.gz">x</a>' for version in ("1.2", "2.0", "2.5rc1", "3.0"))
        too_new = '<a href="a-2.9.tar.gz" data-requires-python="&gt;=3.12">x</a>'
        with IndexServer({"default": shelf.root / "default"}) as server:
            self.served(shelf, server, "default")
            self.page(server, "app", self.link(app))
            self.page(server, "a", self.link(old) + self.link(mid) + sdists + too_new)
            result = shelf.lock("app")
            assert versions(result.wheels)["a"] == "1.5"
            assert [(f.code, f.subject, f.measured, f.required) for f in result.findings] == [
                ("older-for-a-wheel", "a", "1.5", "2.0")
            ]
            assert shelf.lock("app", constraints=["a<2"]).findings == ()


@pytest.mark.parametrize(
    ("package", "group"),
    [
        ("torch", "torch"),
        ("triton", "torch"),
        ("torchvision", "torch"),
        ("nvidia-cublas-cu12", "cuda"),
        ("nvidia-nccl-cu13", "cuda"),
        ("nvidia-ml-py", "other"),
        ("onnxruntime-gpu", "framework"),
        ("tensorrt-cu13-libs", "framework"),
        ("jaxlib", "framework"),
        ("jaxtyping", "other"),
        ("vllm", "framework"),
        ("numpy", "other"),
    ],
)
def test_groups(package: str, group: str) -> None:
    assert group_of(package, ["vllm"]) == group
