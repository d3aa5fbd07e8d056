"""Case F03: BuildKit-only syntax is seen before a context is sent."""

from __future__ import annotations

import pytest

from stackbuild.build.dockerfile import require_classic
from stackbuild.errors import BuildError
from stackbuild.findings import Verdict
from stackbuild.render.lint import lint_for_classic_builder

F03 = "# syntax=docker/dockerfile:1.7\nFROM x\nRUN --mount=type=cache,target=/root/.cache/pip pip install torch\n"


def test_the_reported_dockerfile_fails_by_line() -> None:
    findings = lint_for_classic_builder(F03)
    assert [(f.code, f.verdict, f.details["line"]) for f in findings] == [
        ("needs-buildkit", Verdict.FAIL, 1),
        ("needs-buildkit", Verdict.FAIL, 3),
    ]


def test_the_builder_refuses_it() -> None:
    with pytest.raises(BuildError) as caught:
        require_classic(F03)
    assert caught.value.code == "needs-buildkit"
    assert "Line 3 uses RUN --mount" in caught.value.detail


def test_no_variable_changes_what_the_sdk_can_and_buildx_is_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_BUILDKIT", "1")  # read by the docker command line only
    finding = lint_for_classic_builder(F03)[1]
    assert (finding.verdict, finding.details["backend"]) == (Verdict.FAIL, "classic")
    assert "build with docker buildx" in finding.next_step


@pytest.mark.parametrize(
    "line",
    [
        "RUN <<EOF\necho hi\nEOF",
        "COPY --link a b",
        "COPY --chown=1:1 --chmod=755 a b",
        "ADD --checksum=sha256:aa https://x/y /z",
        "RUN --network=none true",
        "COPY <<-'SETTINGS' /etc/x\na\nSETTINGS",
        "RUN \\\n    --mount=type=secret,id=x true",
    ],
)
def test_other_buildkit_syntax(line: str) -> None:
    assert [f.code for f in lint_for_classic_builder(f"FROM x\n{line}\n")] == ["needs-buildkit"]


@pytest.mark.parametrize(
    "text",
    [
        "FROM x\nRUN cat <<'' | true",
        "FROM x\n# syntax=not/a:directive any more\nRUN true",
        "FROM x\nRUN echo --mount",
        "FROM x\nCOPY --chown=1:1 --from=builder a b",
        "FROM x\nRUN test 1 -lt 2 && echo $((1<<2))",
    ],
)
def test_classic_syntax_passes(text: str) -> None:
    assert lint_for_classic_builder(text) == ()
