"""Markdown for pull requests and job summaries."""

from __future__ import annotations

import re
from dataclasses import replace

from stackbuild.reports.document import Document, Part
from stackbuild.reports.markdown import render_markdown
from tests.reports.documents import HOSTILE, UNKNOWN, USUAL, WELL, WRONG

_FENCED = re.compile(r"^(`{3,})text\n.*?\n\1$", re.S | re.M)


def test_verdict_gates_and_next_steps_come_first_and_evidence_is_folded() -> None:
    text = render_markdown(USUAL)
    assert text.startswith("### ❌ FAIL: verify torch-cpu:latest\n\n1 failed, 1 could not be judged")
    assert "**not complete**: <code>ort-session</code>, <code>nvml-agrees</code> not judged" in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    assert rows == [
        "| ❌ FAIL | `ort-version` | onnxruntime is 1.31.1, promised is 1.30.0 |",
        "| ❗ ERROR | `ort-session` | its process was killed with SIGKILL |",
        "| ⚠️ WARN | `python-version` | Python is 3.11.3 "
        r"(waived: wanted \(platform team, until 2027-01-01\)) |",
        "| ✅ PASS | `torch-matmul` | within tolerance |",
        "| ➖ SKIP | `nvml-agrees` | not judged: it needs a GPU |",
    ]
    assert "1. `ort-version`: Build again from the lock.\n" in text
    assert text.index("#### Next steps") < text.index("<details>")
    assert "| kernel | <code>6.1.0-18</code> | <code>6.8.0</code> |" in text
    assert "<details><summary>Container log</summary>\n\n```text\nfirst line\nlast line\n" in text


def test_text_of_an_image_is_neither_mark_up_nor_mention_nor_link() -> None:
    text = render_markdown(HOSTILE)
    outside = _FENCED.sub("", text)
    assert "<script" not in outside
    assert "<img" not in outside
    assert "@everyone" not in re.sub(r"<code>.*?</code>", "", outside)
    assert not re.search(r"(?<!\\)\]\(", outside), "no link"
    assert "https:" not in re.sub(r"<code>.*?</code>", "", outside)
    assert "\n# heading" not in outside
    assert "\x1b" not in text
    # Each piece of evidence is closed where it began: its fence is longer than any in it.
    assert len(_FENCED.findall(text)) == 2
    assert outside.count("<details>") == outside.count("\n</details>") == 3


def test_every_row_of_a_table_has_its_columns() -> None:
    for document, columns in ((HOSTILE, 4), (replace(HOSTILE, parts=HOSTILE.parts * 2), 5)):
        rows = [line for line in render_markdown(document).splitlines() if line.startswith("| ❌")]
        assert rows
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {columns}


def test_it_fits_a_comment_whatever_was_printed() -> None:
    flood = WRONG.model_copy(update={"details": {"output": "x" * 5_000_000}})
    document = replace(USUAL, parts=(Part("p", (flood,) * 300),), log="y" * 5_000_000)
    text = render_markdown(document)
    assert len(text) < 65_536
    assert "150 further rows are in the JSON report." in text
    assert "further pieces of evidence are in the JSON report." in text
    assert "characters left out" in text


def test_of_many_stacks_and_hosts_only_what_needs_attention_is_listed() -> None:
    parts = (Part("a on x", (WELL,)), Part("b on y", (UNKNOWN,), ("take b:2",)))
    text = render_markdown(Document("check a, b", (), parts, complete=False))
    assert "| ❗ ERROR | `ort-session` | b on y | its process was killed with SIGKILL |" in text
    assert "torch-matmul" not in text
    assert "1. b on y: take b:2\n" in text
