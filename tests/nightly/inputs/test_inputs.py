"""Each change of an input is named for what it is, and nothing else is said of it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stackbuild.nightly.hindrance import hindrance
from stackbuild.nightly.inputs_base import external_digest
from stackbuild.nightly.outcome import outcome_of_inputs
from stackbuild.resolution.wheels.index_sources import PageCache
from stackbuild.resolution.wheels.locking import WheelsResult
from stackbuild.spec.model import StackSpec
from tests.nightly.inputs.scene import IMAGE, TAG, Scene, one, passed, scene, told
from tests.support.debs import AptRepository
from tests.support.loopback import Misbehaviour

BASE = f"{IMAGE}:{TAG}"


@pytest.fixture
def night(tmp_path: Path, resolved: dict[str, WheelsResult]) -> Iterator[Scene]:
    with scene(tmp_path, resolved, indexes=("pytorch-cu121", "corp")) as made:
        made.wheel("leaf", "1.0")
        made.wheel("app", "2.0", "leaf==1.0")
        made.wheel("ours", "3.0", index="corp")
        made.deb("tool", "1.0-1")
        made.lock_now(
            "app",
            "ours",
            indexes={"corp": {"url": "https://corp.invalid/simple", "packages": ["ours"]}},
        )
        yield made


def test_an_unchanged_night_says_so(night: Scene) -> None:
    before = len(
        night.indexes.requested("/simple/")
    )  # locking asks, too, where no test before had the same wheels
    findings = night.check()
    assert told(findings) == []
    said = passed(findings)
    assert said[BASE].startswith(f"{BASE} is still sha256:")
    assert said["wheels"] == "All 3 wheels are served as they were locked (1 of corp, 2 of default)."
    assert said["debs"].startswith("The one deb is served")
    assert {finding.details["platform"] for finding in findings} == {"linux/amd64"}
    assert outcome_of_inputs(findings) == "unchanged"
    # One request for each project's page, one list for the suite.
    assert len(night.indexes.requested("/simple/")) - before == 3
    assert len(night.repository.requested("Packages")) == 1


def test_the_stacks_of_a_night_ask_for_each_page_once(night: Scene) -> None:
    pages = PageCache()
    night.indexes.misbehave("/corp/", Misbehaviour(status=500))
    assert [row[1] for row in told(night.check(pages=pages))] == ["index-unreachable"]
    night.indexes.server.behave()
    before = len(night.indexes.requested("/simple/"))
    assert told(night.check(pages=pages)) == []
    assert told(night.newer(pages=pages).findings) == []
    # Trouble is not kept, so that the page that failed is asked for again.
    assert [request.path for request in night.indexes.requested("/simple/")[before:]] == [
        "/corp/simple/ours/"
    ]


class TestBase:
    def test_a_deleted_tag_whose_digest_is_still_served(self, night: Scene) -> None:
        del night.registry.tags[TAG]
        night.image(tag="12.6.4-base-ubuntu24.04")
        finding = one(night.check(), "tag-removed")
        assert (finding.verdict, finding.subject) == ("FAIL", BASE)
        assert "its locked digest can still be fetched" in finding.summary
        assert "12.6.4-base-ubuntu24.04" in finding.next_step
        assert finding.details["locked-digest-served"] is True
        assert outcome_of_inputs([finding]) == "spec-or-lock"

    def test_a_deleted_tag_whose_digest_is_gone_too(self, night: Scene) -> None:
        del night.registry.tags[TAG]
        night.registry.documents.clear()
        finding = one(night.check(), "tag-removed")
        assert "and so has its locked digest" in finding.summary
        assert finding.details["locked-digest-served"] is False

    def test_a_deleted_tag_whose_platform_alone_is_served_can_still_be_had(self, night: Scene) -> None:
        index = night.registry.tags.pop(TAG)
        del night.registry.documents[index]
        finding = one(night.check(), "tag-removed")
        assert "its locked digest can still be fetched" in finding.summary, "it is pulled by its platform's"
        assert finding.details["locked-digest-served"] is True
        assert hindrance([finding], "linux/amd64") == ""

    def test_a_moved_tag_is_drift_and_says_what_moved(self, night: Scene) -> None:
        new = night.image(
            created="2026-11-29T00:00:00Z", CUDA_VERSION="12.6.4", NVIDIA_REQUIRE_CUDA="cuda>=12.6"
        )
        findings = night.check()
        assert told(findings) == [("WARN", "base-tag-moved", BASE)]
        finding = one(findings, "base-tag-moved")
        assert finding.measured == new
        assert finding.details["changes"] == {
            "created": ["2026-01-02T03:04:05Z", "2026-11-29T00:00:00Z"],
            "CUDA_VERSION": ["12.6.3", "12.6.4"],
            "NVIDIA_REQUIRE_CUDA": ["", "cuda>=12.6"],
        }
        assert "CUDA_VERSION 12.6.3 → 12.6.4, NVIDIA_REQUIRE_CUDA none → cuda>=12.6" in finding.summary
        assert outcome_of_inputs(findings) == "drift"

    def test_a_moved_tag_of_a_base_that_the_spec_pins(self, night: Scene) -> None:
        digest = night.registry.tags[TAG]
        night.lock_now("app", base={"image": IMAGE, "tag": TAG, "digest": digest})
        night.image(created="2026-11-29T00:00:00Z")
        assert "change 'base.digest' in the spec" in one(night.check(), "base-tag-moved").next_step

    def test_a_moved_tag_with_new_layers_says_how_many_stayed(self, night: Scene) -> None:
        night.image(layers=("sha256:" + "1" * 64, "sha256:" + "2" * 64))
        finding = one(night.check(), "base-tag-moved")
        assert finding.details["changes"] == {"layers": ["1", "2 of which 1 are as locked"]}
        assert finding.summary.endswith("is locked: layers 1 → 2 of which 1 are as locked.")

    def test_a_moved_tag_whose_locked_digest_is_gone(self, night: Scene) -> None:
        night.registry.documents.clear()
        night.image(created="2026-11-29T00:00:00Z")
        findings = night.check()
        assert told(findings)[0] == ("FAIL", "digest-gone", BASE)
        assert outcome_of_inputs(findings) == "spec-or-lock"

    def test_a_moved_tag_without_the_platform(self, night: Scene) -> None:
        night.image("arm64", created="2026-11-29T00:00:00Z")
        assert told(night.check()) == [("WARN", "no-such-platform", BASE), ("WARN", "base-tag-moved", BASE)]

    def test_a_new_index_of_the_same_image_is_no_drift(self, night: Scene) -> None:
        night.image("amd64")
        findings = night.check()
        assert told(findings) == []
        assert "its linux/amd64 image is the locked one" in passed(findings)[BASE]

    def test_a_limit_is_waited_out(self, night: Scene) -> None:
        limit = Misbehaviour(status=429, headers={"Retry-After": "7"}, times=2)
        night.registry.server.misbehave("/manifests/", limit)
        findings = night.check()
        assert told(findings) == []
        assert night.waits == [7.0, 7.0]

    def test_a_limit_that_stays_is_an_error_and_hides_nothing(self, night: Scene) -> None:
        night.registry.server.misbehave("/manifests/", Misbehaviour(status=429))
        findings = night.check()
        assert told(findings) == [("ERROR", "registry-rate-limited", BASE)]
        assert sorted(passed(findings)) == ["debs", "wheels"]
        assert outcome_of_inputs(findings) == "not-judged"

    def test_a_registry_that_is_down(self, night: Scene) -> None:
        night.registry.server.misbehave("/", Misbehaviour(status=503))
        assert told(night.check()) == [("ERROR", "registry-unreachable", BASE)]


class TestWheels:
    def test_replaced_under_the_same_name(self, night: Scene) -> None:
        assert night.lock is not None
        locked = next(w for w in night.lock.platforms["linux/amd64"].wheels if w.name == "leaf")
        night.wheel("leaf", "1.0", files={"leaf/__init__.py": "evil = True\n"})
        findings = night.check()
        assert told(findings) == [("FAIL", "artifact-changed", "leaf 1.0")]
        finding = one(findings, "artifact-changed")
        assert locked.sha256 in finding.summary
        assert locked.sha256 not in finding.measured
        assert len(finding.measured.removeprefix("sha256 ")) == 64
        assert passed(findings)["wheels"].startswith("2 of 3 wheels are ")
        assert outcome_of_inputs(findings) == "spec-or-lock"

    @pytest.mark.parametrize("reason", ["corrupts data", ""])
    def test_yanked(self, night: Scene, reason: str) -> None:
        night.indexes.yank("leaf-1.0-py3-none-any.whl", reason)
        findings = night.check()
        assert told(findings) == [("FAIL", "wheel-yanked", "leaf 1.0")]
        assert (reason or "no reason is given") in one(findings, "wheel-yanked").summary
        assert outcome_of_inputs(findings) == "spec-or-lock"

    def test_gone_names_the_index_what_there_is_and_who_pins_it(self, night: Scene) -> None:
        (night.root / "default" / "leaf-1.0-py3-none-any.whl").unlink()
        night.wheel("leaf", "1.1")
        findings = night.check()
        assert told(findings) == [("FAIL", "broken-upstream", "leaf 1.0")]
        finding = one(findings, "broken-upstream")
        assert finding.summary == (
            "leaf==1.0 is gone from the index default: it has 1.1. "
            "app 2.0 (from the index default) pins leaf==1.0."
        )
        assert "wheelhouse or mirror" in finding.next_step
        assert finding.details["pinned-by"] == ["app 2.0"]
        assert outcome_of_inputs(findings) == "spec-or-lock"

    def test_gone_with_its_project(self, night: Scene) -> None:
        (night.root / "default" / "app-2.0-py3-none-any.whl").unlink()
        finding = one(night.check(), "broken-upstream")
        assert finding.summary == (
            "app==2.0 is gone from the index default: it has no app at all. The spec names it."
        )

    def test_an_index_that_is_down_hides_no_other(self, night: Scene) -> None:
        night.indexes.misbehave("/corp/", Misbehaviour(status=502))
        night.indexes.yank("leaf-1.0-py3-none-any.whl")
        findings = night.check()
        assert told(findings) == [
            ("FAIL", "wheel-yanked", "leaf 1.0"),
            ("ERROR", "index-unreachable", "index corp"),
        ]
        assert "1 wheel of it could not be checked" in one(findings, "index-unreachable").summary
        assert one(findings, "index-unreachable").details["wheels"] == ["ours 3.0"]

    def test_a_limit_is_waited_out_as_long_as_the_index_asks(self, night: Scene) -> None:
        limit = Misbehaviour(status=429, headers={"Retry-After": "0"}, times=2)
        night.indexes.misbehave("/corp/", limit)
        assert told(night.check()) == []

    def test_a_limit_that_stays_is_neither_drift_nor_gone(self, night: Scene) -> None:
        night.indexes.misbehave("/default/", Misbehaviour(status=429, headers={"Retry-After": "0"}))
        findings = night.check()
        assert told(findings) == [("ERROR", "index-rate-limited", "index default")]
        assert outcome_of_inputs(findings) == "not-judged"

    def test_an_index_that_forbids_everything_has_not_lost_it_all(self, night: Scene) -> None:
        # A proxy in between answers so; so does the object store under torch's channels for one page.
        night.indexes.misbehave("/default/", Misbehaviour(status=403))
        findings = night.check()
        assert told(findings) == [("ERROR", "index-denied", "index default")]
        assert outcome_of_inputs(findings) == "not-judged"

    def test_an_index_that_forbids_one_page_and_gives_others_has_lost_it(self, night: Scene) -> None:
        night.indexes.misbehave("/default/simple/leaf", Misbehaviour(status=403))
        assert told(night.check()) == [("FAIL", "broken-upstream", "leaf 1.0")]

    def test_a_page_that_is_no_page(self, night: Scene) -> None:
        night.indexes.misbehave(
            "/corp/", Misbehaviour(replace=b"[]", headers={"Content-Type": "application/json"})
        )
        findings = night.check()
        assert told(findings) == [("ERROR", "index-invalid", "index corp")]
        assert outcome_of_inputs(findings) == "not-judged"

    def test_a_page_to_log_in_is_no_index_that_has_lost_its_wheels(self, night: Scene) -> None:
        night.indexes.misbehave(
            "/default/",
            Misbehaviour(replace=b"<html><form></form></html>", headers={"Content-Type": "text/html"}),
        )
        assert told(night.check()) == [("ERROR", "index-invalid", "index default")]

    def test_of_many_files_some_are_named(self, night: Scene) -> None:
        (night.root / "default" / "app-2.0-py3-none-any.whl").unlink()
        for number in range(12):
            (night.root / f"default/app-2.0-{number}-py3-none-any.whl").write_bytes(b"")
        measured = one(night.check(), "broken-upstream").measured
        assert measured.count(".whl") == 10
        assert measured.endswith(" and 2 more")

    def test_an_index_that_is_down_is_not_asked_for_each_of_a_hundred_wheels(self, night: Scene) -> None:
        names = [f"p{number}" for number in range(40)]
        for name in names:
            night.wheel(name, "1.0")
        night.lock_now(*names)
        night.indexes.misbehave("/default/", Misbehaviour(status=500))
        before = len(night.indexes.requested("/default/"))
        assert told(night.check()) == [("ERROR", "index-unreachable", "index default")]
        # Eight at a time, three tries each; once three have failed, no further one is begun.
        assert len(night.indexes.requested("/default/")) - before <= (8 + 3) * 3


class TestWheelsWithoutTrustedHashes:
    @pytest.fixture
    def channel(self, tmp_path: Path, resolved: dict[str, WheelsResult]) -> Iterator[Scene]:
        with scene(tmp_path, resolved, indexes=("pytorch-cu126",), hashes=False) as made:
            made.wheel("torch", "2.13.0+cu126", index="pytorch-cu126")
            made.lock_now(frameworks={"torch": {"version": "2.13.0", "variant": "cu126"}})
            yield made

    def test_the_size_is_compared(self, channel: Scene) -> None:
        findings = channel.check()
        assert told(findings) == []
        assert "1 could be compared by size alone" in passed(findings)["wheels"]

    def test_another_size_is_a_changed_file(self, channel: Scene) -> None:
        channel.wheel(
            "torch", "2.13.0+cu126", index="pytorch-cu126", files={"torch/__init__.py": "# more\n" * 99}
        )
        assert told(channel.check()) == [("FAIL", "artifact-changed", "torch 2.13.0+cu126")]

    def test_html_without_sizes_asks_the_file(self, channel: Scene) -> None:
        name = "torch-2.13.0+cu126-py3-none-any.whl"
        page = f'<a href="/pytorch-cu126/files/{name}">{name}</a>'.encode()
        channel.indexes.misbehave(
            "/pytorch-cu126/simple/", Misbehaviour(replace=page, headers={"Content-Type": "text/html"})
        )
        before = len(channel.indexes.requested("/files/"))
        assert told(channel.check()) == []
        (asked,) = channel.indexes.requested("/files/")[before:]
        assert asked.headers["Range"] == "bytes=0-0"
        (channel.root / "pytorch-cu126" / name).unlink()
        assert told(channel.check()) == [("FAIL", "broken-upstream", "torch 2.13.0+cu126")]


def test_an_untrusted_index_that_now_states_another_hash(
    tmp_path: Path, resolved: dict[str, WheelsResult]
) -> None:
    with scene(tmp_path, resolved, indexes=("pytorch-cu126",)) as night:
        wheel = night.wheel("torch", "2.13.0+cu126", index="pytorch-cu126")
        night.lock_now(frameworks={"torch": {"version": "2.13.0", "variant": "cu126"}})
        night.indexes.stated[wheel.name] = "a" * 64
        assert told(night.check()) == [("WARN", "index-hash-wrong", "torch 2.13.0+cu126")]
        # What locking had noticed already is not told every night.
        night.lock_now(frameworks={"torch": {"version": "2.13.0", "variant": "cu126"}})
        assert night.lock is not None
        assert [f.code for f in night.lock.platforms["linux/amd64"].findings] == ["index-hash-wrong"]
        assert told(night.check()) == []


def test_a_wheel_by_url(tmp_path: Path, resolved: dict[str, WheelsResult]) -> None:
    with scene(tmp_path, resolved) as night:
        wheel = night.wheel("extra", "1.0")
        sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
        night.lock_now(packages=[{"url": night.indexes.file_url("default", wheel.name), "sha256": sha256}])
        assert told(night.check()) == []
        night.wheel("extra", "1.0", files={"extra/__init__.py": "# other\n" * 50})
        assert told(night.check()) == [("FAIL", "artifact-changed", "extra 1.0")]
        wheel.unlink()
        finding = one(night.check(), "broken-upstream")
        assert "gone from its URL http://127.0.0.1" in finding.summary


class TestDebs:
    def test_gone_everywhere(self, night: Scene) -> None:
        night.apt.forget("tool_1.0-1_amd64.deb")
        night.deb("tool", "1.0-2")
        findings = night.check()
        assert told(findings) == [("FAIL", "deb-superseded", "tool 1.0-1")]
        finding = one(findings, "deb-superseded")
        assert "can be had nowhere any more, superseded by 1.0-2" in finding.summary
        assert "snapshot archive" in finding.next_step
        assert outcome_of_inputs(findings) == "spec-or-lock"

    def test_gone_from_the_mirror_and_on_the_snapshot(self, night: Scene) -> None:
        shutil.copytree(night.root / "apt", night.root / "archive")
        with AptRepository(night.root / "archive").server() as archive:
            night.apt.forget("tool_1.0-1_amd64.deb")
            night.deb("tool", "1.0-2")
            findings = night.check(snapshot=f"{archive.url}/{{path}}")
        assert told(findings) == [("WARN", "deb-superseded", "tool 1.0-1")]
        assert "the snapshot archive has it" in one(findings, "deb-superseded").summary
        assert outcome_of_inputs(findings) == "unchanged"

    def test_superseded_and_still_in_the_pool(self, night: Scene) -> None:
        pool = night.root / "apt/pool/main/tool_1.0-1_amd64.deb"
        content = pool.read_bytes()
        night.apt.forget(pool.name)
        night.deb("tool", "1.0-2")
        pool.write_bytes(content)
        finding = one(night.check(), "deb-superseded")
        assert finding.verdict == "WARN"
        assert "superseded by 1.0-2; its file is still in the mirror's pool" in finding.summary

    def test_replaced_under_the_same_version(self, night: Scene) -> None:
        night.apt.forget("tool_1.0-1_amd64.deb")
        night.deb("tool", "1.0-1", text="other")
        findings = night.check()
        assert told(findings) == [("FAIL", "artifact-changed", "tool 1.0-1")]
        assert outcome_of_inputs(findings) == "spec-or-lock"

    def test_replaced_and_the_snapshot_has_the_locked_file(self, night: Scene) -> None:
        shutil.copytree(night.root / "apt", night.root / "archive")
        with AptRepository(night.root / "archive").server() as archive:
            night.apt.forget("tool_1.0-1_amd64.deb")
            night.deb("tool", "1.0-1", text="other")
            findings = night.check(snapshot=f"{archive.url}/{{path}}")
        assert told(findings) == [("FAIL", "artifact-changed", "tool 1.0-1")]
        assert "The snapshot archive has the locked file." in one(findings, "artifact-changed").summary
        assert hindrance(findings, "linux/amd64") == ""
        assert hindrance(night.check(), "linux/amd64") == "tool 1.0-1 cannot be had as locked"

    def test_a_repository_that_is_down_says_nothing_of_its_debs(self, night: Scene) -> None:
        night.repository.close()
        findings = night.check()
        assert [row[:2] for row in told(findings)] == [("ERROR", "repository-unreachable")]
        assert outcome_of_inputs(findings) == "not-judged"

    def test_unread_lists_leave_a_missing_deb_unjudged(self, night: Scene) -> None:
        night.apt.forget("tool_1.0-1_amd64.deb")
        night.repository.misbehave("/dists/", Misbehaviour(status=500))
        assert [row[:2] for row in told(night.check())] == [("ERROR", "repository-unreachable")]

    def test_a_pool_that_forbids_is_not_empty(self, night: Scene) -> None:
        night.deb("other", "1.0")
        night.apt.forget("tool_1.0-1_amd64.deb")
        night.apt.write()
        night.repository.misbehave("/pool/", Misbehaviour(status=403))
        assert [row[:2] for row in told(night.check())] == [("ERROR", "repository-unreachable")]

    def test_a_repository_that_limits(self, night: Scene) -> None:
        night.repository.misbehave("/", Misbehaviour(status=429, headers={"Retry-After": "0"}))
        assert [row[:2] for row in told(night.check())] == [("ERROR", "index-rate-limited")]

    def test_a_suite_that_moved_to_an_archive(self, night: Scene) -> None:
        shutil.rmtree(night.root / "apt/dists")
        findings = night.check()
        assert [row[:2] for row in told(findings)] == [("WARN", "no-such-apt-suite")]
        assert passed(findings)["debs"].startswith("The one deb is ")

    def test_a_repository_that_nobody_places(self, night: Scene) -> None:
        assert night.stack is not None
        spec = night.stack.spec.model_copy(update={"apt_sources": ()})
        night.stack = replace(night.stack, spec=spec)
        findings = night.check()
        assert [row[:2] for row in told(findings)] == [("SKIP", "inputs-unplaced")]


class TestExternal:
    """An image that others built: ``known`` is what its tag named the last night."""

    @pytest.fixture
    def known(self, night: Scene) -> str:
        assert night.stack is not None
        spec = {"schema": 1, "name": "e", "external": BASE}
        night.stack = replace(night.stack, spec=StackSpec.model_validate(spec))
        night.lock = None
        first = night.check()
        assert told(first) == []
        return external_digest(first)

    def test_unchanged(self, night: Scene, known: str) -> None:
        findings = night.check_external(known)
        assert told(findings) == []
        assert passed(findings)[BASE] == f"{BASE} is {known[:19]}…."
        assert outcome_of_inputs(findings) == "unchanged"

    def test_moved_is_drift(self, night: Scene, known: str) -> None:
        new = night.image(created="2026-11-29T00:00:00Z")
        findings = night.check_external(known)
        assert told(findings) == [("WARN", "external-moved", BASE)]
        assert external_digest(findings) == new
        assert outcome_of_inputs(findings) == "drift"

    def test_removed(self, night: Scene, known: str) -> None:
        del night.registry.tags[TAG]
        finding = one(night.check_external(known), "tag-removed")
        assert (finding.verdict, finding.details["previous-digest-served"]) == ("FAIL", True)
        assert "; the digest that it had the last time can still be fetched" in finding.summary
        night.registry.documents.clear()
        finding = one(night.check_external(known), "tag-removed")
        assert finding.details["previous-digest-served"] is False
        assert f"and so has the digest that it had the last time {known}" in finding.summary
        assert "lock" not in f"{finding.summary} {finding.next_step}", "nothing of it is locked"

    def test_never_there(self, night: Scene, known: str) -> None:
        del night.registry.tags[TAG]
        assert known
        assert told(night.check_external("")) == [("FAIL", "no-such-tag", BASE)]

    def test_without_the_platform(self, night: Scene, known: str) -> None:
        night.image("arm64")
        assert ("FAIL", "no-such-platform", BASE) in told(night.check_external(known))

    def test_named_by_a_digest_that_is_gone(self, night: Scene, known: str) -> None:
        assert night.stack is not None
        reference = f"{IMAGE}@{known}"
        spec = night.stack.spec.model_copy(update={"external": reference})
        night.stack = replace(night.stack, spec=spec)
        assert told(night.check_external(known)) == []
        night.registry.documents.clear()
        assert told(night.check_external(known)) == [("FAIL", "digest-gone", reference)]

    def test_a_limit_is_no_drift(self, night: Scene, known: str) -> None:
        night.registry.server.misbehave("/manifests/", Misbehaviour(status=429))
        findings = night.check_external(known)
        assert told(findings) == [("ERROR", "registry-rate-limited", BASE)]
        assert external_digest(findings) == ""
