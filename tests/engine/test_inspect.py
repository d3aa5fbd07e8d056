"""``stackbuild inspect`` on images that a real engine holds."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from stackbuild.annotate.labels import PINS_LABEL, image_labels
from stackbuild.cli.main import run
from tests.publish.test_publish import CU130, pins, spec

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine

pytestmark = pytest.mark.engine


def build(engine: Engine, tag: str, dockerfile: str) -> str:
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for name, content in (("Dockerfile", dockerfile), ("a", "a"), ("b", "b")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
    context.seek(0)
    engine.build(context, tag=tag)
    return tag


def test_inspect_shows_pins_and_tells_derived_images(
    engine: Engine, image_name: Callable[[str], str], capfd: pytest.CaptureFixture[str]
) -> None:
    below = build(engine, image_name("below"), "FROM scratch\nCOPY a /a\n")
    info = engine.image(below)
    assert info is not None
    labels = image_labels(spec(), pins(*CU130), info.diff_ids, created="2026-01-02T03:04:05Z")
    label = f"LABEL {PINS_LABEL}='{labels[PINS_LABEL]}'\n"
    ours = build(engine, image_name("ours"), f"FROM {below}\n{label}")
    derived = build(engine, image_name("derived"), f"FROM {ours}\nCOPY b /b\n")
    borrowed = build(engine, image_name("borrowed"), f"FROM scratch\nCOPY b /b\n{label}")

    assert run(["inspect", "--format", "json", ours]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["relation"] == "exact"
    assert document["pins"]["torch"] == "2.14.1"

    assert run(["inspect", derived]) == 0
    text = capfd.readouterr().out
    assert f"{derived}: derived from stack torch-cu130: 1 layer on top" in text

    assert run(["inspect", "--format", "json", borrowed]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["relation"] == "different"
    assert "pins" not in document

    assert run(["inspect", below]) == 5
    assert "it has no pin list" in capfd.readouterr().err
    assert run(["inspect", "stackbuild-test/none:none"]) == 5
    assert "no such image" in capfd.readouterr().err
