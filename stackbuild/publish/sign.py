"""Signing with cosign, where it is installed and a key is given."""

from __future__ import annotations

import os
import shutil
import subprocess

from stackbuild.errors import NotJudgedError, UsageError

_LIMIT = 120


def require_cosign() -> str:
    """The path of cosign.

    Raises:
        UsageError: ``cosign-missing``.
    """
    program = shutil.which("cosign")
    if program is None:
        raise UsageError(
            "A signing key is given, and cosign is not installed.",
            code="cosign-missing",
            do="Install cosign (https://docs.sigstore.dev/cosign/system_config/installation/), or leave --sign-key away.",
        )
    return program


def sign(reference: str, key: str) -> None:
    """Sign an image by digest. Nothing is sent to a public transparency log.

    Args:
        reference: ``REPOSITORY@DIGEST``.
        key: A key as ``cosign sign --key`` takes it; its password is read from COSIGN_PASSWORD.

    Raises:
        UsageError: ``cosign-missing``.
        NotJudgedError: ``signing-failed``.
    """
    command = [
        require_cosign(),
        "sign",
        "--yes",
        "--tlog-upload=false",
        "--recursive",
        "--key",
        key,
        reference,
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_LIMIT, env=os.environ
        )
    except subprocess.TimeoutExpired as error:
        raise _failed(reference, f"no answer within {_LIMIT} s") from error
    if done.returncode != 0:
        raise _failed(reference, "\n".join(done.stderr.strip().splitlines()[-8:]))


def _failed(reference: str, detail: str) -> NotJudgedError:
    return NotJudgedError(
        "cosign did not sign the image, so nothing was tagged",
        code="signing-failed",
        where=reference,
        detail=detail,
        do="Check the key and COSIGN_PASSWORD; then run the same command again.",
    )
