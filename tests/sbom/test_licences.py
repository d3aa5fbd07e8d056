"""Licences of wheels: from the wheels themselves, and from an image that they are installed in, with one answer."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from stackbuild.lock.model import LockedWheel
from stackbuild.progress import SilentObserver
from stackbuild.sbom.licences import installed_licences, licences_in, wheel_licences
from stackbuild.scan.scan import scan_of
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.folder import FolderSource
from tests.build.stacks import locked_wheel
from tests.support.wheels import make_wheel

VENV = "opt/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (("License-Expression: BSD-3-Clause", "License: other"), ("BSD-3-Clause",)),
        (("License: Apache 2.0",), ("Apache 2.0",)),
        (("License: UNKNOWN", "Classifier: License :: OSI Approved :: MIT License"), ("MIT License",)),
        (
            ("License: A whole text\n        of several lines", "Classifier: License :: Public Domain"),
            ("Public Domain",),
        ),
        (
            (
                "Classifier: License :: OSI Approved :: MIT License",
                "Classifier: License :: OSI Approved",
                "Classifier: Programming Language :: Python",
                "Classifier: License :: OSI Approved :: BSD License",
            ),
            ("BSD License", "MIT License"),
        ),
        ((f"License: {'long ' * 100}",), ()),
        (("License: Lizenz für Größeres",), ("Lizenz für Größeres",)),
        ((), ()),
    ],
)
def test_wheel_and_image_name_the_same(
    tmp_path: Path, metadata: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    wheel = make_wheel(tmp_path / "wheels", "Leaf_Of.One", "1.0", metadata=metadata)
    assert licences_in(wheel) == expected
    locked = locked_wheel(wheel, "leaf-of-one", "1.0")
    assert wheel_licences([locked], {locked.file: wheel}) == {locked.sha256: expected}
    assert _in_image(tmp_path, wheel, locked, VENV) == {locked.sha256: expected}


def test_only_what_is_installed_from_the_lock_counts(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "leaf", "1.0", metadata=("License: MIT",))
    locked = locked_wheel(wheel, "leaf", "1.0")
    assert _in_image(tmp_path, wheel, locked.model_copy(update={"version": "2.0"}), VENV) == {}
    assert _in_image(tmp_path / "other", wheel, locked, "usr/lib/python3/dist-packages") == {}
    vendored = f"{VENV}/setuptools/_vendor"
    assert _in_image(tmp_path / "vendored", wheel, locked, vendored) == {}


def _in_image(
    tmp_path: Path, wheel: Path, locked: LockedWheel, environment: str
) -> dict[str, tuple[str, ...]]:
    root = tmp_path / "root"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root / environment)
    scan = scan_of(scan_image(FolderSource(root), SilentObserver()))
    return installed_licences([locked], scan.python.distributions)
