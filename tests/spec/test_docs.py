"""The description of the spec names every key, and its examples load."""

from __future__ import annotations

import io
import re
import textwrap
from pathlib import Path

from ruamel.yaml import YAML

from stackbuild.spec.load import load_spec
from stackbuild.spec.messages import known_keys

TEXT = (Path(__file__).parents[2] / "docs" / "spec.md").read_text(encoding="utf-8")
HEAD = {"schema": 1, "name": "demo", "base": {"bootstrap": "debian", "suite": "bookworm"}, "python": "3.12"}


def examples() -> list[dict[str, object]]:
    """The indented blocks that are parts of a spec, with the shortened hashes written out."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", TEXT, re.MULTILINE)
    found = []
    for block in map(textwrap.dedent, blocks):
        text = block.replace("0123…", "a" * 64).replace("sha256:…", "sha256:" + "a" * 64).strip()
        if text.split(":")[0] in known_keys(()):
            found.append(YAML(typ="safe", pure=True).load(text))
    return found


def test_every_key_is_described() -> None:
    sections = [(), *((key,) for key in known_keys(())), *((key, 0) for key in known_keys(()))]
    missing = {
        (section, key)
        for section in sections
        for key in known_keys(section)
        if not re.search(rf"`{key}`|(?<![a-z-]){key}:", TEXT)
    }
    assert not missing


def test_every_example_loads(tmp_path: Path) -> None:
    found = examples()
    assert len(found) >= 16
    for document in found:
        spec = dict(HEAD)
        if "external" in document:
            del spec["base"]
        stream = io.StringIO()
        YAML(typ="safe", pure=True).dump(spec | document, stream)
        path = tmp_path / "demo.yaml"
        path.write_text(stream.getvalue())
        load_spec(path)
