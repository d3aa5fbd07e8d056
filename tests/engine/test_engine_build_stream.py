"""Case F01: what a build's stream says, without an engine."""

from __future__ import annotations

import pytest

from stackbuild.engine.build_stream import BuildStream
from stackbuild.errors import ExitCode, StackbuildError


def failure_of(*chunks: dict[str, object]) -> StackbuildError:
    stream = BuildStream()
    try:
        for chunk in chunks:
            stream.feed(chunk)
        stream.finish()
    except StackbuildError as error:
        return error
    raise AssertionError("the build was taken for a success")


def test_the_reason_in_the_stream_names_the_failure() -> None:
    error = failure_of(
        {"stream": "Step 5/9 : RUN pip install ..."},
        {"stream": "ERROR: No matching distribution found for torch==2.12.0+cu128\n"},
        {
            "errorDetail": {"code": 1, "message": "... returned a non-zero code: 1"},
            "error": "... returned a non-zero code: 1",
        },
    )
    assert error.code == "wheel-not-found"
    assert error.exit_code is ExitCode.BUILD_FAILED
    assert "No matching distribution found for torch==2.12.0+cu128" in str(error)
    assert error.where == "Step 5/9 : RUN pip install ..."


def test_a_stream_without_success_or_error_is_no_success() -> None:
    error = failure_of({"stream": "Step 1/2 : FROM x\n"}, {"stream": " ---> 0123456789ab\n"})
    assert error.code == "build-stream-truncated"
    assert error.exit_code is ExitCode.NOT_JUDGED


def test_the_lines_of_earlier_steps_do_not_decide() -> None:
    error = failure_of(
        {"stream": "Step 1/2 : RUN a\n"},
        {"stream": "Temporary failure in name resolution, but a retry helped\n"},
        {"stream": " ---> 0123456789ab\n"},
        {"stream": "Step 2/2 : RUN b\n"},
        {"error": "returned a non-zero code: 2"},
    )
    assert error.code == "build-step-failed"
    assert "name resolution" not in error.detail


@pytest.mark.parametrize(
    ("line", "code", "exit_code"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "artifact-changed", 3),
        ("SSL: CERTIFICATE_VERIFY_FAILED", "certificate-not-trusted", 5),
        ("E: Version '1.2' for 'libgomp1' was not found", "deb-superseded", 3),
        ("Temporary failure in name resolution", "index-unreachable", 5),
        ("toomanyrequests: You have reached your pull rate limit", "registry-rate-limited", 5),
        ("the --mount option requires BuildKit", "needs-buildkit", 4),
        ("exec /bin/sh: exec format error", "digest-platform-mismatch", 3),
        ("manifest unknown: manifest unknown", "tag-removed", 3),
        ("error: externally-managed-environment", "externally-managed-python", 4),
        ("write /usr/lib/x: no space left on device", "disk-full", 4),
    ],
)
def test_known_causes_have_their_code_and_exit(line: str, code: str, exit_code: int) -> None:
    error = failure_of({"stream": "Step 1/1 : RUN x\n"}, {"stream": line + "\n"}, {"error": "code: 1"})
    assert (error.code, int(error.exit_code)) == (code, exit_code)


def test_an_unknown_cause_stays_unknown() -> None:
    error = failure_of({"stream": "Step 1/1 : RUN x\n"}, {"stream": "hello\n"}, {"error": "code: 1"})
    assert error.code == "build-step-failed"


def test_an_index_that_cannot_be_reached_is_no_missing_wheel() -> None:
    error = failure_of(
        {"stream": "Step 1/1 : RUN pip install six\n"},
        {"stream": "WARNING: Retrying after 'Failed to establish a new connection: [Errno 111] refused'\n"},
        {"stream": "ERROR: No matching distribution found for six\n"},
        {"error": "code: 1"},
    )
    assert (error.code, error.exit_code) == ("index-unreachable", ExitCode.NOT_JUDGED)


def test_a_torch_that_is_not_found_has_the_code_of_any_wheel() -> None:
    error = failure_of(
        {"stream": "Step 1/1 : RUN pip install torch\n"},
        {
            "stream": "ERROR: Could not find a version that satisfies the requirement torch==3.0 (from versions: 2.9.1)\n"
        },
        {"stream": "ERROR: No matching distribution found for torch==3.0\n"},
        {"error": "code: 1"},
    )
    assert (error.code, error.exit_code) == ("wheel-not-found", ExitCode.BUILD_FAILED)


def test_what_a_program_says_of_gpus_is_not_why_a_build_failed() -> None:
    error = failure_of(
        {"stream": "Step 1/1 : RUN pytest\n"},
        {"stream": "RuntimeError: No CUDA GPUs are available\n"},
        {"error": "code: 1"},
    )
    assert error.code == "build-step-failed"


def test_only_steps_that_ran_count_as_made() -> None:
    stream = BuildStream()
    for line in (
        "Step 1/3 : FROM x",
        " ---> aaaaaaaaaaaa",
        "Step 2/3 : ENV A=1",
        " ---> Using cache",
        " ---> bbbbbbbbbbbb",
        "Step 3/3 : RUN c",
        " ---> Running in 111111111111",
        " ---> cccccccccccc",
        "Successfully built cccccccccccc",
    ):
        stream.feed({"stream": line + "\n"})
    assert stream.made == ["cccccccccccc"]
    assert stream.finish() == "cccccccccccc"
